"""Tests on tiny models of every kind, made here from a seed, against the
float64 logits of reference.py."""

import json

import numpy as np

import gguf
import make_gguf
from harness import Failure, check_greedy, expect
from reference import Model, nmse

# Largest NMSE with int8 activations. llama.cpp has 1e-4 (blocks of 32) and
# 4e-4 (one scale per 256) on the same models.
FLOAT_BAR, BLOCK32_BAR, BLOCK256_BAR, EXACT_BAR = 1e-6, 3e-4, 6e-4, 1e-6
# Where two experts are nearly as good as each other, int8 activations may choose
# the other one, which moves a few rows; a wrong kernel moves all.
ROUTED_BAR = 2e-2
MIXED = ["--override=attn_v=q6_k", "--override=ffn_down=q6_k", "--override=token_embd=q6_k"]
LONG = 300  # tokens: more than a step takes, and several pages

ODD = ["--width=96", "--ffn=160", "--vocab=333", "--heads=3", "--kv-heads=1", "--head-size=32"]
MIXTURE = ["--experts=8", "--used=2"]
HYBRID = ["--layers=4", "--width=128", "--head-size=32"]
SHAPES = {
    "odd sizes": ["--arch=llama", "--kind=q4_0", *ODD],
    "odd sizes, q5_1": ["--arch=qwen2", "--kind=q5_1", *ODD],
    "wide heads": ["--arch=qwen3", "--kind=q8_0", "--width=64", "--heads=2", "--kv-heads=2", "--head-size=128"],
    "heads of 80": ["--arch=llama", "--kind=q4_1", "--width=160", "--heads=2", "--kv-heads=1", "--head-size=80"],
    "a group of 7": ["--arch=qwen2", "--kind=q4_0", "--width=224", "--heads=7", "--kv-heads=1", "--head-size=32"],
    "biases of some": ["--arch=llama", "--kind=q4_0", "--bias=attn_k", "--bias=ffn_gate", "--layers=1"],
    "tied": ["--arch=qwen3", "--kind=q4_k", "--tied"],
    "K-quant mixture": ["--arch=qwen3", "--kind=q4_k", *MIXED],
    "blocks of 32 beside 256": ["--arch=llama", "--kind=q4_k", "--override=attn_k=q8_0", "--override=ffn_up=q5_0"],
    "float beside quantized": ["--arch=llama", "--kind=q4_0", "--override=attn_q=f16", "--override=output=bf16",
                               "--override=token_embd=f32"],
    "8 experts": ["--arch=qwen3moe", "--kind=q4_0", *MIXTURE],
    "8 experts, K-quants": ["--arch=qwen3moe", "--kind=q4_k", "--override=ffn_down=q6_k", *MIXTURE],
    "experts, sinks and windows": ["--arch=gpt-oss", "--kind=q8_0", *MIXTURE],
    "experts, latent attention": ["--arch=deepseek2", "--kind=q8_0", "--layers=3", *MIXTURE],
    "a gated shared expert": ["--arch=qwen2moe", "--kind=q4_0", *MIXTURE],
    "a shared expert": ["--arch=glm4moe", "--kind=q5_0", "--layers=3", *MIXTURE],
    "experts beside linear attention": ["--arch=qwen3next", "--kind=q8_0", *HYBRID, *MIXTURE],
    "experts beside linear attention, tiled": ["--arch=qwen35moe", "--kind=q4_0", *HYBRID, *MIXTURE],
    "experts of odd sizes": ["--arch=llama", "--kind=f16", "--experts=5", "--used=3", "--expert-ffn=40",
                             "--width=72", "--heads=2", "--kv-heads=1", "--head-size=32"],
    "GGUF version 2": ["--arch=llama", "--kind=q8_0", "--version=2"],
    "one layer": ["--arch=llama", "--kind=q6_k", "--layers=1"],
}


# Kernels are tested on every target elsewhere; here it is the architecture.
ARCHITECTURE_TARGETS = ["--target=reference,native"]

# Of those that have no more tests than this one, a weight type that shows
# what is special about them.
ARCHITECTURES = {"smollm3": "q8_0", "granite": "f16", "phi3": "q4_0", "olmo2": "q8_0", "mistral3": "q8_0",
                 "lfm2": "f16", "qwen35": "f16", "gemma2": "q8_0", "gemma3": "q8_0", "exaone4": "f16",
                 "seed_oss": "q4_0", "gemma4": "q8_0"}


# Queries, keys and values of these are no plain products that are turned alike, or
# layers share a cache: what fits their cache of codes is made by an op of its own.
CODES = {"olmo2": ["--layers=2"], "gemma4": ["--layers=4"], "mistral3": ["--layers=2"],
         "deepseek2": ["--layers=3", *MIXTURE]}
# NMSE of exact logits with such a cache.
CODES_BARS = {"q8_0": 1e-3, "q4_0": 0.1}


def bar_of(kinds):
    if any(kind.endswith("_k") for kind in kinds):
        return BLOCK256_BAR
    return BLOCK32_BAR if any(kind.startswith("q") for kind in kinds) else FLOAT_BAR


def ids_of(count, vocab, seed=3):
    return np.random.default_rng(seed).integers(2, min(vocab, 260), count).tolist()


class Case:
    """A tiny model, its artifact, ids and the reference's logits."""

    def __init__(self, tools, options, tokens=40, compile_options=()):
        self.gguf = tools.once(tuple(options), ".gguf", lambda part: make_gguf.make([str(part), *options]))
        self.artifact = tools.once((*options, "|", *compile_options), ".izh",
                                   lambda part: tools.compile(self.gguf, part, *compile_options))
        given = [option.split("=")[1] for option in compile_options if option.startswith("--context=")]
        self.model = Model(self.gguf, *map(int, given))
        self.ids = ids_of(tokens, len(self.model.weights["token_embd.weight"]))
        self.expected = self.model.logits(self.ids)


def accuracy(tools, options, bar=None, tokens=40, compile_options=()):
    """All runnable variants are within `bar` of the reference."""
    case = Case(tools, options, tokens, compile_options)
    kinds = {t.kind for t in gguf.read(case.gguf)[1].values() if len(t.shape) > 1}
    bar = bar or bar_of(kinds)
    notes = []
    for variant in tools.runnable(case.artifact):
        error = nmse(tools.logits(case.artifact, case.ids, "--variant", variant), case.expected)
        notes.append(f"{variant} {error:.1e}")
        if not error <= bar:
            raise Failure(f"NMSE {error:.3e} of {variant} is over {bar:g}")
    return ", ".join(notes)


def invariance(tools, options):
    """Threads, chunks and a second sequence change no bit."""
    case = Case(tools, options, LONG)
    variants = tools.runnable(case.artifact)
    for variant in variants:
        force = ["--variant", variant]
        base = tools.logits(case.artifact, case.ids, *force, "--threads", 1)
        beside = tools.work / "beside.json"
        beside.write_text(json.dumps(ids_of(LONG // 2, 260, seed=9)))
        for changed in (["--threads", 2], ["--threads", 2, "--chunk", 1], ["--threads", 1, "--chunk", 7],
                        ["--threads", 2, "--chunk", 64], ["--threads", 2, "--chunk", LONG],
                        ["--threads", 2, "--beside", beside],
                        ["--threads", 1, "--chunk", 5, "--beside", beside]):
            other = tools.logits(case.artifact, case.ids, *force, *changed)
            rows = np.flatnonzero((base.view(np.uint32) != other.view(np.uint32)).any(axis=1))
            expect(rows.size == 0, f"{variant} {changed}: {rows.size} rows differ, the first is {rows[:1]}")
    return ", ".join(variants)


def greedy(tools, options):
    """`run --temp 0` picks the reference's best tokens, twice the same, and so
    does the sample that uses the C API."""
    case = Case(tools, options, 8)
    prompt = "the thing and the other"
    ids = json.loads(tools.call("izh-rt", "tokenize", case.artifact, "-p", prompt, "--json").stdout)
    command = ["izh-rt", "run", case.artifact, "-p", prompt, "-n", 24, "--temp", 0, "--json"]
    answer = json.loads(tools.call(*command).stdout)
    tokens = answer["tokens"]
    expect(answer["stop"] in ("eos", "length"), f"stopped by {answer['stop']}")
    expect(len(tokens) == 24 or answer["stop"] == "eos", f"{len(tokens)} tokens")
    clear = check_greedy(tokens, ids, case.model.logits(ids + tokens), gap=0.15)
    expect(clear > 0, "no token is clear")
    again = json.loads(tools.call(*command, "--threads", 1).stdout)
    expect(again["tokens"] == tokens, "a second run with one thread gave other tokens")
    sample = tools.call("greedy", case.artifact, prompt, 24).stdout
    expect(sample == answer["text"] + "\n", f"samples/greedy prints {sample!r}, not {answer['text']!r}")
    return f"{clear} of {len(tokens)} tokens are clear"


def seeded(tools, options):
    """The same seed gives the same text, and another seed another."""
    case = Case(tools, options, 8)
    def text(seed):
        command = ["izh-rt", "run", case.artifact, "-p", "the", "-n", 32, "--temp", 1, "--seed", seed, "--json"]
        return json.loads(tools.call(*command).stdout)["tokens"]
    expect(text(7) == text(7), "seed 7 gave two texts")
    expect(text(7) != text(8), "seeds 7 and 8 gave one text")


def without_vocabulary(tools, options):
    case = Case(tools, [*options, "--pre="], 8)
    error = nmse(tools.logits(case.artifact, case.ids), case.expected)
    expect(error <= BLOCK32_BAR, f"NMSE {error:.3e}")
    return tools.refused("izh-rt", "run", case.artifact, "-p", "x", says=["tokenizer"])


def small_artifact(tools, options):
    """What compile adds to the weights is bounded."""
    case = Case(tools, options, 8, ["--target=avx2"])
    source, made = case.gguf.stat().st_size, case.artifact.stat().st_size
    expect(made < source * 1.05 + 600_000, f"{source} bytes became {made}")
    return f"{source} -> {made} bytes"


def run(suite, tools):
    for kind in gguf.TYPES:
        suite.run(f"accuracy llama {kind}", accuracy, tools, ["--arch=llama", f"--kind={kind}"])
    for arch in ("qwen2", "qwen3"):
        for kind in ("f16", "q4_0", "q4_1", "q8_0", "q4_k", "q6_k"):
            suite.run(f"accuracy {arch} {kind}", accuracy, tools, [f"--arch={arch}", f"--kind={kind}"],
                      compile_options=ARCHITECTURE_TARGETS)
    for arch, kind in ARCHITECTURES.items():
        options = [f"--arch={arch}", f"--kind={kind}", "--layers=4", "--width=128", "--ffn=256", "--head-size=32"]
        suite.run(f"architecture {arch}", accuracy, tools, options, compile_options=ARCHITECTURE_TARGETS)
    # Longer and shorter than what it was first trained for.
    for tokens in (512, 128):
        suite.run(f"architecture phi3 for {tokens} tokens", accuracy, tools, ["--arch=phi3", "--kind=f16"],
                  compile_options=[f"--context={tokens}", *ARCHITECTURE_TARGETS])
    for arch, options in CODES.items():
        options = [f"--arch={arch}", "--kind=f16", "--width=128", "--ffn=256", "--head-size=32", *options]
        for codes, bar in CODES_BARS.items():
            suite.run(f"codes {arch} {codes}", accuracy, tools, options, bar,
                      compile_options=["--exact", f"--kv={codes}", *ARCHITECTURE_TARGETS])
    for title, options in SHAPES.items():
        if not any(option.startswith("--experts") for option in options):
            suite.run(f"accuracy {title}", accuracy, tools, options)
            continue
        suite.run(f"exact {title}", accuracy, tools, options, EXACT_BAR,
                  compile_options=["--exact", *ARCHITECTURE_TARGETS])
        suite.run(f"accuracy {title}", accuracy, tools, options, ROUTED_BAR, compile_options=ARCHITECTURE_TARGETS)
    suite.run("accuracy long prompt", accuracy, tools, ["--arch=qwen3", "--kind=q4_0"], tokens=LONG)
    for arch, kind in (("llama", "q4_0"), ("qwen2", "q5_k"), ("qwen3", "q6_k"), ("llama", "f16")):
        suite.run(f"exact {arch} {kind}", accuracy, tools, [f"--arch={arch}", f"--kind={kind}"], EXACT_BAR, compile_options=["--exact"])
    for arch, kind in (("llama", "q4_k"), ("qwen2", "f16"), ("qwen3", "q4_1")):
        suite.run(f"invariance {arch} {kind}", invariance, tools, [f"--arch={arch}", f"--kind={kind}"])
        suite.run(f"greedy {arch} {kind}", greedy, tools, [f"--arch={arch}", f"--kind={kind}"])
    suite.run("invariance 8 experts", invariance, tools, SHAPES["8 experts"])
    suite.run("seeds", seeded, tools, ["--kind=q8_0"])
    suite.run("no vocabulary", without_vocabulary, tools, ["--kind=q8_0"])
    suite.run("artifact size", small_artifact, tools, ["--kind=q4_0", "--ffn=4096"])
