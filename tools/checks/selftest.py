"""Small trees with one violation each, which the checks must find, and the
same without it, which they must accept."""

import pathlib
import tempfile

LONG = "int f() {\n" + "  g();\n" * 90 + "}\n"
SHORT = "MACRO(x)\nnamespace n {\nextern \"C\" {\nint f() {\n" + "  g();\n" * 60 + "}\nint h() {\n" + "  g();\n" * 60 + "}\n}\n}\n"
PASSES = 'def FoldX : Pass<"izh-fold-x"> {}\n'
OPS = 'def NormOp : LmOp<"norm"> {\n  let description = [{ like q4_0 }];\n}\n'

# (check, what, files of a tree, the part of the one problem expected, or None)
CASES = [
    ("layers", "the runtime includes the compiler",
     {"runtime/exec/a.cpp": '#include "compiler/formats/Format.h"\n'}, "may not include"),
    ("layers", "a target includes another", {"targets/one/codegen/A.cpp": '#include "targets/two/codegen/B.h"\n'},
     "may not include"),
    ("layers", "an include without its folder", {"runtime/exec/a.cpp": '#include "b.h"\n'}, "by its path"),
    ("layers", "LLVM in the runtime", {"runtime/exec/a.cpp": "#include <llvm/ADT/StringRef.h>\n"}, "may not include"),
    ("layers", "allowed includes", {"runtime/exec/a.cpp": '#include "runtime/base/b.h"\n#include <vector>\n',
                                    "compiler/import/A.cpp": '#include "compiler/formats/Format.h"\n'}, None),
    ("layers", "a model outside its folder", {"compiler/import/A.cpp": 'x == "llama";\n'}, "names a model"),
    ("layers", "a format outside its folder", {"runtime/exec/a.cpp": "int q4_0 = 1;\n"}, "names a weight format"),
    ("layers", "a machine outside its folder", {"compiler/emit/A.cpp": "bool hasAvx2;\nbool useAVX512;\n"},
     "names a machine"),
    ("layers", "names in comments and at home", {"compiler/emit/A.cpp": "// as llama does on avx2\n",
                                                 "compiler/models/Llama.cpp": "int llama;\n",
                                                 "dialects/lm/LmOps.td": OPS}, None),
    ("layers", "a badly named file", {"runtime/exec/PlanLoop.cpp": "\n"}, "snake_case"),
    ("sizes", "a long function", {"runtime/a.cpp": LONG}, "f has 92 lines"),
    ("sizes", "a long Python function", {"a.py": "def f():\n" + "    g()\n" * 90}, "f has 91 lines"),
    ("sizes", "a long file", {"runtime/a.cpp": "int a;\n" * 801}, "801 lines"),
    ("sizes", "short functions", {"runtime/a.cpp": SHORT}, None),
    ("coverage", "a pass without a test", {"compiler/transforms/lm/Passes.td": PASSES}, "--izh-fold-x"),
    ("coverage", "an op without a test", {"dialects/lm/LmOps.td": OPS}, "lm.norm"),
    ("coverage", "a message without a test",
     {"dialects/lm/Lm.cpp": 'return emitOpError("has no rows");\n'}, "has no rows"),
    ("coverage", "a target without tests", {"targets/one/codegen/A.cpp": "\n"}, "has no tests"),
    ("coverage", "all tested",
     {"compiler/transforms/lm/Passes.td": PASSES, "dialects/lm/LmOps.td": OPS,
      "test/lit/transforms/fold_x.mlir": "// RUN: izh-opt %s --izh-fold-x | FileCheck %s\n",
      "test/lit/dialects/lm/ops.mlir": "%0 = lm.norm %x\n"}, None),
    ("text", "a machine's path", {"a.md": "see /ho" + "me/someone/x\n"}, "a path of one machine"),
    ("text", "a task without a number", {"a.cpp": "// TO" + "DO: more\n"}, "issue number"),
    ("text", "a clean file", {"a.cpp": "// TO" + "DO(#3): more, /usr/bin\n"}, None),
]


def run(checks):
    """checks: name -> problems(root). Yields what went wrong."""
    for name, what, tree, expected in CASES:
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                file = pathlib.Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = list(checks[name](root))
        if expected is None and found:
            yield f"selftest: {name} complains of {what}: {found[0]}"
        elif expected is not None and not any(expected in problem for problem in found):
            yield f"selftest: {name} does not find {what}; it found {found}"
