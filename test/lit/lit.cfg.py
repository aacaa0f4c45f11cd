# How lit finds and runs the tests of this folder. Tests find izh-opt, izhc,
# FileCheck, not and split-file on their PATH; %make_gguf writes tiny models.

import os
import sys

import lit.formats

config.name = "izh"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join(
    [config.izh_bin, config.llvm_tools, config.environment["PATH"]])
make_gguf = os.path.join(config.izh_source, "test", "e2e", "make_gguf.py")
config.substitutions.append(("%make_gguf", f"{sys.executable} {make_gguf}"))
