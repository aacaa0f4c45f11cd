"""No file holds a path of somebody's machine, blanks at line ends, tabs in
code or a task left without an issue number."""

import re

import source

# Written in pieces so that this file passes itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:" + "|".join(["wor" + "k", "hom" + "e", "roo" + "t", "User" + "s"]) + r")/\w")
TASK = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\(#\d+\))")
BINARY = {".gguf", ".izh", ".npy", ".png", ".svg", ".bin"}


def problems(root):
    for path in source.files(root):
        if any(path.endswith(suffix) for suffix in BINARY) or "/corpus/" in path:
            continue
        text = source.read(root, path)
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path}:{number}"
            if MACHINE_PATH.search(line):
                yield f"{where}: a path of one machine: {line.strip()[:80]}"
            if TASK.search(line):
                yield f"{where}: a task needs an issue number, as in TO" + "DO(#12)"
            if line != line.rstrip() and not path.endswith(".md"):
                yield f"{where}: blanks at the end of the line"
        if text and not text.endswith("\n"):
            yield f"{path}: no newline at the end"
