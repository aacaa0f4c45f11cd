"""What users do wrong ends with a status and a sentence, never a signal."""

import json

import make_gguf
from harness import expect


def make_model(tools):
    path = tools.work / "errors.gguf"
    make_gguf.make([str(path), "--kind=q4_0", "--width=64", "--heads=2", "--kv-heads=1", "--head-size=32",
                    "--ffn=64", "--layers=1"])
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
    """A whole file passes; a flipped weight or code byte does not."""
    tools.call("izh-rt", "verify", artifact)
    data, flipped = bytearray(artifact.read_bytes()), tools.work / "flipped.izh"
    for at in (len(data) - 100_000, len(data) * 2 // 3):
        data[at] ^= 16
    flipped.write_bytes(data)
    return tools.refused("izh-rt", "verify", flipped, says=[flipped.name])


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
    suite.run("missing model", tools.refused, "izhc", "compile", missing, says=["missing"])
    suite.run("missing artifact", tools.refused, "izh-rt", "info", missing, says=["missing"])
    suite.run("artifact that is a GGUF", tools.refused, "izh-rt", "info", gguf, says=[gguf.name])
    suite.run("GGUF that is an artifact", tools.refused, "izhc", "compile", artifact, says=[artifact.name])
    suite.run("unknown option of izhc", tools.refused, "izhc", "compile", gguf, "--nonsense", status=2)
    suite.run("unknown option of izh-rt", tools.refused, "izh-rt", "run", artifact, "--nonsense", status=2)
    suite.run("unknown command", tools.refused, "izhc", "nonsense", status=2)
    suite.run("unknown target", tools.refused, "izhc", "compile", gguf, "--target=z80", says=["z80"], status=2)
    suite.run("unknown variant", tools.refused, "izh-rt", "info", artifact, "--variant", "z80", says=["z80"])
    suite.run("unknown feature", tools.refused, "izh-rt", "info", artifact, "--require", "z80", says=["z80"])
    suite.run("output that cannot be written", tools.refused, "izhc", "compile", gguf, "-o", "/nowhere/x.izh",
              says=["/nowhere"])
    suite.run("ids that are none", bad_ids, tools, artifact)
    suite.run("truncated GGUF", truncated, tools, gguf,
              lambda cut: ["izhc", "compile", cut, "-o", tools.work / "cut-out.izh"])
    suite.run("truncated artifact", truncated, tools, artifact, lambda cut: ["izh-rt", "verify", cut])
