"""Runs izhc and izh-rt, and counts what passed."""

import contextlib
import copy
import fcntl
import functools
import hashlib
import json
import multiprocessing
import pathlib
import subprocess
import time

import numpy as np

MOST = 4096  # tests


class Skip(Exception):
    """Raised by a test that this machine cannot run, with the reason."""


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


class Suite:
    """Runs tests and counts. share() spreads them over processes: each walks
    through all of them and runs those that it is the first to come to."""

    def __init__(self, name, only=None):
        self.name, self.only = name, only
        self.passed = self.failed = self.skipped = self.matched = 0
        self.whole = False  # a part that `only` names
        self.met = {}       # name of a test or part -> how often this process met it
        self.taken = None   # shared: how many of each number are taken
        self.inside = False # a part that this process has taken as a whole

    def share(self, count, function, *args):
        """Calls function(self, *args, number) in `count` processes; adds up what they counted."""
        self.taken = multiprocessing.Array("b", MOST)
        numbers = multiprocessing.Array("i", 4 * count)
        def child(number):
            function(self, *args, number)
            numbers[4 * number:4 * number + 4] = [self.passed, self.failed, self.skipped, self.matched]
        workers = [multiprocessing.Process(target=child, args=(number,)) for number in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            if worker.exitcode != 0:
                print(f"FAILED  a process of the tests ended with {worker.exitcode}", flush=True)
                self.failed += 1
        self.passed, self.failed, self.skipped, self.matched = (
            own + sum(numbers[i::4]) for i, own in enumerate((self.passed, self.failed, self.skipped, self.matched)))

    def take(self, name):
        """Whether this process is the first to come to `name`."""
        if self.taken is None or self.inside:
            return True
        number = len(self.met)
        expect(name not in self.met, f"two tests are called {name}")
        expect(number < MOST, "more tests than MOST")
        self.met[name] = number
        with self.taken.get_lock():
            first = self.taken[number] == 0
            self.taken[number] = 1
        return first

    @contextlib.contextmanager
    def together(self):
        """All tests run inside are this process's."""
        self.inside = True
        yield
        self.inside = False

    @contextlib.contextmanager
    def part(self, name):
        """All tests run inside belong to this part."""
        self.whole = name == self.only
        yield
        self.whole = False

    def run(self, name, function, *args, **kwargs):
        """Runs one test; its returned text, if any, is shown beside its name."""
        if (not self.only or self.whole or self.only in name) and self.take(name):
            self.matched += 1
            self._run(name, function, *args, **kwargs)

    def make(self, name, function, *args):
        """What several tests of a part need, made as a test of its own.
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
    """The programs under test; files are made in the folder `work`, those that
    other processes need too in `made`."""

    def __init__(self, binaries, work, made):
        self.binaries, self.work, self.made = (pathlib.Path(p).resolve() for p in (binaries, work, made))
        for folder in (self.work, self.made):
            folder.mkdir(parents=True, exist_ok=True)

    def with_binaries(self, folder):
        """The same folders, other programs."""
        other = copy.copy(self)
        other.binaries = pathlib.Path(folder).resolve()
        return other

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

    def once(self, key, suffix, make):
        """A file that make(path) writes, once a run.
        -> its path, the same for all processes"""
        path = self.made / (hashlib.sha256(repr(key).encode()).hexdigest()[:24] + suffix)
        with open(path.with_suffix(suffix + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                part = path.with_suffix(".part" + suffix)
                make(part)
                part.rename(path)
        return path

    @functools.cached_property
    def targets(self):
        """What izhc can generate code for: name -> whether this machine runs it."""
        lines = self.call("izhc", "targets").stdout.splitlines()
        return {line.split()[0]: line.endswith(", runs here") for line in lines}

    def compile(self, gguf, out, *options, every=False):
        """For the variants that this machine runs; `every`: for the default set."""
        out = self.work / out
        if not every and not any(option.startswith("--target") for option in options):
            options = ["--target=" + ",".join(name for name, here in self.targets.items() if here), *options]
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
        for variant in self.targets:
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
