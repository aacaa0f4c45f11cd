"""Quantizing by the compiler and writing GGUF files back: types, errors of the
weights, and that what is written computes the same."""

import json

import numpy as np

import blocks
import gguf
import make_gguf
from harness import expect
from reference import Model, nmse
from tiny import BLOCK256_BAR, ids_of

# Recipe, what most matrices become, their largest relative error. The weights
# are normal; plain rounding with one scale for 32 has .090 (4 bits), .0060 (8).
RECIPES = [("q4_k_m", "q4_k", .075), ("q4_0", "q4_0", .088), ("q8_0", "q8_0", .0060)]


FLOATS = ["--arch=qwen3", "--kind=f32", "--layers=2"]


def make(tools):
    path = tools.work / "floats.gguf"
    make_gguf.make([str(path), *FLOATS])
    return path


def recipe(tools, source, name, kind, bar):
    """The recipe's types, errors below the bar, and the file has the artifact's logits."""
    artifact = tools.compile(source, f"{name}.izh", "--quant", name, "--target=native")
    back = tools.work / f"{name}.gguf"
    tools.call("izhc", "export", artifact, "-o", back)
    before, after = gguf.read(source)[1], gguf.read(back)[1]
    expect(list(before) == list(after), "the tensors are others")
    worst = 0
    for tensor, stored in after.items():
        expect(stored.shape == before[tensor].shape, f"{tensor} is {stored.shape}")
        wanted = "f32" if len(stored.shape) == 1 else kind
        if stored.kind != wanted and len(stored.shape) > 1:
            expect(stored.kind in ("q6_k", "q5_k"), f"{tensor} is {stored.kind}")
        was, now = blocks.decode(before[tensor]), blocks.decode(stored)
        if stored.kind == kind:
            worst = max(worst, np.sqrt(((was - now)**2).sum() / (was**2).sum()))
    expect(worst <= bar, f"the weights are off by {worst:.4f}, over {bar}")
    ids = ids_of(24, before["token_embd.weight"].shape[0])
    same = tools.logits(tools.compile(back, f"{name}-back.izh", "--target=native"), ids)
    logits = tools.logits(artifact, ids)
    expect(np.array_equal(logits, same), "the exported file has other logits")
    error = nmse(logits, Model(back).logits(ids))
    expect(error <= BLOCK256_BAR, f"NMSE {error:.2e} of the logits")
    return f"weights {worst:.4f}, logits {error:.1e}"


MIXED = ["--arch=llama", "--kind=q4_1", "--override=attn_v=q6_k", "--override=ffn_up=q5_0",
         "--override=ffn_down=f16", "--override=output=q8_0", "--width=256"]
# Queries, keys and values in one matrix, as gates and ups.
SHARED_ROWS = ["--arch=phi3", "--kind=q8_0"]
EXPERTS = ["--arch=qwen3moe", "--kind=f16", "--experts=3", "--expert-ffn=40"]


def bits_back(tools, options):
    """Every byte of every tensor and every key comes back."""
    source, back = tools.work / "mixed.gguf", tools.work / "mixed-back.gguf"
    make_gguf.make([str(source), *options])
    tools.call("izhc", "export", tools.compile(source, "mixed.izh", "--target=native"), "-o", back)
    (keys, tensors), (keys_back, tensors_back) = gguf.read(source), gguf.read(back)
    expect(keys == keys_back, "the keys are others")
    expect(list(tensors) == list(tensors_back), "the tensors are others")
    for name, tensor in tensors.items():
        got = tensors_back[name]
        expect((tensor.kind, tensor.shape) == (got.kind, got.shape), f"{name} is {got.kind} {got.shape}")
        expect(tensor.data == got.data, f"the bytes of {name} are others")
    return f"{len(tensors)} tensors"


class Listening(Model):
    """Sums the squares of what each matrix is multiplied with."""

    def linear(self, x, name):
        self.squares[name + ".weight"] = (np.asarray(x, np.float64)**2).mean(axis=0)
        return super().linear(x, name)


def calibrate(tools, source):
    """The means of squares are those of the reference; they are taken for quantizing."""
    text, out = tools.work / "calibration.txt", tools.work / "imatrix.gguf"
    text.write_text("The heart of the matter is in the details, and in the hat. " * 4)
    tools.call("izhc", "calibrate", source, "-f", text, "-o", out)
    ids = json.loads(tools.call("izhc", "tokenize", source, "-f", text, "--no-special").stdout)
    model = Listening(source)
    model.squares = {}
    model.logits(ids)
    keys, tensors = gguf.read(out)
    expect(keys["general.type"] == "imatrix", f"keys {keys}")
    got = {name[:-len(".in_sum2")] for name in tensors if name.endswith(".in_sum2")}
    expect(got == set(model.squares), f"matrices {sorted(got ^ set(model.squares))}")
    for name, wanted in model.squares.items():
        sums, counts = (np.frombuffer(tensors[name + end].data, np.float32) for end in (".in_sum2", ".counts"))
        expect(counts[0] == len(ids), f"{counts[0]} rows of {name} for {len(ids)} tokens")
        error = np.abs(sums / counts[0] - wanted).max() / wanted.max()
        expect(error < 1e-3, f"{name} is off by {error:.1e}")
    tools.compile(source, "calibrated.izh", "--quant=q4_k_m", "--imatrix", str(out), "--target=native")
    return f"{len(got)} matrices, {len(ids)} tokens"


def beyond_range(tools):
    """Weights that a type can't hold are told, not cut, with file and tensor; other types hold them."""
    path, name = tools.work / "large.gguf", "blk.1.ffn_up.weight"
    options = make_gguf.options([str(path), *FLOATS])
    keys, tensors = make_gguf.make_metadata(options), make_gguf.make_tensors(options)
    values = np.frombuffer(tensors[name].data, np.float32).copy()

    def write(value):
        values[100] = value
        tensors[name] = gguf.Tensor("f32", tensors[name].shape, values.tobytes())
        gguf.write(path, keys, tensors)

    def refuse(kind, *says):
        tools.refused("izhc", "compile", path, "--target=reference", "--tensor-type", f"ffn_up={kind}",
                      "-o", tools.work / "large.izh", says=["large.gguf: ", name, *says])

    write(1e7)
    for kind, most in (("q8_0", 65504 * 127), ("q4_0", 65504 * 7), ("q4_1", 65504), ("f16", 65504)):
        refuse(kind, f"above {most} in magnitude, which {kind} can't hold", "--tensor-type")
    for kind in ("q6_k", "bf16"):
        tools.compile(path, "large.izh", "--target=reference", "--tensor-type", f"ffn_up={kind}")
    write(np.nan)
    refuse("q8_0", "not a number")


# Bits of a weight, with the scales of its block.
BITS = {"q4_k": 4.5, "q5_0": 5.5, "q6_k": 6.5625, "q8_0": 8.5}


def other_types(tools):
    """Rows that blocks of 256 don't divide: what the weights take is told."""
    source, back = tools.work / "narrow.gguf", tools.work / "narrow-back.gguf"
    make_gguf.make([str(source), *FLOATS, "--width=96", "--heads=3", "--kv-heads=3", "--head-size=32", "--ffn=256"])
    artifact = tools.work / "narrow.izh"
    compiled = lambda recipe: tools.call("izhc", "compile", source, "--quant", recipe, "--target=reference",
                                         "-o", artifact).stderr
    expect("whole blocks" not in compiled("q8_0"), "a warning without reason")
    said = compiled("q4_k_m")
    tools.call("izhc", "export", artifact, "-o", back)
    bits = weights = 0
    for tensor in gguf.read(back)[1].values():
        if len(tensor.shape) > 1:
            size = int(np.prod(tensor.shape))
            weights, bits = weights + size, bits + size * BITS[tensor.kind]
    expect("a type that q4_k_m has for them" in said and f": {bits / weights:.2f} bits a weight" in said, said)
    return said.strip().splitlines()[-2][:160]


def twice(tools, source):
    """Weights that lost something before lose more: it is told."""
    small, large = tools.work / "twice-4.gguf", tools.work / "twice-8.gguf"
    for path, recipe in ((small, "q4_0"), (large, "q8_0")):
        tools.call("izhc", "export", tools.compile(source, "twice.izh", "--quant", recipe, "--target=reference"), "-o", path)
    says = lambda path, *options: "quantized before" in tools.call(
        "izhc", "compile", path, *options, "--target=reference", "-o", tools.work / "twice.izh").stderr
    expect(says(small, "--tensor-type=.*=q4_1"), "nothing is said of codes of 4 bits")
    expect(not says(large, "--quant=q4_0") and not says(source, "--quant=q4_0") and not says(small), "a warning without reason")


def refusals(tools, source):
    out = tools.work / "refused.gguf"
    tools.refused("izhc", "compile", source, "--quant", "q9", "-o", out, says=["no recipe 'q9'", "q4_k_m"], status=2)
    tools.refused("izhc", "compile", source, "--tensor-type", "nothing=q8_0", "-o", out, says=["'nothing=q8_0'"])
    tools.refused("izhc", "compile", source, "--imatrix", source, "-o", out, says=["--quant"], status=2)
    tools.refused("izhc", "export", source, "-o", out, says=[source.name, "no .izh file"])


def run(suite, tools):
    source = suite.make("quantize: a model of floats", make, tools)
    if not source:
        return
    for name, kind, bar in RECIPES:
        suite.run(f"quantize {name}", recipe, tools, source, name, kind, bar)
    suite.run("export gives back every bit", bits_back, tools, MIXED)
    suite.run("export gives back every bit of experts", bits_back, tools, EXPERTS)
    suite.run("export gives back matrices that are several in the artifact", bits_back, tools, SHARED_ROWS)
    suite.run("quantize: calibrate", calibrate, tools, source)
    suite.run("quantize: weights beyond the type's range", beyond_range, tools)
    suite.run("quantize: rows that other types fit", other_types, tools)
    suite.run("quantize: what was quantized before", twice, tools, source)
    suite.run("quantize and export refuse", refusals, tools, source)
