"""What users do wrong ends with a status and a sentence, never a signal."""

import json
import os
import struct
import subprocess

import gguf as gguf_file
import make_folder
import make_gguf
from harness import Skip, expect


SIZES = ["--kind=q4_0", "--width=64", "--heads=2", "--kv-heads=1", "--head-size=32", "--ffn=64", "--layers=1"]


def make_model(tools):
    path = tools.work / "errors.gguf"
    make_gguf.make([str(path), *SIZES])
    return path, tools.compile(path, "errors.izh")


def truncated(tools, path, command):
    """Every cut of a file is refused or, where only padding is missing, read."""
    data, cut = path.read_bytes(), tools.work / f"cut{path.suffix}"
    sizes = [0, 1, 4, 8, 23, 24, 64, 100, 1000, len(data) // 3, len(data) // 2, len(data) - 4096]
    for size in sizes:
        cut.write_bytes(data[:size])
        tools.refused(*command(cut), says=[cut.name])
    return f"{len(sizes)} lengths"


def bad_ids(tools, artifact):
    ids = tools.work / "bad.json"
    for text in ("[1, 999999]", "[-1]", "[]", "[1.5]", "{", "[" * 100_000, ""):
        ids.write_text(text)
        tools.refused("izh-rt", "logits", artifact, "--tokens", ids, "-o", tools.work / "bad.npy")


def info(tools, artifact):
    facts = json.loads(tools.call("izh-rt", "info", artifact, "--json").stdout)
    expect(isinstance(facts["variant"], str), "info has no variant")
    for entry in facts["skipped"]:
        expect(entry["variant"] and entry["reason"], f"a skipped variant without a reason: {entry}")
    return facts["variant"]


def verify(tools, artifact):
    """A whole file passes; one with a flipped byte of a weight does not."""
    tools.call("izh-rt", "verify", artifact)
    data, flipped = bytearray(artifact.read_bytes()), tools.work / "flipped.izh"
    # The weights end with the file; elsewhere there may be padding.
    data[-100] ^= 16
    flipped.write_bytes(data)
    return tools.refused("izh-rt", "verify", flipped, says=[flipped.name])


def outputs(tools, gguf, artifact):
    """No input is overwritten, a link stays one, and nothing unfinished is left."""
    ids, link, target = tools.work / "one.json", tools.work / "link.izh", tools.work / "linked.izh"
    ids.write_text("[1, 2, 3]")
    for path in (artifact, ids):
        before = path.read_bytes()
        tools.refused("izh-rt", "logits", artifact, "--tokens", ids, "-o", path, says=[path.name], status=2)
        expect(path.read_bytes() == before, f"{path} was overwritten")
    folder, text = tools.work / "inputs", tools.work / "inputs.txt"
    floats = tools.work / "floats.gguf"
    make_gguf.make([str(floats), *SIZES, "--kind=f16"])
    make_folder.make(floats, folder, "llama")
    text.write_text("once upon a time")
    for path in (folder / "config.json", folder / "tokenizer.json", *folder.glob("*.safetensors")):
        before = path.read_bytes()
        tools.refused("izhc", "compile", folder, "--target=reference", "-o", path, says=["-o", path.name], status=2)
        expect(path.read_bytes() == before, f"{path} was overwritten")
    for command in (("calibrate", gguf, "-f", text, "-o", text), ("check", gguf, folder, "-f", text, "--svg", text),
                    ("compile", gguf, "--quant=q4_0", "--imatrix", text, "-o", text)):
        tools.refused("izhc", *command, says=["inputs.txt is one of the inputs"], status=2)
    expect(text.read_text() == "once upon a time", "the text was overwritten")
    tools.call("izhc", "compile", folder, "--target=reference", "-o", folder / "inputs.izh")
    tools.call("izhc", "compile", folder, "--target=reference", "-o", folder / "inputs.izh")
    link.unlink(missing_ok=True)
    target.write_bytes(b"old")
    link.symlink_to(target.name)
    tools.call("izhc", "compile", gguf, "--target=reference", "-o", link)
    expect(link.is_symlink(), "the link was replaced")
    tools.call("izh-rt", "verify", target)
    # A failure keeps the file that was there.
    old = tools.work / "old.npy"
    old.write_bytes(b"old")
    tools.refused("izh-rt", "logits", artifact, "--tokens", ids, "-o", old, "--ctx", 2)
    expect(old.read_bytes() == b"old", "a failed command changed its output")
    limited = ["prlimit", "--fsize=2048"]
    tools.refused("izh-rt", "logits", artifact, "--tokens", ids, "-o", old, prefix=limited, says=["old.npy"])
    tools.refused("izhc", "compile", gguf, "--target=reference", "-o", tools.work / "new.izh", prefix=limited,
                  says=["TMPDIR"])
    left = [path.name for path in tools.work.iterdir() if ".tmp" in path.name or path.name == "new.izh"]
    expect(not left, f"left behind: {left}")


def inspected(tools, gguf):
    """JSON has the values of a model's keys, lists whole."""
    keys = lambda path: {key: meta["value"] for key, meta in
                         json.loads(tools.call("izhc", "inspect", path, "--json").stdout)["metadata"].items()}
    found = keys(gguf)
    for key, value in gguf_file.read(gguf)[0].items():
        expect(found[key] == (value.tolist() if hasattr(value, "tolist") else value), f"{key}: {found[key]} is not {value}")
    odd = {"x.nan": (gguf_file.F32, float("nan")), "x.infinite": (gguf_file.F32, float("inf")), "x.flag": (gguf_file.BOOL, True),
           "x.list": (gguf_file.ARRAY, (gguf_file.F32, [1.5, float("nan")])),
           "x.lists": (gguf_file.ARRAY, (gguf_file.ARRAY, [(gguf_file.I32, [1, 2]), (gguf_file.I32, [3])]))}
    gguf_file.write(tools.work / "odd.gguf", odd, {})
    found = keys(tools.work / "odd.gguf")
    lists = found.pop("x.lists")
    expect(isinstance(lists, str), f"lists of lists are {lists}, not text")
    expected = {"x.nan": None, "x.infinite": None, "x.flag": True, "x.list": [1.5, None]}
    expect(found == expected, f"{found} is not {expected}")
    floats, folder = tools.work / "inspected.gguf", tools.work / "inspected"
    make_gguf.make([str(floats), *SIZES, "--kind=f16"])
    make_folder.make(floats, folder, "llama")
    found = keys(folder)
    for key, value in json.loads((folder / "config.json").read_text()).items():
        expect(isinstance(value, dict) or found[key] == value, f"{key}: {found.get(key)} is not {value}")


def inspected_long(tools):
    """Lists in JSON take memory of the file's size, not of so many values of JSON."""
    count = 4 << 20
    head = struct.pack("<QQ", 0, 1) + struct.pack("<Q", 4) + b"long"
    path = tools.work / "long.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + head + struct.pack("<IIQ", gguf_file.ARRAY, 0, count) + bytes(count))
    done = tools.call("izhc", "inspect", path, "--json", prefix=["prlimit", f"--data={160 << 20}"])
    expect(len(json.loads(done.stdout)["metadata"]["long"]["value"]) == count, "the list is not whole")


def unread(tools, gguf, artifact):
    """A reader that leaves early (`| head`) is no error."""
    for command in (["izhc", "inspect", gguf], ["izhc", "inspect", artifact, "--json"], ["izh-rt", "info", artifact]):
        program, *rest = map(str, command)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([str(tools.binaries / program), *rest], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        expect(done.returncode == 0, f"{command} ended with {done.returncode}")
        expect(not done.stderr, f"{command} says {done.stderr}")


def no_threads(tools, gguf):
    """Stacks that don't fit into the address space: no thread can start."""
    limited = ["prlimit", f"--as={4 << 30}", f"--stack={16 << 30}"]
    if subprocess.run([*limited, "true"], capture_output=True).returncode != 0:
        raise Skip("the limits can't be set here")
    tools.refused("izhc", "compile", gguf, "--target=reference", "-o", tools.work / "new.izh", prefix=limited,
                  says=["izhc: ", "thread", "limits"])


def little_memory(tools, gguf):
    """Too little address space ends with a sentence wherever it runs out, in
    this program or in the libraries that it uses."""
    def limit(megabytes):
        return ["prlimit", f"--as={megabytes << 20}"]
    least = 64
    while subprocess.run([*limit(least), tools.binaries / "izhc", "targets"], capture_output=True).returncode != 0:
        least += 16
        if least > 4096:
            raise Skip("the limit can't be set here")
    refused = 0
    for more in range(0, 240, 15):
        command = [*limit(least + more), str(tools.binaries / "izhc"), "compile", str(gguf),
                   "--target=avx2,reference", "-j2", "-o", str(tools.work / "new.izh")]
        done = subprocess.run(command, capture_output=True, timeout=60)
        expect(done.returncode in (0, 1), f"with {least + more} MB izhc ended with {done.returncode}")
        said = done.stderr.decode().strip()
        expect(done.returncode == 0 or said.startswith("izhc: "), f"with {least + more} MB izhc says '{said}'")
        refused += done.returncode
    expect(refused, "no limit was too low")
    return f"{refused} of 16 limits from {least} MB on are too low"


def scratch(tools, gguf):
    """What to do where the folder for temporary files is of no use."""
    for folder in ("/nowhere", "/dev/null"):
        tools.refused("izhc", "compile", gguf, "--target=reference", "-o", tools.work / "new.izh", says=[folder, "TMPDIR"],
                      prefix=["env", f"TMPDIR={folder}"])


def perplexity_room(tools, artifact):
    text = tools.work / "long.txt"
    text.write_text("ab " * 1000)
    tools.refused("izh-rt", "perplexity", artifact, "-f", text, "--window", 1024, says=["1024", "--window"])
    tools.refused("izh-rt", "perplexity", artifact, "-f", text, "--window", 64, "--ctx", 63, says=["64", "--ctx"])
    tools.call("izh-rt", "perplexity", artifact, "-f", text, "--window", 64, "--ctx", 64)


def with_output_norm(tools, name, value):
    """A tiny model whose last norm consists of one float32, given as bytes."""
    path = tools.work / name
    options = make_gguf.options([str(path), *SIZES])
    metadata, tensors = make_gguf.make_metadata(options), make_gguf.make_tensors(options)
    norm = tensors["output_norm.weight"]
    tensors["output_norm.weight"] = gguf_file.Tensor("f32", norm.shape, value * norm.shape[0])
    gguf_file.write(path, metadata, tensors)
    return path


def not_numbers(tools):
    """Weights that are no numbers don't compile."""
    path = with_output_norm(tools, "nan.gguf", b"\0\0\xc0\x7f")
    tools.refused("izhc", "compile", path, "--target=reference", "-o", tools.work / "nan.izh",
                  says=["nan.gguf: ", "output_norm.weight", "not a number"])


def overflow(tools):
    """Logits that are no numbers must not become a text. The weights are: the largest float32."""
    path = with_output_norm(tools, "huge.gguf", b"\xff\xff\x7f\x7f")
    artifact, text = tools.compile(path, "huge.izh", "--target=reference"), tools.work / "text.txt"
    text.write_text("some text")
    tools.refused("izh-rt", "run", artifact, "-p", "hi", says=["finite"])
    tools.refused("izh-rt", "perplexity", artifact, "-f", text, says=["finite"])


def help_texts(tools):
    commands = {"izhc": ["compile", "inspect", "targets", "tokenize"],
                "izh-rt": ["run", "bench", "logits", "perplexity", "tokenize", "info", "verify"]}
    for program, names in commands.items():
        tools.call(program, "--help")
        for name in names:
            expect(tools.call(program, name, "--help").stdout, f"{program} {name} --help says nothing")


def run(suite, tools):
    made = suite.make("small model", make_model, tools)
    if made is None:
        return
    gguf, artifact = made
    missing = tools.work / "missing"
    suite.run("help of every command", help_texts, tools)
    suite.run("info", info, tools, artifact)
    suite.run("verify", verify, tools, artifact)
    suite.run("inspect --json", inspected, tools, gguf)
    suite.run("inspect --json of a long list", inspected_long, tools)
    suite.run("missing model", tools.refused, "izhc", "compile", missing, says=["missing"])
    suite.run("missing artifact", tools.refused, "izh-rt", "info", missing, says=["missing"])
    suite.run("artifact that is a GGUF", tools.refused, "izh-rt", "info", gguf, says=[gguf.name])
    suite.run("GGUF that is an artifact", tools.refused, "izhc", "compile", artifact, says=[artifact.name])
    suite.run("unknown option of izhc", tools.refused, "izhc", "compile", gguf, "--nonsense", status=2)
    suite.run("unknown option of izh-rt", tools.refused, "izh-rt", "run", artifact, "--nonsense", status=2)
    suite.run("unknown command", tools.refused, "izhc", "nonsense", status=2)
    suite.run("unknown cache", tools.refused, "izhc", "compile", gguf, "--kv=q5_1", status=2, says=["q5_1", "q8_0"])
    suite.run("unknown target", tools.refused, "izhc", "compile", gguf, "--target=z80", says=["z80"], status=2)
    suite.run("unknown variant", tools.refused, "izh-rt", "info", artifact, "--variant", "z80", says=["z80"])
    suite.run("unknown feature", tools.refused, "izh-rt", "info", artifact, "--require", "z80", says=["z80"])
    suite.run("output that cannot be written", tools.refused, "izhc", "compile", gguf, "-o", "/nowhere/x.izh",
              says=["/nowhere"])
    suite.run("outputs", outputs, tools, gguf, artifact)
    suite.run("a reader that left", unread, tools, gguf, artifact)
    suite.run("no threads", no_threads, tools, gguf)
    suite.run("little memory", little_memory, tools, gguf)
    suite.run("temporary files", scratch, tools, gguf)
    suite.run("windows beyond the context", perplexity_room, tools, artifact)
    suite.run("weights that are no numbers", not_numbers, tools)
    suite.run("logits that are no numbers", overflow, tools)
    suite.run("ids that are none", bad_ids, tools, artifact)
    suite.run("truncated GGUF", truncated, tools, gguf,
              lambda cut: ["izhc", "compile", cut, "-o", tools.work / "cut-out.izh"])
    suite.run("truncated artifact", truncated, tools, artifact, lambda cut: ["izh-rt", "verify", cut])
