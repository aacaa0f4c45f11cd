"""64-bit Arm under emulation: the izh-rt that ./dev builds across, on
processors with more and fewer features, against reference.py."""

import json
import shutil

import numpy as np

import gguf
import make_gguf
from harness import Skip, check_greedy, expect
from reference import Model, nmse
from smollm2 import GAP, IDS, PROMPT, default_artifact
from tiny import ODD, bar_of, ids_of

VARIANTS = ["neon", "neon-dotprod", "neon-i8mm"]
PROCESSORS = {"cortex-a53": "neon", "cortex-a72": "neon", "neoverse-n1": "neon-dotprod", "max": "neon-i8mm"}
# Tokens: groups of eight, four, two and one row of activations.
TOKENS = 15
MODELS = {
    "blocks of 32": ["--kind=q4_0", "--override=attn_output=q4_1", "--override=ffn_gate=q5_0", "--override=ffn_up=q5_1",
                     "--override=ffn_down=q8_0"],
    "blocks of 256": ["--kind=q4_k", "--override=attn_v=q6_k", "--override=ffn_down=q5_k"],
    "floats": ["--kind=f16", "--override=attn_output=bf16", "--override=ffn_down=f32"],
    "odd sizes": ["--kind=q4_0", *ODD],
    "biases": ["--arch=qwen2", "--kind=q4_1", "--layers=1"],
}


class Machine:
    """Runs the Arm izh-rt on one emulated processor."""

    def __init__(self, tools, folder, processor):
        found = shutil.which("qemu-aarch64")
        if not found:
            raise Skip("there is no qemu-aarch64")
        self.tools = tools.with_binaries(folder)
        self.prefix = [found, "-cpu", processor, "-L", "/usr/aarch64-linux-gnu"]

    def call(self, *command, **kwargs):
        return self.tools.call("izh-rt", *command, prefix=self.prefix, **kwargs)

    def refused(self, *command, **kwargs):
        return self.tools.refused("izh-rt", *command, prefix=self.prefix, **kwargs)

    def logits(self, artifact, ids, *options):
        return self.tools.logits(artifact, ids, *options, prefix=self.prefix)


def choice(tools, folder, artifact):
    """Each processor gets the best variant that it can run, and reasons for the others."""
    for processor, variant in PROCESSORS.items():
        facts = json.loads(Machine(tools, folder, processor).call("info", artifact, "--json").stdout)
        expect(facts["variant"] == variant, f"{processor} gets {facts['variant']}, not {variant}")
        reasons = {entry["variant"]: entry["reason"] for entry in facts["skipped"]}
        expect("x86_64" in reasons["avx2"], f"avx2 is skipped because it {reasons['avx2']}")
        if variant == "neon":
            expect("dotprod" in reasons["neon-dotprod"], f"neon-dotprod is skipped because it {reasons['neon-dotprod']}")
    return ", ".join(f"{processor} {variant}" for processor, variant in PROCESSORS.items())


def refusals(tools, folder, artifact, model):
    """A machine without code for it says so."""
    old = Machine(tools, folder, "cortex-a72")
    foreign = tools.compile(model, "foreign.izh", "--target=avx2")
    newest = tools.compile(model, "newest.izh", "--target=neon-i8mm")
    old.refused(foreign, "-p", "a", says=["no variant of", "foreign.izh runs on this machine", "x86_64", "aarch64"])
    old.refused("info", artifact, "--require", "dotprod", says=["dotprod is required"])
    facts = json.loads(old.call("info", foreign, "--json").stdout)
    expect(facts["variant"] is None and "x86_64" in facts["skipped"][0]["reason"], f"info says {facts}")
    return old.refused(newest, "-p", "a", says=["no variant of", "newest.izh runs on this machine", "i8mm"])


def accuracy(tools, folder, options):
    """The variants are as near to the reference as those of other machines."""
    path = tools.once(("arm", options), ".gguf", lambda part: make_gguf.make([str(part), *options]))
    artifact = tools.compile(path, "arm.izh", "--target=" + ",".join(VARIANTS))
    model, machine = Model(path), Machine(tools, folder, "max")
    ids = ids_of(TOKENS, len(model.weights["token_embd.weight"]))
    expected = model.logits(ids)
    bar = bar_of({t.kind for t in gguf.read(path)[1].values() if len(t.shape) > 1})
    notes = []
    for variant in VARIANTS:
        error = nmse(machine.logits(artifact, ids, "--variant", variant, "--threads", 1), expected)
        expect(error <= bar, f"NMSE {error:.3e} of {variant} is over {bar:g}")
        notes.append(f"{variant} {error:.1e}")
    return ", ".join(notes)


def invariance(tools, folder, options):
    """Threads and chunks change no bit."""
    path = tools.once(("arm", options), ".gguf", lambda part: make_gguf.make([str(part), *options]))
    artifact = tools.compile(path, "arm.izh", "--target=" + ",".join(VARIANTS))
    machine, ids = Machine(tools, folder, "max"), ids_of(23, 260)
    for variant in VARIANTS:
        base = machine.logits(artifact, ids, "--variant", variant, "--threads", 1)
        for changed in (["--threads", 2], ["--threads", 2, "--chunk", 1], ["--threads", 1, "--chunk", 7]):
            other = machine.logits(artifact, ids, "--variant", variant, *changed)
            expect(np.array_equal(base.view(np.uint32), other.view(np.uint32)), f"{variant} {changed} differs")


def text(tools, folder, model, count=4):
    """The real model begins its answer as the reference does."""
    machine, artifact = Machine(tools, folder, "max"), default_artifact(tools, model)
    answer = json.loads(machine.call("run", artifact, "-p", PROMPT, "-n", count, "--temp", 0, "--json").stdout)
    clear = check_greedy(answer["tokens"], IDS, Model(model).logits(IDS + answer["tokens"]), GAP)
    expect(clear == count, f"only {clear} tokens are clear")
    return repr(answer["text"])


def run(suite, tools, folder, smollm2):
    if folder is None:
        def nothing():
            raise Skip("there is no izh-rt for it")
        suite.run("64-bit Arm", nothing)
        return
    for name, options in MODELS.items():
        suite.run(f"Arm accuracy {name}", accuracy, tools, folder, options)
    tiny = tools.once("arm choice", ".gguf", lambda part: make_gguf.make([str(part), *MODELS["odd sizes"]]))
    every = tools.compile(tiny, "every.izh", every=True)
    suite.run("Arm choice of variants", choice, tools, folder, every)
    suite.run("Arm refusals", refusals, tools, folder, every, tiny)
    suite.run("Arm invariance", invariance, tools, folder, MODELS["blocks of 256"])
    if smollm2:
        suite.run("Arm text of SmolLM2", text, tools, folder, smollm2)
