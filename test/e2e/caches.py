"""Caches of fewer bits on SmolLM2: how far the predictions of a text move from
those of float32 activations and a float16 cache."""

import json
import pathlib

from harness import expect, mean_kl

TEXT = pathlib.Path(__file__).parent / "texts" / "ferry.txt"
# Mean KL in nats, over the whole text.
BARS = {"q8_0": 5e-4, "q4_0": 0.06}


class Caches:
    def __init__(self, tools, gguf, tokens):
        self.tools, self.gguf = tools, gguf
        artifact = self.compile("f16")
        command = ["izh-rt", "tokenize", artifact, "-p", TEXT.read_text(), "--json"]
        self.ids = json.loads(tools.call(*command).stdout)[:tokens]
        self.expected = self.logits(artifact)

    def compile(self, kind):
        return self.tools.compile(self.gguf, f"cache-{kind}.izh", "--exact", f"--kv={kind}", "--target=native")

    def logits(self, artifact):
        return self.tools.logits(artifact, self.ids, timeout=900)

    def accuracy(self, kind):
        artifact = self.compile(kind)
        facts = json.loads(self.tools.call("izh-rt", "info", artifact, "--json").stdout)
        expect(kind in facts["recipe"], f"info doesn't tell the cache: {facts['recipe']}")
        kl = mean_kl(self.logits(artifact), self.expected)
        expect(kl <= BARS[kind], f"mean KL {kl:.2e} over {len(self.ids)} tokens is over {BARS[kind]}")
        return f"mean KL {kl:.2e} over {len(self.ids)} tokens"


def run(suite, tools, gguf, tokens=None, name="cache"):
    """`tokens`: of the text, from its beginning; None: all."""
    caches = suite.make(f"{name} f16", Caches, tools, gguf, tokens)
    for kind in BARS if caches else ():
        suite.run(f"{name} {kind}", caches.accuracy, kind)
