#!/usr/bin/env python3
"""How fast texts become tokens, on one core.

    tools/bench/tokenize.py IZHC MODEL... [--text FILE]...

MODEL: GGUF files (vocabulary-only ones too) or model folders. Without --text:
a megabyte each of the licenses that Debian has, of this repository's sources,
and of made-up words in a dozen scripts. Prints a table; status 1 if anything
is below 10 MB/s.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZE = 1 << 20
BAR = 10.0
# First and last letter: Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, Georgian, kana, Han, Hangul, emoji.
SCRIPTS = ["az", "\u00e0\u017e", "\u03b1\u03c9", "\u0430\u044f", "\u05d0\u05ea", "\u0627\u064a", "\u0915\u0939", "\u0e01\u0e2e",
           "\u10d0\u10f0", "\u3042\u30f3", "\u4e00\u5e00", "\uac00\ub000", "\U0001f600\U0001f640"]


def fill(parts):
    text = b""
    for part in parts:
        text += part
        if len(text) >= SIZE:
            break
    while len(text) < SIZE:
        text += text
    return text[:SIZE].decode("utf-8", "ignore").encode()


def made_up(rng):
    """Lines of words, frequent ones again and again, with numbers and punctuation."""
    words = []
    for _ in range(20000):
        first, last = rng.choice(SCRIPTS)
        words.append("".join(chr(rng.randint(ord(first), ord(last))) for _ in range(rng.randint(1, 8))))
    weights = [1 / (i + 10) for i in range(len(words))]
    while True:
        line = rng.choices(words, weights, k=12)
        line.insert(rng.randrange(12), str(rng.randint(0, 99999)))
        yield (" ".join(line) + rng.choice([".", ",", "?!", "。", "…"]) + "\n").encode()


def default_texts(folder):
    licenses = sorted(pathlib.Path("/usr/share/common-licenses").glob("*"))
    sources = sorted(path for path in (ROOT / "compiler").rglob("*.cpp")) + sorted(ROOT.glob("runtime/**/*.[ch]*"))
    texts = {"english": (path.read_bytes() for path in licenses or [ROOT / "CONTRIBUTING.md"]),
             "code": (path.read_bytes() for path in sources), "scripts": made_up(random.Random(1))}
    for name, parts in texts.items():
        (folder / name).write_bytes(fill(parts))
        yield folder / name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("izhc")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--text", action="append", type=pathlib.Path)
    arguments = parser.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        texts = arguments.text or list(default_texts(pathlib.Path(folder)))
        print("MB/s", *(text.name for text in texts), sep="\t")
        for model in arguments.models:
            row = []
            for text in texts:
                done = subprocess.run([arguments.izhc, "tokenize", model, "-f", text, "--time"], capture_output=True, text=True)
                found = re.search(r"([\d.]+) MB/s", done.stdout)
                row.append(found[1] if found else done.stderr.strip())
                slow += not found or float(found[1]) < BAR
            print(pathlib.Path(model).name, *row, sep="\t", flush=True)
    return slow != 0


if __name__ == "__main__":
    sys.exit(main())
