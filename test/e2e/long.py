"""Long runs: after many tokens, one by one, the logits are those of a fresh
prefill of the same tokens, and those of the reference."""

import json

import numpy as np

from harness import expect
from reference import nmse
from tiny import EXACT_BAR, HYBRID, MIXTURE, Case, ids_of

DRIFT_BAR = 1e-5  # NMSE of the last logits
TOKENS, MORE_TOKENS = 700, 4096
SMALL = ["--kind=f16", "--context=2048"]
MODELS = {
    "windows": ["--arch=gpt-oss", "--layers=4", "--width=128", "--head-size=32", *MIXTURE],
    "delta rule": ["--arch=qwen35", "--ffn=256", *HYBRID],
    "delta rule and experts": ["--arch=qwen3next", *HYBRID, *MIXTURE],
    "short convolutions": ["--arch=lfm2", "--ffn=256", *HYBRID],
    "latent attention": ["--arch=deepseek2", "--layers=3", "--width=128", *MIXTURE],
}
SHARED = ["mistral", "gptoss", "gemma3", "qwen35", "lfm2", "qwen3next", "deepseek3"]
PROMPT = "the thing and the other"


def greedy_ids(tools, artifact, count):
    """A prompt and the tokens that follow it, in all `count`. -> ids, how many are the prompt's"""
    prompt = json.loads(tools.call("izh-rt", "tokenize", artifact, "-p", PROMPT, "--json").stdout)
    answer = tools.call("izh-rt", "run", artifact, "-p", PROMPT, "-n", count - len(prompt), "--ctx", count,
                        "--temp", 0, "--ignore-eos", "--json")
    ids = prompt + json.loads(answer.stdout)["tokens"]
    expect(len(ids) == count, f"{len(ids)} tokens instead of {count}")
    return ids, len(prompt)


def drift(tools, artifact, count):
    """-> ids, logits token by token, a note"""
    ids, first = greedy_ids(tools, artifact, count)
    steps = tools.logits(artifact, ids, "--chunk", 1, "--threads", 1, timeout=600)
    expect((steps.argmax(axis=1)[first - 1:-1] == ids[first:]).all(), "run chose other tokens than the logits of the same text say")
    error = nmse(steps[-1], tools.logits(artifact, ids, timeout=600)[-1])
    expect(error <= DRIFT_BAR, f"after {count} tokens the logits are {error:.1e} from those of a fresh prefill")
    return ids, steps, f"drift {error:.1e} after {count} tokens, {len(set(ids))} of them different"


def small(tools, options):
    case = Case(tools, [*options, *SMALL], 8, ["--exact", "--target=native"])
    ids, steps, note = drift(tools, case.artifact, TOKENS)
    error = nmse(steps, case.model.logits(ids))
    expect(error <= EXACT_BAR, f"NMSE {error:.1e} over {TOKENS} tokens is over {EXACT_BAR}")
    return f"{note}, NMSE {error:.1e}"


def shared(tools, folder):
    source = next(iter(folder.glob("*.gguf")), folder)
    artifact = tools.compile(source, f"long-{folder.name}.izh", "--target=native", "--exact")
    return drift(tools, artifact, MORE_TOKENS)[2]


def rings(tools):
    """Layers with a window keep a part of the tokens, which changes no bit, whoever
    shares a step."""
    case = Case(tools, [*MODELS["windows"], *SMALL], TOKENS, ["--exact", "--target=native"])
    info = {context: json.loads(tools.call("izh-rt", "info", case.artifact, "--json", "--ctx", context).stdout)
            for context in (TOKENS, 64 * TOKENS)}
    few, many = info.values()
    # Two layers of four have the window of 16; steps have at most 256 tokens, pages 64.
    expect(few["window"] == 16 and few["window_bytes_per_token"] == few["cache_bytes_per_token"],
           f"info tells of windows of {few['window']}")
    growth = many["memory"]["cache"] - few["memory"]["cache"]
    expect(abs(growth - 63 * TOKENS * few["cache_bytes_per_token"]) <= 64 * few["cache_bytes_per_token"],
           f"{growth} bytes more for {63 * TOKENS} tokens")
    kept = few["memory"]["cache"] / few["cache_bytes_per_token"] - TOKENS
    expect(0 < kept <= 64 + 16 + 256 + 2 * 64, f"room for {kept} tokens in rings")
    base = tools.logits(case.artifact, case.ids)
    error = nmse(base, case.expected)
    expect(error <= EXACT_BAR, f"NMSE {error:.1e} over {TOKENS} tokens is over {EXACT_BAR}")
    beside = tools.work / "beside.json"
    beside.write_text(json.dumps(ids_of(TOKENS - 100, 260, seed=9)))
    for changed in (["--chunk", 1], ["--chunk", 7, "--threads", 2], ["--chunk", 100, "--beside", beside],
                    ["--beside", beside, "--threads", 2], ["--chunk", 5, "--beside", beside]):
        other = tools.logits(case.artifact, case.ids, *changed)
        expect((base.view(np.uint32) == other.view(np.uint32)).all(), f"{changed} changes the logits")
    return f"rings of {kept:.0f} tokens, NMSE {error:.1e}"


def run(suite, tools):
    for name, options in MODELS.items():
        suite.run(f"long {name}", small, tools, options)
    suite.run("long rings", rings, tools)


def run_shared(suite, tools, models):
    for name in SHARED:
        suite.run(f"sweep long {name}", shared, tools, models / name)
