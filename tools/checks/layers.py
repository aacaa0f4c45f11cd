"""Which folder may include which, and where proper names may appear
(CONTRIBUTING.md, rules 1 and 2).

A folder that MAY_INCLUDE does not name takes the rule of its nearest parent
there. Every folder may include itself.
"""

import re

import source

# What comes from outside; everything else is a path from the root.
MLIR = ["llvm", "mlir"]
LIBRARIES = {"llvm", "mlir", "lld", "flatbuffers", "gtest", "gmock", "CLI", "nlohmann"}

COMPILER_BASE = ["compiler/support", *MLIR]
MAY_INCLUDE = {
    "runtime/include": [],
    "runtime/schema": ["flatbuffers"],
    "runtime/base": ["runtime/include"],
    "runtime/platform": ["runtime/include", "runtime/base", "runtime/schema"],
    "runtime/exec": ["runtime/include", "runtime/base", "runtime/platform", "runtime/schema", "flatbuffers"],
    "runtime/text": ["runtime/include", "runtime/base", "runtime/platform", "runtime/exec",
                     "runtime/schema", "flatbuffers"],
    "dialects": MLIR,
    "compiler/support": [*MLIR, "nlohmann"],
    "compiler/formats": COMPILER_BASE,
    "compiler/import": ["compiler/formats", *COMPILER_BASE],
    "compiler/tokenizers": ["compiler/import", "runtime/schema", "flatbuffers", *COMPILER_BASE],
    "compiler/models": ["compiler/import", "dialects", *COMPILER_BASE],
    "compiler/target": ["compiler/formats", "dialects", "lld", *COMPILER_BASE],
    "compiler/transforms": ["compiler/formats", "compiler/target", "dialects", *COMPILER_BASE],
    "compiler/emit": ["compiler/formats", "compiler/import", "compiler/target", "dialects",
                      "runtime/schema", "flatbuffers", *COMPILER_BASE],
    "compiler/pipeline": ["compiler", "dialects", "targets/Registry.inc", *MLIR],
    "targets/*/codegen": ["compiler/target", "compiler/formats", "dialects", "runtime/schema", *COMPILER_BASE],
    "targets/*/device": ["runtime/include", "runtime/base", "runtime/platform"],
    "targets": ["compiler/target", *MLIR],
    "tools/izhc": ["compiler", "dialects", "targets", "runtime/include", "runtime/schema", "runtime/base",
                   "runtime/platform", "runtime/text", "runtime/exec", "flatbuffers", "CLI", "nlohmann", *MLIR],
    "tools/izh-opt": ["compiler", "dialects", "targets", *MLIR],
    "tools/izh-rt": ["runtime", "CLI", "nlohmann"],
    "tools/bench": ["runtime", "CLI", "nlohmann"],
    "samples": ["runtime/include"],
    # Compiler tests never need the runtime, runtime tests never the compiler.
    "test/unit/runtime": ["runtime", "test/unit/runtime", "flatbuffers", "gtest", "gmock"],
    "test/unit": ["compiler", "dialects", "targets", "runtime/schema", "flatbuffers", "gtest", "gmock", *MLIR],
    "test/conformance": ["compiler", "dialects", "targets", "runtime/schema", "test/ptx", "gtest", "gmock", *MLIR],
    "test/ptx": [],
    "test": ["compiler", "dialects", "targets", "runtime", "tools", *LIBRARIES],
}

# Names whose use elsewhere would mean that a new model, format or machine
# needs an edit there: (what, pattern, folders where it may stand).
BELONGS = [
    ("a model", r"(?:llama|qwen|gemma|mistral|smollm|granite|olmo|deepseek)\w*|\bphi[-_]?\d",
     ["compiler/models", "compiler/tokenizers"]),
    ("a pre-tokenizer", r"(?:llama-bpe|gpt-?2|\bsmollm)", ["compiler/tokenizers", "compiler/models"]),
    ("a weight format", r"(?<![a-z0-9])(?:i?q\d_(?:\d|k|x*s|m|nl)\w*|tq\d_\d|mxfp4|nvfp4)",
     ["compiler/formats", "targets/*/codegen"]),
    ("a machine", r"(?:avx|vnni|(?<![a-z])sse[234]|neon|(?<![a-z])amx|x86|aarch64|arm64|nvvm|rocdl|(?<![a-z])ptx)\w*",
     ["targets", "runtime/platform", "runtime/schema/cpu_features.def"]),
    ("a device", r"(?<![a-z])(?:cuda|rocm|vulkan|metal|hip)(?![a-z])", ["targets", "runtime/platform"]),
]
NAMED_ROOTS = ("runtime", "dialects", "compiler", "targets", "tools")

INCLUDE = re.compile(r'\s*#?\s*include\s+(?:"([^"]+)"|<((?:llvm|mlir|lld)/[^>]+)>)')
BAD_FOLDERS = {"utils", "util", "common", "misc", "core", "helpers"}


def rule_for(path):
    named = [folder for folder in MAY_INCLUDE if source.under(path, folder)]
    return max(named, key=lambda folder: folder.count("/"), default=None)


def check_include(path, number, target, folder):
    first = target.split("/")[0]
    # What the build writes beside a folder's own files needs no rule.
    if "/" not in target or first not in LIBRARIES | {"runtime", "dialects", "compiler", "targets", "tools", "test"}:
        yield f"{path}:{number}: include \"{target}\" by its path from the root"
        return
    depth = folder.count("/") + 1
    same = path.split("/")[:depth] == target.split("/")[:depth]
    if not same and not any(source.under(target, allowed) for allowed in MAY_INCLUDE[folder]):
        yield f"{path}:{number}: {folder} may not include {target}"


def check_names(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*#?\s*include\b", line):
            continue
        for what, pattern, homes in BELONGS:
            name = re.search(pattern, line, re.IGNORECASE)
            if name and not any(source.under(path, home) for home in homes):
                yield f"{path}:{number}: '{name[0]}' names {what}, which belongs in {' or '.join(homes)}"
                break


def check_file_name(path):
    *folders, name = path.split("/")
    for folder in BAD_FOLDERS.intersection(folders):
        yield f"{path}: name the folder '{folder}' after what is in it"
    stem = name.split(".")[0]
    top = folders[0] if folders else ""
    if top in ("runtime", "test") and not re.fullmatch(r"[a-z0-9_]+", stem):
        yield f"{path}: files of {top}/ are named in snake_case"
    is_format = folders == ["compiler", "formats"] and stem[0].islower()
    if top in ("compiler", "dialects", "targets") and not is_format and not re.fullmatch(r"[A-Z][A-Za-z0-9]*", stem):
        yield f"{path}: files of {top}/ are named in CamelCase"


def check_file(path, text):
    yield from check_file_name(path)
    folder = rule_for(path)
    if folder is None:
        yield f"{path}: no rule in tools/checks/layers.py covers this folder"
        return
    code = source.without_comments(text, path.endswith(".td"))
    for number, line in enumerate(code.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield from check_include(path, number, match[1] or match[2], folder)
    if path.split("/")[0] in NAMED_ROOTS:
        yield from check_names(path, code)


def problems(root):
    roots = (*NAMED_ROOTS, "samples", "test")
    for path in source.files(root, *roots, suffixes=source.CODE | {".td"}):
        yield from check_file(path, source.read(root, path))
