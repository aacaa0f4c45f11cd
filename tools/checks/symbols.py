#!/usr/bin/env python3
"""What the built runtime asks for and weighs (CONTRIBUTING.md, rule 5).

    symbols.py BUILD-FOLDER

Outside platform/ the runtime's libraries use no exceptions, no operator new
and no malloc; izh-rt needs no LLVM and stays under SIZE_LIMIT stripped.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SIZE_LIMIT = 2 * 1024 * 1024
FORBIDDEN = re.compile(r"^(__cxa_(?!atexit|pure_virtual)\w*|_Zn[wa]\w*|malloc|calloc|realloc|free)$")


def undefined(library):
    output = subprocess.run(["nm", "-u", str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in output.splitlines() if " U " in line}


def library_problems(build):
    for library in sorted(build.glob("runtime/*/lib*.a")):
        if library.parent.name == "platform":
            continue
        for symbol in sorted(filter(FORBIDDEN.match, undefined(library))):
            yield f"runtime/{library.parent.name} uses {symbol}"


def program_problems(build):
    program = build / "bin/izh-rt"
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    if re.search(r"LLVM|MLIR|lld", linked):
        yield f"{program} links LLVM"
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "izh-rt"
        subprocess.run(["strip", "-o", str(stripped), str(program)], check=True)
        size = stripped.stat().st_size
    print(f"izh-rt, stripped: {size} bytes")
    if size > SIZE_LIMIT:
        yield f"izh-rt has {size} bytes, more than {SIZE_LIMIT}"


def main():
    build = pathlib.Path(sys.argv[1])
    failed = 0
    for check in (library_problems, program_problems):
        found = list(check(build))
        failed += bool(found)
        for problem in found:
            print(problem)
    print(f"symbols: {2 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
