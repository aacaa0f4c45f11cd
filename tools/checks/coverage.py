"""Every pass, op, verifier message and target has a test that names it
(what the recipes of CONTRIBUTING.md ask for)."""

import re

import source

STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def joined(root, folder, suffix=".mlir"):
    return "\n".join(source.read(root, f) for f in source.files(root, "test", suffixes={suffix})
                     if source.under(f, folder))


def pass_problems(root):
    runs = "\n".join(line for line in joined(root, "test/lit").splitlines() if "RUN:" in line)
    for path in source.files(root, "compiler", suffixes={".td"}):
        text = source.without_comments(source.read(root, path), True)
        for argument in re.findall(r':\s*Pass<\s*"([^"]+)"', text):
            if not re.search(rf"--{re.escape(argument)}(?![\w-])", runs):
                yield f"{path}: no RUN line below test/lit has --{argument}"


def op_problems(root):
    for path in source.files(root, "dialects", suffixes={".td"}):
        dialect = path.split("/")[1]
        ops = joined(root, f"test/lit/dialects/{dialect}/ops.mlir")
        text = source.without_comments(source.read(root, path), True)
        for mnemonic in re.findall(r'def\s+\w+Op\s*:\s*\w+<\s*"(\w+)"', text):
            if not re.search(rf"(?<!\w){dialect}\.{mnemonic}(?!\w)", ops):
                yield f"{path}: test/lit/dialects/{dialect}/ops.mlir has no {dialect}.{mnemonic}"


def messages(code):
    """The longest literal of each diagnostic that a verifier emits."""
    for match in re.finditer(r"\bemit(?:Op)?Error\b[^;]*;", code):
        literals = [m.strip() for m in STRING.findall(match[0])]
        if literals:
            yield max(literals, key=len)


def verifier_problems(root):
    for path in source.files(root, "dialects", suffixes={".cpp", ".h"}):
        dialect = path.split("/")[1]
        invalid = joined(root, f"test/lit/dialects/{dialect}")
        for message in messages(source.without_comments(source.read(root, path))):
            if message not in invalid:
                yield f"{path}: no invalid.mlir of test/lit/dialects/{dialect} expects \"{message}\""


def target_problems(root):
    targets = {f.split("/")[1] for f in source.files(root, "targets") if f.count("/") > 2}
    for target in sorted(targets):
        if not joined(root, f"test/lit/targets/{target}"):
            yield f"targets/{target}: test/lit/targets/{target} has no tests"


def problems(root):
    for check in (pass_problems, op_problems, verifier_problems, target_problems):
        yield from check(root)
