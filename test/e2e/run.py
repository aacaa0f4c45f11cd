#!/usr/bin/env python3
"""End-to-end tests: model files through izhc and izh-rt, logits and texts
against a plain numpy model.

    run.py --bin BUILD/bin --work FOLDER [--smollm2 MODEL.gguf] [--shared DATA] [--only PART] [--arm BUILD-ARM64/bin]
"""

import argparse
import os
import pathlib
import shutil
import sys

# The machine has few cores, and the programs under test want them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.dont_write_bytecode = True

import arm
import bench
import errors
import gpu
import long
import quantize
import smollm2
import sweep
import text
import tiny
from harness import Suite, Tools

# What to run, as (name, function(suite, tools, options)). A part's tests stay
# together, in order, in one process; those of SPREAD need nothing of each
# other, and every process takes the next one. Long parts come first.
PARTS = [
    ("smollm2", lambda suite, tools, o: smollm2.run(suite, tools, o.smollm2)),
    ("arm", lambda suite, tools, o: arm.run(suite, tools, o.arm, o.smollm2)),
    ("errors", lambda suite, tools, o: errors.run(suite, tools)),
    ("text", lambda suite, tools, o: text.run(suite, tools)),
    ("bench", lambda suite, tools, o: bench.run(suite, tools)),
    ("quantize", lambda suite, tools, o: quantize.run(suite, tools)),
]
SPREAD = [
    ("gpu", lambda suite, tools, o: gpu.run(suite, tools)),
    ("tiny", lambda suite, tools, o: tiny.run(suite, tools)),
    ("long", lambda suite, tools, o: long.run(suite, tools)),
    ("sweep", lambda suite, tools, o: o.shared and sweep.run(suite, tools, o.shared, o.smollm2)),
]


def work(suite, options, number):
    """What one of the processes does."""
    tools = Tools(options.bin, pathlib.Path(options.work) / f"worker-{number}", pathlib.Path(options.work) / "made")
    for name, function in PARTS:
        if suite.take(name):
            with suite.together(), suite.part(name):
                function(suite, tools, options)
    for name, function in SPREAD:
        with suite.part(name):
            function(suite, tools, options)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True, help="the folder of izhc and izh-rt")
    p.add_argument("--work", required=True, help="a folder for models and artifacts")
    p.add_argument("--smollm2", type=pathlib.Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    p.add_argument("--shared", type=pathlib.Path, help="a folder of further models with logits, for a sweep")
    p.add_argument("--arm", type=pathlib.Path, help="the folder of an izh-rt for 64-bit Arm")
    p.add_argument("--only", help="run the tests whose name holds this, or the part that is called so")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (one a core)")
    o = p.parse_args()
    shutil.rmtree(pathlib.Path(o.work) / "made", ignore_errors=True)
    suite = Suite("e2e", o.only)
    suite.share(min(o.jobs, 8), work, o)
    if o.only and not suite.matched:
        parts = ", ".join(name for name, _ in PARTS + SPREAD)
        print(f"e2e: no test's name holds '{o.only}', and no part is called so; the parts are {parts}")
        return 1
    print(suite.summary())
    return suite.failed != 0


if __name__ == "__main__":
    sys.exit(main())
