"""An optional sweep over models, weight types and texts that lie outside of
the repository, with logits made by other programs (see --shared)."""

import json

import numpy as np

import caches
import long
from harness import Skip, expect, mean_kl
from reference import nmse
from smollm2 import default_artifact

MODELS = ["llama", "mistral", "qwen2", "qwen3", "qwen3moe", "glm4moe", "gptoss", "deepseek3", "smollm3", "granite",
          "phi3", "olmo2", "ministral3", "lfm2", "qwen35", "gemma2", "gemma3", "gemma4", "exaone4", "qwen3next"]
VOCABULARIES = ["llama-bpe", "llama-spm", "phi-3", "qwen2", "gpt-2"]  # all: e2e_tokenizers_test
EXACT_BAR, MODEL_BAR, CLEAR = 1e-4, 3e-3, 0.05
QUANT_FACTOR, KL_FACTOR = 1.2, 1.15


def against(tools, gguf, ids, expected, bar):
    artifact = tools.compile(gguf, gguf.stem + ".izh")
    notes = []
    for variant in tools.runnable(artifact):
        error = nmse(tools.logits(artifact, ids, "--variant", variant), expected)
        notes.append(f"{variant} {error:.2e}")
        expect(error <= bar, f"NMSE {error:.3e} of {variant} is over {bar:.3e}")
    return ", ".join(notes) + f", bar {bar:.2e}"


def model(tools, folder):
    """Logits within the bars, the reference's text where it is clear, and the
    same bits in chunks of any size."""
    facts = json.loads((folder / "ref.json").read_text())
    ids, expected = facts["ids"], np.load(folder / "ref_logits.npy")
    notes, sources = [], [*folder.glob("*.gguf"), folder]
    for source, options, bar in [(s, ["--exact"], EXACT_BAR) for s in sources] + [(sources[0], [], MODEL_BAR)]:
        artifact = tools.compile(source, source.stem + ".izh", "--target=reference,native", *options)
        for variant in tools.runnable(artifact):
            logits = tools.logits(artifact, ids, "--variant", variant)
            error = nmse(logits, expected)
            notes.append(f"{variant} {error:.1e}")
            expect(error <= bar, f"NMSE {error:.3e} of {variant} is over {bar:.3e}")
        for chunk in (1, 7):
            expect((tools.logits(artifact, ids, "--chunk", chunk) == tools.logits(artifact, ids)).all(),
                   f"chunks of {chunk} change the logits")
        best = tools.logits(artifact, ids + facts["greedy"]).argmax(axis=1)[len(ids) - 1:]
        for token, got, gap in zip(facts["greedy"], best, facts["gap"]):
            expect(got == token or gap <= CLEAR * expected.std(), f"{got} instead of {token}, which leads by {gap}")
    return ", ".join(notes)


def published(tools, folder):
    """The folder that the GGUF was made from gives the same logits."""
    facts = json.loads((folder / "ref.json").read_text())
    artifact = tools.compile(folder, folder.name + "-folder.izh", "--target=native", "--exact")
    error = nmse(tools.logits(artifact, facts["ids"]), np.load(folder / "ref_logits.npy"))
    expect(error <= EXACT_BAR, f"NMSE {error:.3e} is over {EXACT_BAR}")
    got = json.loads(tools.call("izhc", "tokenize", folder, "-p", facts["text"], "--no-bos").stdout)
    expect(got[:len(facts["ids"])] == facts["ids"], f"ids {got}")
    return f"{error:.1e}"


def quant(tools, folder, kind):
    facts = json.loads((folder / "ref.json").read_text())
    bar = QUANT_FACTOR * facts["files"][kind]["llama_cpp_nmse"]
    return against(tools, folder / f"{kind}.gguf", facts["ids"], np.load(folder / f"{kind}.npy"), bar)


def tuned(tools, artifact):
    """The variants that this machine runs, but the scalar one, which would take minutes here."""
    return [variant for variant in tools.runnable(artifact) if variant != "reference"]


def passage(tools, artifact, folder):
    facts = json.loads((folder / "smollm2.json").read_text())["passage"]
    expected = np.load(folder / "smollm2-passage-logits.npy")
    bar, notes = KL_FACTOR * facts["llama_cpp"]["mean_kl"], []
    for variant in tuned(tools, artifact):
        logits = tools.logits(artifact, facts["ids"], "--variant", variant)
        kl = mean_kl(logits[:len(expected)], expected)
        notes.append(f"{variant} {kl:.5f}")
        expect(kl <= bar, f"mean KL {kl:.5f} of {variant} is over {bar:.5f}")
    return ", ".join(notes) + f", bar {bar:.5f}"


def continuations(tools, artifact, folder):
    """Fed the reference's text, the best token is the reference's where it is clear."""
    prompts, clear = json.loads((folder / "smollm2.json").read_text())["prompts"], 0
    for variant in tuned(tools, artifact):
        for prompt in prompts:
            logits = tools.logits(artifact, prompt["ids"] + prompt["greedy"], "--variant", variant)
            best = logits.argmax(axis=1)[len(prompt["ids"]) - 1:]
            for i, (token, gap) in enumerate(zip(prompt["greedy"], prompt["gap"])):
                if gap >= 0.5:
                    clear += 1
                    expect(best[i] == token, f"{variant}: token {i} after {prompt['text'][:20]!r} is {best[i]}, "
                                             f"not {token}, which leads by {gap}")
    return f"{clear} clear tokens"


def vocabulary(tools, folder, name):
    """Every text of NAME.inp and of nasty.json has the stored ids."""
    gguf = folder / f"{name}.gguf"
    pairs = []
    inputs, outputs = folder / f"{name}.inp", folder / f"{name}.out"
    if inputs.exists():
        texts = inputs.read_bytes().decode().split("\n__ggml_vocab_test__\n")[:-1]
        lines = outputs.read_text().split("\n")
        pairs += [(t, [int(i) for i in line.split()]) for t, line in zip(texts, lines)]
    pairs += nasty(folder, name)
    if not pairs:
        raise Skip(f"no texts for {name}")
    text_file = tools.work / "text.txt"
    for text, ids in pairs:
        text_file.write_bytes(text.encode())
        got = json.loads(tools.call("izhc", "tokenize", gguf, "-f", text_file, "--no-bos", "--no-special").stdout)
        expect(got == ids, f"{text[:40]!r} gives {got[:20]}, not {ids[:20]}")
    return f"{len(pairs)} texts"


def templates(tools, folder):
    """Each template makes the stored text of each conversation, or refuses it."""
    data = json.loads((folder / "expected.json").read_text())
    context, done = tools.work / "context.json", 0
    for name, cases in data["expected"].items():
        for case, expected in cases.items():
            context.write_text(json.dumps({"tools": None, **data["context"], **data["cases"][case]}))
            command = ["izhc", "render", folder / name, "--context", context]
            if "text" in expected:
                got = tools.call(*command).stdout
                expect(got == expected["text"], f"{name}, {case}: {got[-80:]!r}")
            else:
                tools.refused(*command)
            done += 1
    return f"{done} prompts"


def nasty(folder, name):
    data = json.loads((folder / "nasty.json").read_text())
    texts, ids = data["texts"], data["ids"].get(name, [])
    return list(zip(texts, ids))


def run(suite, tools, shared, smollm2):
    for name in MODELS:
        suite.run(f"sweep model {name}", model, tools, shared / "models" / name)
        suite.run(f"sweep folder {name}", published, tools, shared / "models" / name)
    long.run_shared(suite, tools, shared / "models")
    for kind in json.loads((shared / "quants" / "ref.json").read_text())["files"]:
        suite.run(f"sweep type {kind}", quant, tools, shared / "quants", kind)
    for name in VOCABULARIES:
        suite.run(f"sweep vocabulary {name}", vocabulary, tools, shared / "vocabs", name)
    suite.run("sweep templates", templates, tools, shared / "templates")
    if smollm2:
        suite.run("sweep passage", lambda: passage(tools, default_artifact(tools, smollm2), shared / "reference"))
        suite.run("sweep continuations",
                  lambda: continuations(tools, default_artifact(tools, smollm2), shared / "reference"))
        caches.run(suite, tools, smollm2, name="sweep cache")
