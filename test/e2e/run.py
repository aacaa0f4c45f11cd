#!/usr/bin/env python3
"""End-to-end tests: model files through izhc and izh-rt, logits and texts
against a plain numpy model.

    run.py --bin BUILD/bin --work FOLDER [--smollm2 MODEL.gguf] [--shared DATA] [--only PART]
"""

import argparse
import os
import pathlib
import sys

# The machine has few cores, and the programs under test want them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")
sys.dont_write_bytecode = True

import errors
import smollm2
import sweep
import tiny
from harness import Suite, Tools


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True, help="the folder of izhc and izh-rt")
    p.add_argument("--work", required=True, help="a folder for models and artifacts")
    p.add_argument("--smollm2", type=pathlib.Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    p.add_argument("--shared", type=pathlib.Path, help="a folder of further models with logits, for a sweep")
    p.add_argument("--only", help="run the tests whose name holds this")
    o = p.parse_args()
    suite, tools = Suite("e2e", o.only), Tools(o.bin, o.work)
    tiny.run(suite, tools)
    errors.run(suite, tools)
    smollm2.run(suite, tools, o.smollm2)
    if o.shared:
        sweep.run(suite, tools, o.shared, o.smollm2)
    print(suite.summary())
    return suite.failed != 0


if __name__ == "__main__":
    sys.exit(main())
