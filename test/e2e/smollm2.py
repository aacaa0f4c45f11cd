"""Tests on SmolLM2-135M-Instruct (Q4_1), the real model that ./dev fetches,
against the float64 logits of reference.py; also under emulated older CPUs."""

import functools
import json
import shutil
import subprocess
from xml.etree import ElementTree

import caches
from harness import Skip, check_greedy, expect, log_softmax, mean_kl
from reference import Model

# The chat form of a question, and its ids as the published tokenizer has them.
PROMPT = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n")
IDS = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2,
       198, 1, 4093, 198, 1780, 314, 9354, 47, 2, 198, 1, 520, 9531, 198]
CLEAR = 19        # tokens of the answer before the best two come close
GAP = 0.5
PASSAGE = ("Every spring the river rose a little higher than the year before, and every spring the people of the "
           "village moved their boats a little further up the bank. Nobody spoke of it much. The old ferryman kept a "
           "stick in the mud beside his hut, with a notch for each flood, and when children asked him what it was "
           "for, he said that it measured patience. One morning a woman came from the city with three boxes of "
           "instruments and a notebook. She asked where the water had stood in 1962, and in 1978, and whether anyone "
           "remembered the winter when the bridge was lost. The ferryman led her to the stick. She looked at it for "
           "a long time, counted the notches twice, and then wrote down a single number.")
# Mean KL to reference.py on the passage: llama.cpp 0.3.36 (float32 cache) has
# 0.0033, and equal roundings in another order differ by a tenth.
KL_BAR = 1.15 * 0.0033


def default_artifact(tools, gguf):
    """SmolLM2 for all machines."""
    return tools.once(("default", str(gguf)), ".izh", lambda part: tools.compile(gguf, part, every=True))


class Real:
    def __init__(self, tools, gguf):
        self.tools, self.gguf = tools, gguf
        self.artifact = default_artifact(tools, gguf)
        self.tokens = None

    @functools.cached_property
    def model(self):
        return Model(self.gguf)

    def run_json(self, count, *options, **kwargs):
        done = self.tools.call("izh-rt", "run", self.artifact, "-p", PROMPT, "-n", count, "--temp", 0, "--json",
                               *options, **kwargs)
        return json.loads(done.stdout)

    def text(self):
        """The answer is the reference's, and reads as English."""
        answer = self.run_json(CLEAR)
        self.tokens = answer["tokens"]
        clear = check_greedy(self.tokens, IDS, self.model.logits(IDS + self.tokens), GAP)
        expect(clear == CLEAR, f"only {clear} tokens are clear")
        return repr(answer["text"])

    def tokenize(self):
        for command in (["izh-rt", "tokenize", self.artifact, "-p", PROMPT, "--json"],
                        ["izhc", "tokenize", self.gguf, "-p", PROMPT]):
            ids = json.loads(self.tools.call(*command).stdout)
            expect(ids == IDS, f"{command[0]} gives {ids}")

    def accuracy(self):
        """All variants predict a passage nearly as exact arithmetic does."""
        ids = json.loads(self.tools.call("izh-rt", "tokenize", self.artifact, "-p", PASSAGE, "--json").stdout)
        expected, notes = self.model.logits(ids), []
        for variant in self.tools.runnable(self.artifact):
            # Scalar code takes half a minute for all of it. The beginning is harder to predict.
            count, bar = (40, 2 * KL_BAR) if variant == "reference" else (len(ids), KL_BAR)
            kl = mean_kl(self.tools.logits(self.artifact, ids[:count], "--variant", variant), expected[:count])
            notes.append(f"{variant} {kl:.4f}")
            expect(kl <= bar, f"mean KL {kl:.4f} of {variant} is over {bar}")
        return ", ".join(notes)

    def size(self):
        source, made = self.gguf.stat().st_size, self.artifact.stat().st_size
        expect(made <= source * 1.03, f"{made} bytes from {source}")
        return f"{(made / source - 1) * 100:+.2f} %"

    def check(self):
        """`izhc check` finds what numpy makes of both models' logits."""
        exact = self.tools.compile(self.gguf, "smollm2-exact.izh", "--target=native", "--exact")
        text, plot = self.tools.work / "passage.txt", self.tools.work / "quality.svg"
        text.write_text(PASSAGE)
        done = self.tools.call("izhc", "check", exact, self.artifact, "-f", text, "--svg", plot, "--json")
        reference, other = json.loads(done.stdout)["models"]
        ids = json.loads(self.tools.call("izh-rt", "tokenize", exact, "-p", PASSAGE, "--json").stdout)
        half = slice(len(ids) // 2, len(ids) - 1)
        rows = [self.tools.logits(artifact, ids)[half] for artifact in (exact, self.artifact)]
        for model, logits in zip((reference, other), rows):
            logs = log_softmax(logits)
            loss = -logs[range(len(logs)), ids[half.start + 1:]].mean()
            expect(abs(model["nll"] - loss) < 1e-5, f"{model['nll']} is not the loss {loss}")
        kl = mean_kl(rows[1], rows[0])
        same = (rows[0].argmax(axis=1) == rows[1].argmax(axis=1)).mean()
        expect(abs(other["kl"] - kl) < 1e-6, f"{other['kl']} is not the divergence {kl}")
        expect(abs(other["same_best"] - same) < 1e-9, f"{other['same_best']} of tokens, not {same}")
        ElementTree.parse(plot)
        return f"mean KL {kl:.5f} of int8 activations"

    def perplexity(self):
        text = self.tools.work / "text.txt"
        text.write_text("The sun rose over the hills, and the birds began to sing. " * 30)
        facts = json.loads(self.tools.call("izh-rt", "perplexity", self.artifact, "-f", text, "--json").stdout)
        value = facts["perplexity"]
        expect(1 <= value < 3, f"perplexity {value} of a text that repeats itself")
        return f"{value:.3f}"

    def resident(self):
        """A mapped file's weights are not copied: the process's own memory is far smaller."""
        notes = []
        for how in ("map", "read"):
            command = [str(self.tools.binaries / "izh-rt"), "bench", str(self.artifact), "--serve", "-p", "128", "-n", "2",
                       "--load", how]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                expect(process.stdout.readline(), "izh-rt ended")
                process.stdin.write("\n")
                process.stdin.flush()
                expect("tg" in process.stdout.readline(), "no round was run")
                status = open(f"/proc/{process.pid}/status").read().splitlines()
                process.stdin.close()
            own = [int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:")]
            if not own:
                raise Skip("the system doesn't tell RssAnon")
            expect((own[0] < self.artifact.stat().st_size / 2) == (how == "map"), f"--load={how}: {own[0]} bytes of its own")
            notes.append(f"{how} {own[0] / 1e6:.1f} MB")
        return ", ".join(notes)


def emulated(tools, artifact, cpu, variant):
    """The artifact picks `variant` on an emulated CPU."""
    prefix = [emulator(), "-cpu", cpu]
    facts = json.loads(tools.call("izh-rt", "info", artifact, "--json", prefix=prefix).stdout)
    expect(facts["variant"] == variant, f"picks {facts['variant']}, not {variant}")
    for entry in facts["skipped"]:
        expect(entry["reason"], f"no reason for {entry['variant']}")
    return "; ".join(f"{s['variant']}: {s['reason']}" for s in facts["skipped"])[:300]


def emulated_text(real, cpu):
    answer = real.run_json(CLEAR, prefix=[emulator(), "-cpu", cpu], timeout=1500)
    expect(real.tokens == answer["tokens"], f"tokens {answer['tokens']}")
    return repr(answer["text"])


def refused_there(tools, gguf):
    artifact = tools.compile(gguf, "only-newest.izh", "--target=avx512vnni")
    old = [emulator(), "-cpu", "Nehalem"]
    facts = json.loads(tools.call("izh-rt", "info", artifact, "--json", prefix=old).stdout)
    expect(facts["variant"] is None, f"the variant {facts['variant']} on a machine without it")
    return tools.refused("izh-rt", "run", artifact, "-p", "Hi", "-n", 1, prefix=old, says=["avx512vnni"])


def emulator():
    found = shutil.which("qemu-x86_64")
    if not found:
        raise Skip("there is no qemu-x86_64")
    return found


def run(suite, tools, gguf):
    if gguf is None:
        def nothing():
            raise Skip("the model was not downloaded")
        suite.run("SmolLM2", nothing)
        return
    real = suite.make("SmolLM2 compile", Real, tools, gguf)
    if real is None:
        return
    suite.run("SmolLM2 tokenize", real.tokenize)
    suite.run("SmolLM2 text", real.text)
    suite.run("SmolLM2 accuracy", real.accuracy)
    suite.run("SmolLM2 artifact size", real.size)
    suite.run("SmolLM2 perplexity", real.perplexity)
    suite.run("SmolLM2 weights stay in the file", real.resident)
    suite.run("SmolLM2 check", real.check)
    for cpu, variant in (("Haswell", "avx2"), ("Nehalem", "x86-64")):
        suite.run(f"SmolLM2 on {cpu} picks {variant}", emulated, tools, real.artifact, cpu, variant)
        suite.run(f"SmolLM2 on {cpu} text", emulated_text, real, cpu)
    caches.run(suite, tools, gguf, tokens=600, name="SmolLM2 cache")
    suite.run("SmolLM2 for a CPU that is not there", refused_there, tools, gguf)
