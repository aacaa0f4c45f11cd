"""Long runs: after many tokens, one by one, the logits are those of a fresh
prefill of the same tokens, and those of the reference."""

import json

from harness import expect
from reference import nmse
from tiny import EXACT_BAR, HYBRID, MIXTURE, Case

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
SHARED = ["mistral", "gptoss", "qwen35", "lfm2", "qwen3next", "deepseek3"]
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


def run(suite, tools):
    for name, options in MODELS.items():
        suite.run(f"long {name}", small, tools, options)


def run_shared(suite, tools, models):
    for name in SHARED:
        suite.run(f"sweep long {name}", shared, tools, models / name)
