#!/usr/bin/env python3
"""What is left of the speed when other programs are busy.

  disturbed.py MODEL.gguf MODEL.izh [--izh-rt PATH] [--python PYTHON] [-n 32] [-r 3] [--threads 2]

Generation runs undisturbed, beside one busy loop on the first usable core,
beside one on the last, and beside four that the system places; rounds in turn,
medians, izh and (where PYTHON is given) llama.cpp. The logits beside four loops
have to be those without, bit for bit.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

from peer import add_options, engines

LOOP = "while True: pass"


@contextlib.contextmanager
def busy(cores):
    """Endless loops, one for each entry: a core's number, or None for any."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP],
                              preexec_fn=None if core is None else lambda core=core: os.sched_setaffinity(0, {core}))
             for core in cores]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def logits(options):
    """-> the file of logits that izh-rt writes for a fixed list of tokens, in small chunks."""
    with tempfile.TemporaryDirectory() as folder:
        ids, out = os.path.join(folder, "ids.json"), os.path.join(folder, "out.npy")
        with open(ids, "w") as file:
            json.dump([i * 79 % 250 for i in range(64)], file)
        subprocess.run([options.izh_rt, "logits", options.izh, "--tokens", ids, "-o", out, "--chunk", "5"], check=True)
        with open(out, "rb") as file:
            return file.read()


def main():
    parser = argparse.ArgumentParser(description="speed beside busy loops")
    add_options(parser)
    parser.add_argument("--threads", default="2")
    parser.set_defaults(prompt=0, generate=32, rounds=3, python="")
    options = parser.parse_args()
    # The loops have to end with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    usable = sorted(os.sched_getaffinity(0))
    settings = [("undisturbed", []), (f"a loop on core {usable[0]}", [usable[0]]),
                (f"a loop on core {usable[-1]}", [usable[-1]]), ("four loops", [None] * 4)]
    started = engines(options, options.threads)
    speeds = {(engine.name, name): [] for engine in started for name, _ in settings}
    for _ in range(options.rounds):
        for name, cores in settings:
            with busy(cores):
                for engine in started:
                    engine.round()
                    speeds[engine.name, name].append(engine.rounds[-1]["tg"])
                    print(f"{engine.name} {name}: {engine.rounds[-1]['tg']:.2f} tokens/s", file=sys.stderr, flush=True)
    for engine in started:
        engine.close()
        whole = statistics.median(speeds[engine.name, "undisturbed"])
        for name, _ in settings:
            speed = statistics.median(speeds[engine.name, name])
            print(f"{engine.name:10} {name:20} {speed:8.2f} tokens/s, {speed / whole:6.1%}")
    alone = logits(options)
    with busy([None] * 4):
        same = logits(options) == alone
    print("logits beside four loops:", "the same bits" if same else "OTHERS")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
