"""Measurements and memory: what bench, --stats, info and --load say, on a
small model. How fast it is, is not tested here."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import gguf as gguf_file
import make_gguf
from harness import Skip, expect

LAYERS, KV_HEADS, HEAD_SIZE = 2, 1, 32
SIZES = ["--kind=q4_0", "--width=128", "--heads=4", f"--kv-heads={KV_HEADS}", f"--head-size={HEAD_SIZE}", "--ffn=256",
         f"--layers={LAYERS}", "--vocab=512"]
# Keys and values in float16.
CACHE_BYTES = 2 * 2 * LAYERS * KV_HEADS * HEAD_SIZE
BENCH = pathlib.Path(__file__).resolve().parents[2] / "tools/bench"


def make_model(tools):
    path = tools.work / "bench.gguf"
    make_gguf.make([str(path), *SIZES])
    return path, tools.compile(path, "bench.izh", "--target=native")


def work_of(path):
    """-> bytes of the matrices that every token reads, operations a token and a row of logits."""
    size = operations = outputs = 0
    for name, tensor in gguf_file.read(path)[1].items():
        if len(tensor.shape) < 2 or name == "token_embd.weight":
            continue
        count = 2 * tensor.shape[0] * tensor.shape[1]
        size += len(tensor.data)
        if name == "output.weight":
            outputs += count
        else:
            operations += count
    return size, operations, outputs


def rows(tools, path, artifact):
    """Every row has its speeds, and the work of a token is the model's."""
    image = tools.work / "bench.svg"
    done = tools.call("izh-rt", "bench", artifact, "-p", 16, "-n", 8, "-r", 2, "--threads", "1,2", "--contexts", "0,100",
                      "--json", "--svg", image)
    result = json.loads(done.stdout)
    expect([(row["threads"], row["context"]) for row in result["rows"]] == [(1, 0), (1, 100), (2, 0), (2, 100)],
           f"rows {result['rows']}")
    size = work_of(path)[0]
    for row in result["rows"]:
        expect(row["tg_tps"] > 0 and row["tg_predicted"] > 0 and row["tg_share"] > 0, f"row {row}")
        expect((row["pp_tps"] is not None) == (row["context"] == 0), f"row {row}")
        read = row["bytes_per_token"] - CACHE_BYTES * (row["context"] + 4)
        expect(size <= read <= 1.03 * size, f"a token is said to read {read} bytes of weights, the file has {size}")
    expect([one["threads"] for one in result["machine"]["by_threads"]] == [1, 2], f"{result['machine']}")
    lines = xml.etree.ElementTree.parse(image).getroot().findall(".//{http://www.w3.org/2000/svg}circle")
    expect(len(lines) == 4, f"{len(lines)} points in the plot")
    return f"{size} bytes a token"


def forms(tools, artifact):
    short = ["izh-rt", "bench", artifact, "-p", 8, "-n", 4, "-r", 1]
    table = tools.call(*short, "--markdown", "--threads", "1,2").stdout.splitlines()
    columns = {line.count("|") for line in table if line.startswith("|")}
    expect(len(columns) == 1 and len([line for line in table if line.startswith("|")]) == 4, f"table {table}")
    text = tools.call(*short).stdout
    expect("GB/s" in text and "predicted" in text, text)
    sustained = json.loads(tools.call(*short, "--sustain", 3, "--json").stdout)["sustained"][0]
    expect(len(sustained["rates"]) >= 2 and sustained["first_tps"] > 0 and sustained["last_tps"] > 0, f"{sustained}")
    return tools.refused(*short, "--svg", "/nowhere/x.svg", says=["/nowhere/x.svg"])


def roofline(tools, path):
    """--stats predicts from the model's work; the numbers are those of the file."""
    size, operations, outputs = work_of(path)
    text = tools.call("izhc", "compile", path, "-o", tools.work / "stats.izh", "--target=reference", "--stats",
                      "--machine", "gbps=1,gops=1000").stdout
    predicted = [line for line in text.splitlines() if "generation after 0" in line]
    expect(len(predicted) == 1 and "memory" in predicted[0], text)
    speed = float(predicted[0].split()[3])
    expect(0.97 * 1e9 / size <= speed <= 1e9 / size + 1, f"{speed} tokens/s from {size} bytes at 1 GB/s")
    text = tools.call("izhc", "compile", path, "-o", tools.work / "stats.izh", "--target=reference", "--stats",
                      "--machine", "gbps=1000,gops=1").stdout
    speed = float([line for line in text.splitlines() if "generation after 0" in line][0].split()[3])
    expect(abs(speed - 1e9 / (operations + outputs)) < 0.1, f"{speed} tokens/s from {operations + outputs} operations")


def load(tools, artifact):
    """A file that is read gives the bits of one that is mapped; both also when it is on the disk only."""
    ids = list(range(2, 42))
    mapped = tools.logits(artifact, ids)
    for how in ("read", "map"):
        descriptor = os.open(artifact, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
        expect((tools.logits(artifact, ids, "--load", how) == mapped).all(), f"--load={how} gives other logits")


def memory(tools, artifact):
    """info tells what a run takes; what can't fit is refused before it is taken."""
    for how, is_mapped in (("map", True), ("read", False)):
        facts = json.loads(tools.call("izh-rt", "info", artifact, "--json", "--ctx", 1000, "--load", how).stdout)
        needs = facts["memory"]
        expect(needs["tokens"] == 1000 and needs["file_mapped"] == is_mapped, f"{needs}")
        expect(needs["cache"] >= 1000 * CACHE_BYTES, f"{needs}")
        expect(needs["peak"] == needs["buffers"] + needs["cache"] + needs["file"], f"{needs}")
        expect(needs["file"] == artifact.stat().st_size and needs["limit"] > needs["peak"], f"{needs}")
    limited = ["prlimit", f"--as={1 << 30}"]
    if subprocess.run([*limited, "true"], capture_output=True).returncode != 0:
        raise Skip("the limits can't be set here")
    return tools.refused("izh-rt", "bench", artifact, "-p", 16, "-n", 1, "--ctx", 16_000_000, prefix=limited,
                         says=["1024 MiB", "cache", "fewer tokens"])


def neighbours(tools, artifact):
    """Busy loops change no bit."""
    ids = list(range(2, 66))
    alone = tools.logits(artifact, ids)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        for threads in (2, 4):
            expect((tools.logits(artifact, ids, "--threads", threads, "--chunk", 3) == alone).all(), "other logits")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def disturbed(tools, path, artifact):
    """The script that measures speed beside busy loops runs, and finds the same bits."""
    command = [sys.executable, str(BENCH / "disturbed.py"), str(path), str(artifact), "--izh-rt",
               str(tools.binaries / "izh-rt"), "-n", "4", "-r", "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0 and "the same bits" in done.stdout, done.stdout + done.stderr)
    expect(done.stdout.count("tokens/s") == 4, done.stdout)


def readme_table():
    sys.path.insert(0, str(BENCH))
    import table
    row = {"threads": 2, "variant": "v", "read_gbps": 50, "int8_gops": 900, "izh_pp": 200.4, "peer_pp": 100, "ratio_pp": 2.004,
           "izh_tg": 40, "peer_tg": 20.5, "ratio_tg": 1.951, "share_pp": 0.61, "share_tg": 0.9}
    results = [{"gguf": "a/m.gguf", "prompt": 512, "generate": 64, "depth": 0, "rounds": 5, "rows": [row]}]
    lines = table.table(results, "a machine", "today")
    expect(lines[-1] == "| m, 512 + 64 tokens | 2 | 200 | 100 | 2.00 | 61% | 40.0 | 20.5 | 1.95 | 90% |", lines[-1])
    expect(table.replace("a\n<!-- bench -->\nold\n<!-- /bench -->\nb\n", ["new"]) ==
           "a\n<!-- bench -->\nnew\n<!-- /bench -->\nb\n", "the table is not replaced")
    for text in ("", "<!-- /bench -->\n<!-- bench -->\n", "<!-- bench -->\n<!-- bench -->\n<!-- /bench -->\n"):
        try:
            table.replace(text, [])
        except ValueError:
            continue
        expect(False, f"{text!r} was changed")


def run(suite, tools):
    suite.run("bench README table", readme_table)
    made = suite.make("bench model", make_model, tools)
    if made is None:
        return
    path, artifact = made
    suite.run("bench rows", rows, tools, path, artifact)
    suite.run("bench forms", forms, tools, artifact)
    suite.run("bench roofline", roofline, tools, path)
    suite.run("bench load", load, tools, artifact)
    suite.run("bench memory", memory, tools, artifact)
    suite.run("bench busy neighbours", neighbours, tools, artifact)
    suite.run("bench disturbed", disturbed, tools, path, artifact)
