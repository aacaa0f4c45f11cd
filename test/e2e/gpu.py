"""GPU variants without a GPU: izh-rt with the driver of test/ptx, which runs
kernels in an interpreter, against reference.py. And with a GPU, where one is."""

import contextlib
import json
import os
import pathlib

import numpy as np

from harness import Skip, check_greedy, expect
from reference import nmse
from tiny import CODES_BARS, Case, MIXED, MIXTURE, ODD, bar_of, ids_of
import gguf

TARGETS = "--target=cuda"
# Few tokens: an instruction of a thread takes the interpreter 20 ns.
TOKENS = 11
MODELS = {
    "blocks of 32": ["--arch=llama", "--kind=q4_0", "--override=attn_output=q4_1", "--override=ffn_gate=q5_0",
                     "--override=ffn_up=q5_1", "--override=ffn_down=q8_0", "--layers=1"],
    "K-quants": ["--arch=qwen3", "--kind=q4_k", "--layers=1", *MIXED],
    "floats": ["--arch=qwen3", "--kind=f16", "--override=attn_output=bf16", "--override=ffn_down=f32", "--layers=1"],
    "odd sizes": ["--arch=qwen2", "--kind=q4_0", "--layers=1", *ODD],
    "experts": ["--arch=qwen3moe", "--kind=q4_0", "--layers=1", *MIXTURE],
    "states": ["--arch=lfm2", "--kind=f16", "--layers=4"],
}


# Heads whose keys and values one row reads ahead.
SPANS = ["--arch=qwen3", "--kind=q4_0", "--layers=1"]

# Spans of more chunks than are copied together, which begin within blocks of 256; and a
# record that the kernel before leaves.
MANY_COLUMNS = {
    "q6_k": ["--ffn=5376", "--override=ffn_down=q6_k"],
    "q4_0": ["--width=3136", "--ffn=4096", "--heads=2", "--kv-heads=1", "--head-size=32"],
}


class Gpu:
    """Runs izh-rt with the driver that the tests bring, or with the machine's."""

    def __init__(self, tools, fake=True, **environment):
        self.tools, self.environment = tools, {}
        if fake:
            folder = tools.binaries.parent / "test" / "ptx"
            if not (folder / "libcuda.so.1").exists():
                raise Skip("the driver of test/ptx is not built")
            self.environment["LD_LIBRARY_PATH"] = str(folder)
        self.environment.update(environment)

    @contextlib.contextmanager
    def inside(self, environment):
        before = dict(os.environ)
        os.environ.update(self.environment, **environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def call(self, *command, status=0, **environment):
        with self.inside(environment):
            done = self.tools.call("izh-rt", *command, "--device", "cuda", status=status)
        expect("not freed" not in done.stderr, done.stderr.strip())
        return done

    def refused(self, *command, says=(), device="cuda", **environment):
        with self.inside(environment):
            return self.tools.refused("izh-rt", *command, "--device", device, says=says)

    def logits(self, artifact, ids, *options):
        with self.inside({}):
            return self.tools.logits(artifact, ids, "--device", "cuda", *options)


def accuracy(tools, options, bar=None, compile_options=()):
    """Both variants are as near to the reference as the processors' are."""
    case = Case(tools, options, TOKENS, [TARGETS, *compile_options])
    gpu, notes = Gpu(tools), []
    bar = bar or bar_of({t.kind for t in gguf.read(case.gguf)[1].values() if len(t.shape) > 1})
    for variant in ("cuda:sm_80", "cuda:sm_90"):
        error = nmse(gpu.logits(case.artifact, case.ids, "--variant", variant), case.expected)
        expect(error <= bar, f"NMSE {error:.3e} of {variant} is over {bar:g}")
        notes.append(f"{variant} {error:.1e}")
    return ", ".join(notes)


def invariance(tools, options, tokens=TOKENS):
    """Chunks of a prompt change no bit, whether steps are launched or replayed."""
    case = Case(tools, options, tokens, [TARGETS])
    gpu = Gpu(tools)
    base = gpu.logits(case.artifact, case.ids)
    for chunk in (1, 4):
        other = gpu.logits(case.artifact, case.ids, "--chunk", chunk)
        expect(np.array_equal(base.view(np.uint32), other.view(np.uint32)), f"chunks of {chunk} differ")


def spans(tools, options):
    """A step of one row whose keys fill more than a span of attention gives the bits of a step of many."""
    case = Case(tools, options, TOKENS, [TARGETS])
    gpu = Gpu(tools)
    ids = ids_of(261, len(case.model.weights["token_embd.weight"]))
    for variant in ("cuda:sm_80", "cuda:sm_90"):
        base = gpu.logits(case.artifact, ids, "--variant", variant)
        last = gpu.logits(case.artifact, ids, "--variant", variant, "--chunk", 260)
        expect(np.array_equal(base.view(np.uint32), last.view(np.uint32)), f"the last row differs on {variant}")


def choice(tools, options):
    """The best variant that the GPU can run is chosen, and others say why not."""
    case = Case(tools, options, TOKENS, [TARGETS])
    gpu, notes = Gpu(tools), []
    for capability, wanted in (("80", "cuda:sm_80"), ("89", "cuda:sm_80"), ("90", "cuda:sm_90"), ("120", "cuda:sm_90")):
        facts = json.loads(gpu.call("info", case.artifact, "--json", IZH_FAKE_CAPABILITY=capability).stdout)
        expect(facts["variant"] == wanted, f"a GPU of {capability} gets {facts['variant']}, not {wanted}")
        notes.append(f"{capability} {wanted}")
    # Blocks of such a GPU share too little memory for the code of the later one.
    facts = json.loads(gpu.call("info", case.artifact, "--json", IZH_FAKE_CAPABILITY="120", IZH_FAKE_SHARED="99").stdout)
    expect(facts["variant"] == "cuda:sm_80", f"a GPU with 99 KiB gets {facts['variant']}")
    gpu.refused(case.artifact, "-p", "a", says=["no variant of", "sm_80", "Fake GPU"], IZH_FAKE_CAPABILITY="75")
    return ", ".join(notes)


def refusals(tools, options):
    """What is missing or fails is a sentence, and status 1."""
    case = Case(tools, options, TOKENS, [TARGETS])
    gpu = Gpu(tools)
    ids = tools.work / "few.json"
    ids.write_text("[5, 6, 7]")
    run = ["logits", case.artifact, "--tokens", ids, "-o", tools.work / "few.npy"]
    none = Gpu(tools)
    none.environment["LD_LIBRARY_PATH"] = ""
    if not any((pathlib.Path(folder) / "libcuda.so.1").exists() for folder in
               ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/aarch64-linux-gnu")):
        none.refused(*run, says=["libcuda.so.1", "install the driver", "--device cpu"])
    gpu.refused(*run, says=["CUDA 10.2", "11.0", "update the driver"], IZH_FAKE_VERSION="10020")
    gpu.refused(*run, says=["no CUDA-capable device"], IZH_FAKE_GPUS="0")
    gpu.refused(*run, says=["cuda:3 was asked for", "2 GPUs"], device="cuda:3", IZH_FAKE_GPUS="2")
    gpu.refused(*run, says=["--device is 'cuda:x'", "cpu, cuda"], device="cuda:x")
    gpu.refused(*run, says=["Fake GPU", "MiB left", "ask for fewer"], IZH_FAKE_MEMORY=str(1 << 20))
    for call in ("cuMemAlloc_v2:1:2", "cuMemAlloc_v2:4:2", "cuMemHostAlloc:2:2", "cuMemHostAlloc:3:2"):
        gpu.refused(*run, says=["cuda:0"], IZH_FAKE_FAIL=call)
    for call in ("cuModuleLoadDataEx:1:222", "cuModuleGetFunction:2", "cuMemcpyHtoDAsync_v2:1",
                 "cuLaunchKernelEx:3", "cuStreamSynchronize:6", "cuMemcpyDtoHAsync_v2:1", "cuDevicePrimaryCtxRetain:1"):
        gpu.refused(*run, says=["cuda:0"], IZH_FAKE_FAIL=call)
    # A driver without launches that overlap starts kernels one after the other.
    gpu.refused(*run, says=["cuda:0"], IZH_FAKE_FAIL="cuLaunchKernel:3", IZH_FAKE_VERSION="12000")
    for call in ("cuStreamBeginCapture_v2:1", "cuStreamEndCapture:1", "cuGraphInstantiateWithFlags:1", "cuGraphLaunch:1"):
        gpu.refused(*run, "--chunk", 1, says=["cuda:0"], IZH_FAKE_FAIL=call)
    # A processor has no use for a GPU's code.
    return tools.refused("izh-rt", *run, says=["no variant of", "is for GPUs"])


def beside_processors(tools, options):
    """One artifact with one copy of the weights holds both kinds of code."""
    case = Case(tools, options, TOKENS, ["--target=native,cuda"])
    gpu = Gpu(tools)
    there, here = gpu.logits(case.artifact, case.ids), tools.logits(case.artifact, case.ids)
    expect(nmse(there, here) < 1e-3, f"NMSE {nmse(there, here):.1e} between the two")
    facts = json.loads(tools.call("izh-rt", "info", case.artifact, "--json").stdout)
    expect(not facts["variant"].startswith("cuda"), "without --device a GPU's code was chosen")


def greedy(tools, options):
    """Text on the GPU is the reference's, token by token."""
    case = Case(tools, options, TOKENS, [TARGETS])
    gpu = Gpu(tools)
    ids = json.loads(gpu.call("tokenize", case.artifact, "-p", "the thing", "--json").stdout)
    answer = json.loads(gpu.call("run", case.artifact, "-p", "the thing", "-n", 6, "--temp", 0, "--json").stdout)
    clear = check_greedy(answer["tokens"], ids, case.model.logits(ids + answer["tokens"]), gap=0.15)
    expect(clear > 0, "no token is clear")
    return f"{clear} of {len(answer['tokens'])} tokens are clear"


def run(suite, tools):
    for name, options in MODELS.items():
        suite.run(f"gpu {name}", accuracy, tools, options)
    codes = ["--arch=olmo2", "--kind=f16", "--layers=1", "--width=128", "--ffn=256", "--head-size=32"]
    suite.run("gpu cache of codes", accuracy, tools, codes, CODES_BARS["q8_0"], ["--exact", "--kv=q8_0"])
    small = MODELS["blocks of 32"]
    suite.run("gpu invariance", invariance, tools, MODELS["K-quants"])
    suite.run("gpu invariance, experts", invariance, tools, MODELS["experts"])
    for kind, options in MANY_COLUMNS.items():
        options = ["--arch=qwen3", "--kind=q4_0", "--layers=1", *options]
        suite.run(f"gpu many columns, {kind}", invariance, tools, options, 3)
    suite.run("gpu spans", spans, tools, SPANS)
    suite.run("gpu choice of variants", choice, tools, small)
    suite.run("gpu refusals", refusals, tools, small)
    suite.run("gpu beside processors", beside_processors, tools, small)
    suite.run("gpu text", greedy, tools, small)
