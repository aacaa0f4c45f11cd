"""Runs izhc and izh-rt, and counts what passed."""

import json
import pathlib
import subprocess
import time

import numpy as np

VARIANTS = ["reference", "x86-64", "avx2", "avxvnni", "avx512vnni"]


class Skip(Exception):
    """Raised by a test that this machine cannot run, with the reason."""


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


class Suite:
    def __init__(self, name, only=None):
        self.name, self.only = name, only
        self.passed = self.failed = self.skipped = 0

    def run(self, name, function, *args, **kwargs):
        """Runs one test; its returned text, if any, is shown beside its name."""
        if not self.only or self.only in name:
            self._run(name, function, *args, **kwargs)

    def make(self, name, function, *args):
        """What several tests need, made as a test of its own.
        -> what `function` returns, or None if that failed"""
        made = []
        self._run(name, lambda: made.append(function(*args)))
        return made[0] if made else None

    def _run(self, name, function, *args, **kwargs):
        start = time.monotonic()
        try:
            note = function(*args, **kwargs) or ""
            self.passed += 1
            word = "ok"
        except Skip as reason:
            self.skipped += 1
            word, note = "skipped", str(reason)
        except (Failure, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as problem:
            self.failed += 1
            word, note = "FAILED", f"{type(problem).__name__}: {problem}"
        print(f"{word:8}{name} ({time.monotonic() - start:.1f} s) {note}", flush=True)

    def summary(self):
        return f"{self.name}: {self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Tools:
    """The programs under test; files are made in the folder `work`."""

    def __init__(self, binaries, work):
        self.binaries = pathlib.Path(binaries).resolve()
        self.work = pathlib.Path(work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)

    def call(self, *command, status=0, timeout=300, prefix=()):
        """Runs `izhc` or `izh-rt`; fails unless it ends with `status`.
        -> the finished process, with text in stdout and stderr"""
        program, *rest = map(str, command)
        command = [*prefix, str(self.binaries / program), *rest]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        done.stdout = done.stdout.decode("utf-8", "replace")
        done.stderr = done.stderr.decode("utf-8", "replace")
        if done.returncode != status:
            raise Failure(f"`{' '.join(command)}` ended with {done.returncode}, not {status}: {done.stderr.strip()[-600:]}")
        return done

    def refused(self, *command, says=(), status=1, **kwargs):
        """The command must end with `status` and one sentence that holds `says`."""
        done = self.call(*command, status=status, **kwargs)
        lines = done.stderr.strip().splitlines()
        expect(lines, f"no word on stderr from {command}")
        for part in says:
            expect(part in done.stderr, f"'{part}' is not in: {done.stderr.strip()}")
        return lines[-1][:160]

    def compile(self, gguf, out, *options):
        out = self.work / out
        self.call("izhc", "compile", gguf, "-o", out, *options)
        return out

    def logits(self, artifact, ids, *options, **kwargs):
        ids_file, out = self.work / "ids.json", self.work / "logits.npy"
        ids_file.write_text(json.dumps(list(map(int, ids))))
        out.unlink(missing_ok=True)
        self.call("izh-rt", "logits", artifact, "--tokens", ids_file, "-o", out, *options, **kwargs)
        values = np.load(out)
        expect(values.dtype == np.float32, f"logits are {values.dtype}")
        expect(len(values) == len(ids), f"{len(values)} rows of logits for {len(ids)} tokens")
        expect(np.isfinite(values).all(), "logits that are not finite")
        return values

    def runnable(self, artifact):
        """The variants of the artifact that this machine can run."""
        found = []
        for variant in VARIANTS:
            command = [str(self.binaries / "izh-rt"), "info", str(artifact), "--json", "--variant", variant]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            if done.returncode == 0:
                expect(json.loads(done.stdout)["variant"] == variant, f"--variant {variant} chose another")
                found.append(variant)
        expect(found, f"no variant of {artifact} runs here")
        return found


def check_greedy(tokens, prompt, logits, gap):
    """`tokens`, generated after `prompt`, must be the best ones of `logits`
    (reference logits of prompt + tokens) wherever the best two are `gap`
    apart. -> the number of tokens that were so."""
    clear = 0
    for i, token in enumerate(tokens):
        row = logits[len(prompt) - 1 + i]
        second, first = np.sort(row)[-2:]
        if first - second >= gap:
            clear += 1
            expect(token == int(np.argmax(row)),
                   f"token {i} is {token}, not {int(np.argmax(row))}, which leads by {first - second:.3f}")
    return clear


def log_softmax(x):
    x = np.asarray(x, np.float64)
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def mean_kl(logits, reference):
    """KL(reference || logits) in nats, the mean over rows."""
    p, q = log_softmax(reference), log_softmax(logits)
    return float((np.exp(p) * (p - q)).sum(axis=-1).mean())
