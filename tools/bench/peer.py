#!/usr/bin/env python3
"""izh beside llama.cpp: the same model, the same tokens, rounds in turn.

  peer.py MODEL.gguf MODEL.izh [--izh-rt PATH] [--python PYTHON] [--variant NAME] [-p 128] [-n 64] [-d 0] [-r 5] [--threads 1,2] [--json]

llama.cpp runs through the PyPI package llama-cpp-python (0.3.36 was tried),
which PYTHON has to have; its speed is measured as llama-bench does: random
tokens in batches of up to 512, then one token at a time behind -d others. Both
programs keep their model loaded and run one round when they are told to, so
that whatever else the machine does meets both. Medians are compared; izh-rt
also measures the machine's limits after each of its rounds.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time


def serve_peer(options):
    """Runs in the other Python: one round for each line of standard input."""
    import llama_cpp as peer

    quiet = peer.llama_log_callback(lambda level, text, data: None)
    peer.llama_log_set(quiet, None)
    peer.llama_backend_init()
    begin = time.perf_counter()
    model = peer.llama_model_load_from_file(options.gguf.encode(), peer.llama_model_default_params())
    if not model:
        sys.exit(f"llama.cpp cannot load {options.gguf}")
    load = time.perf_counter() - begin
    vocabulary = peer.llama_vocab_n_tokens(peer.llama_model_get_vocab(model))
    settings = peer.llama_context_default_params()
    settings.n_ctx = max(options.prompt, options.depth + options.generate) + 64
    settings.n_batch = settings.n_ubatch = 512
    settings.n_threads = settings.n_threads_batch = int(options.threads)
    context = peer.llama_init_from_model(model, settings)
    numbers = random.Random(1)

    def feed(count):
        while count > 0:
            size = min(count, 512)
            tokens = (peer.llama_token * size)(*[numbers.randrange(vocabulary) for _ in range(size)])
            if peer.llama_decode(context, peer.llama_batch_get_one(tokens, size)):
                sys.exit("llama.cpp failed to decode")
            peer.llama_synchronize(context)
            count -= size

    def measure():
        speeds = {"pp": 0, "tg": 0}
        memory = peer.llama_get_memory(context)
        if options.prompt:
            peer.llama_memory_clear(memory, True)
            begin = time.perf_counter()
            feed(options.prompt)
            speeds["pp"] = options.prompt / (time.perf_counter() - begin)
        if options.generate:
            peer.llama_memory_clear(memory, True)
            feed(options.depth)
            begin = time.perf_counter()
            for _ in range(options.generate):
                feed(1)
            speeds["tg"] = options.generate / (time.perf_counter() - begin)
        return speeds

    feed(16)
    feed(1)
    print(json.dumps({"ready": True, "load_ms": load * 1e3}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(measure()), flush=True)


class Engine:
    """A program that measures one round when it is sent a line."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rounds = []
        self.ready = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.rounds.append(self.read())

    def median(self, key):
        return statistics.median(one[key] for one in self.rounds)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def engines(options, threads):
    """izh-rt, and llama.cpp where a Python for it is given."""
    izh = [options.izh_rt, "bench", options.izh, "--serve"]
    if options.variant:
        izh += ["--variant", options.variant]
    sizes = ["-p", str(options.prompt), "-n", str(options.generate), "-d", str(options.depth), "--threads", str(threads)]
    started = [Engine("izh-rt", [*izh, *sizes])]
    if options.python:
        started.append(Engine("llama.cpp", [options.python, __file__, options.gguf, options.izh, "--serve-peer", *sizes]))
    return started


def compare(options, threads):
    """-> one row: medians of both engines, their ratios and izh's share of the machine's limits."""
    izh, peer = both = engines(options, threads)
    for _ in range(options.rounds):
        for engine in both:
            engine.round()
    row = {"threads": threads, "read_gbps": izh.median("read_gbps"), "int8_gops": izh.median("int8_gops")}
    for key in ("pp", "tg"):
        row[f"izh_{key}"] = round(izh.median(key), 2)
        row[f"peer_{key}"] = round(peer.median(key), 2)
        row[f"ratio_{key}"] = round(izh.median(key) / peer.median(key), 3) if peer.median(key) else None
    work = izh.ready
    row["share_tg"] = round(izh.median("tg") * work["bytes_per_token"] / row["read_gbps"] / 1e9, 3)
    row["share_pp"] = round(izh.median("pp") * work["operations_per_token"] / row["int8_gops"] / 1e9, 3)
    row["variant"] = work["variant"]
    for engine in both:
        engine.close()
    return row


def add_options(parser):
    """What every comparison needs."""
    parser.add_argument("gguf")
    parser.add_argument("izh")
    parser.add_argument("--izh-rt", default="build/bin/izh-rt")
    parser.add_argument("--python", default=sys.executable, help="a Python that has llama-cpp-python")
    parser.add_argument("--variant", help="force one of the file's variants")
    parser.add_argument("-p", "--prompt", type=int, default=128)
    parser.add_argument("-n", "--generate", type=int, default=64)
    parser.add_argument("-d", "--depth", type=int, default=0, help="tokens of context before those that are generated")
    parser.add_argument("-r", "--rounds", type=int, default=5)


def main():
    parser = argparse.ArgumentParser(description="izh-rt beside llama.cpp, rounds in turn")
    add_options(parser)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve-peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_peer:
        return serve_peer(options)
    rows = [compare(options, int(threads)) for threads in options.threads.split(",")]
    if options.json:
        print(json.dumps({"gguf": options.gguf, "prompt": options.prompt, "generate": options.generate,
                          "depth": options.depth, "rounds": options.rounds, "rows": rows}))
        return
    print("| threads | prompt: izh | llama.cpp | ratio | of peak | generation: izh | llama.cpp | ratio | of read speed |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print("| {threads} | {izh_pp:.1f} | {peer_pp:.1f} | {ratio_pp} | {share_pp:.0%} | {izh_tg:.1f} | {peer_tg:.1f} "
              "| {ratio_tg} | {share_tg:.0%} |".format(**row))


if __name__ == "__main__":
    main()
