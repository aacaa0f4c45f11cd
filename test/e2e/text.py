"""Model folders, chat templates and conversations."""

import base64
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import termios
import time

import numpy as np

import gguf
import make_folder
import make_gguf
from harness import expect
from reference import Model, nmse
from tiny import ids_of

TEMPLATE = """{{- bos_token }}
{%- for m in messages %}
    {%- if m.role not in ['system', 'user', 'assistant'] %}
        {{- raise_exception('no role ' ~ m.role) }}
    {%- endif %}
    {{- m.role[0] ~ ': ' ~ m.content | trim ~ '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'a:' }}{% endif -%}
"""
TALK = [{"role": "user", "content": " the thing "}, {"role": "assistant", "content": "and"}]
PROMPT = "<|start|>u: the thing\na: and\na:"
EXACT_BAR = 1e-6


def model_file(tools, *options):
    path = tools.made / f"text-{abs(hash(options))}.gguf"
    make_gguf.make([str(path), "--template", TEMPLATE, *options])
    return path


def folder(tools, arch, *options, kind=None):
    """A folder gives the logits and the ids of the GGUF that it was made from."""
    path = model_file(tools, f"--arch={arch}", *options)
    made = tools.work / f"folder-{arch}-1.5"
    make_folder.make(path, made, kind or arch)
    artifact = tools.compile(made, "folder.izh", "--target=reference,native", "--exact")
    model = Model(path)
    ids = ids_of(40, len(model.weights["token_embd.weight"]))
    error = nmse(tools.logits(artifact, ids), model.logits(ids))
    expect(error <= EXACT_BAR, f"NMSE {error:.3e} is over {EXACT_BAR}")
    done = subprocess.run([tools.binaries / "izhc", "compile", f"{made}/", "--target=reference"], cwd=tools.work,
                          capture_output=True, timeout=120)
    expect((tools.work / f"{made.name}.izh").exists(), f"no {made.name}.izh: {done.stderr}")
    text = "the 12 things, and <|end|> another ä"
    both = [tools.call("izhc", "tokenize", source, "-p", text).stdout for source in (path, made)]
    expect(both[0] == both[1] and len(json.loads(both[0])) > 10, f"{both[1]} instead of {both[0]}")
    compare_export(tools, artifact, path)
    return f"{error:.1e}"


def compare_export(tools, artifact, path):
    """The GGUF file that a folder's artifact is written as has the tensors and
    the keys of the one that the folder was made from."""
    back = tools.work / "folder-back.gguf"
    tools.call("izhc", "export", artifact, "-o", back)
    (wanted, tensors), (keys, written) = gguf.read(path), gguf.read(back)
    differ = set(written) ^ set(tensors)
    expect(differ <= {"rope_freqs.weight"}, f"tensors {sorted(differ)}")
    for name, tensor in written.items():
        original = tensors[name]
        expect((tensor.kind, tensor.shape) == (original.kind, original.shape), f"{name} is {tensor.kind} {tensor.shape}")
        # Norms that are kept as a difference from 1 have lost a bit.
        same = tensor.data == original.data or (tensor.kind == "f32" and np.allclose(
            *(np.frombuffer(t.data, "<f4") for t in (tensor, original)), rtol=0, atol=1e-6))
        expect(same, f"the values of {name} are others")
    for key, value in wanted.items():
        if key.endswith("token_type"):
            # A folder tells which tokens are special, no more.
            value, keys[key] = ([kind == 3 for kind in kinds] for kinds in (value, keys[key]))
        # A pattern may also be a period.
        if key in keys and key != "general.name" and not key.endswith("sliding_window_pattern"):
            expect(keys[key] == value, f"{key} is {str(keys[key])[:60]} instead of {str(value)[:60]}")
    needed = ["general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
              "tokenizer.ggml.merges", "tokenizer.ggml.token_type", "tokenizer.chat_template"]
    needed += [key for key in wanted if key.split(".", 1)[1] in make_folder.KEYS.values()]
    expect(set(needed) <= set(keys), f"there is no {sorted(set(needed) - set(keys))}")


def told_in_part(tools):
    """Of a model that also sees images config.json leaves out what its architecture's code has anyway."""
    usual = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "query_pre_attn_scalar": 256}
    path = model_file(tools, "--arch=gemma3", "--layers=3", "--width=64", "--ffn=96", "--heads=8", "--kv-heads=4",
                      "--head-size=256")
    made = tools.work / "in-part"
    make_folder.make(path, made, "gemma3")
    config = json.loads((made / "config.json").read_text())
    expect(usual.items() <= config.items(), f"config.json is {config}")
    config = {name: value for name, value in config.items() if name not in usual}
    (made / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": config}))
    artifact = tools.compile(made, "in-part.izh", "--target=reference,native", "--exact")
    error = nmse(tools.logits(artifact, ids_of(40, 260)), Model(path).logits(ids_of(40, 260)))
    expect(error <= EXACT_BAR, f"NMSE {error:.3e} is over {EXACT_BAR}")
    return f"{error:.1e}"


def render(tools):
    """Of a template's file, a GGUF, a folder and an artifact alike."""
    path = model_file(tools)
    made, template, context = tools.work / "rendered", tools.work / "t.jinja", tools.work / "c.json"
    make_folder.make(path, made, "llama")
    artifact = tools.compile(path, "rendered.izh", "--target=reference,native")
    for command in (["render", artifact, "--context", context], ["tokenize", artifact, "-p", "a"]):
        tools.refused("izhc", *command, says=["compiled already", f"izh-rt {command[0]}"])
    template.write_text(TEMPLATE)
    context.write_text(json.dumps({"messages": TALK}))
    for command in (["izhc", "render", path], ["izhc", "render", made], ["izh-rt", "render", artifact]):
        text = tools.call(*command, "--context", context).stdout
        expect(text == PROMPT, f"{command[:2]}: {text!r}")
    context.write_text(json.dumps({"messages": TALK, "bos_token": "B", "add_generation_prompt": False}))
    text = tools.call("izhc", "render", template, "--context", context).stdout
    expect(text == "Bu: the thing\na: and\n", repr(text))
    context.write_text(json.dumps({"messages": [{"role": "tool", "content": ""}]}))
    for command in (["izhc", "render", template], ["izh-rt", "render", artifact]):
        tools.refused(*command, "--context", context, says=["no role tool"])
    context.write_text("{]")
    tools.refused("izhc", "render", template, "--context", context, says=["JSON"])


def converse(tools, artifact, text, *options):
    """-> what chat answers to the lines of `text`, and what it tells beside"""
    command = [tools.binaries / "izh-rt", "chat", artifact, "--temp", "0", "-n", "12", *options]
    done = subprocess.run(list(map(str, command)), input=text.encode(), capture_output=True, timeout=120)
    expect(done.returncode == 0, f"status {done.returncode}: {done.stderr.decode()}")
    return [out.decode("utf-8", "replace") for out in (done.stdout, done.stderr)]


def talk(*arguments):
    return converse(*arguments)[0]


def answer_to(tools, artifact, messages):
    """What `run` makes of the prompt that `render` gives."""
    context, prompt = tools.work / "c.json", tools.work / "prompt.txt"
    context.write_text(json.dumps({"messages": messages}))
    prompt.write_text(tools.call("izh-rt", "render", artifact, "--context", context).stdout)
    done = tools.call("izh-rt", "run", artifact, "-f", prompt, "--temp", 0, "-n", 12, "--json")
    return json.loads(done.stdout)["text"]


def chat(tools):
    """Answers are those to the whole conversation so far; several lines make one message."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0"), "chat.izh", "--target=native")
    first = [{"role": "system", "content": "on the win"}, {"role": "user", "content": "the and the"}]
    one = answer_to(tools, artifact, first)
    second = [*first, {"role": "assistant", "content": one}, {"role": "user", "content": "and\nthen"}]
    two = answer_to(tools, artifact, second)
    got = talk(tools, artifact, "the and the\n\"\"\"\nand\nthen\n\"\"\"\n", "--system", "on the win")
    expect(got == f"{one}\n{two}\n", f"{got!r} instead of {one!r} and {two!r}")
    got = talk(tools, artifact, "other\n/clear\nthe and the\n/exit\nmore\n", "--system", "on the win")
    expect(got.endswith(f"\n{one}\n"), f"{got!r} doesn't end with {one!r}")


def too_long(tools):
    """A message that the context can't hold is refused, and the conversation goes on as if it had not been said."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0"), "chat.izh", "--target=native")
    said = "the and the"
    one = answer_to(tools, artifact, [{"role": "user", "content": said}])
    two = answer_to(tools, artifact, [{"role": "user", "content": said}, {"role": "assistant", "content": one},
                                      {"role": "user", "content": "then"}])
    got, told = converse(tools, artifact, f"{said}\n{'a thing ' * 400}\nthen\n", "--ctx", "400")
    expect(got == f"{one}\n{two}\n", f"{got!r} instead of {one!r} and {two!r}")
    expect("the context of 400 has room for 349 and an answer" in told and "forgotten" not in told, told)


ASKED = b"> \x1b[K\r\x1b[2C"


def read_until(terminal, end):
    """-> what is shown until it ends so, for example ASKED. Keys that come before the program asks for them are the terminal's to edit."""
    shown = b""
    while not shown.endswith(end):
        expect(select.select([terminal], [], [], 60)[0], f"only {shown!r} is shown")
        shown += os.read(terminal, 4096)
    return shown


def pasted(tools):
    """What is pasted as several lines is one message, whatever it looks like."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0"), "chat.izh", "--target=native")
    for text in ('"""the\nand', "/* the */\nand", "the\nand \\"):
        expected = answer_to(tools, artifact, [{"role": "user", "content": text}])
        ours, theirs = pty.openpty()
        process = subprocess.Popen([tools.binaries / "izh-rt", "chat", artifact, "--temp", "0", "-n", "12"], stdin=theirs,
                                   stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm"})
        for keys in (b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~\r", b"\x04"):
            read_until(ours, ASKED)
            os.write(ours, keys)
        rest, _ = process.communicate(timeout=60)
        os.close(theirs)
        os.close(ours)
        expect(rest.decode() == expected + "\n", f"{rest!r}, not {expected!r} to {text!r}")


def commands(tools):
    """Commands are no messages; the seed that is told gives the same answers."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0"), "chat.izh", "--target=native")
    answer, told = converse(tools, artifact, "/quit\n/Exit  \nthe\n")
    expect(answer == "", f"a command was answered: {answer!r}")
    expect("'/quit'" in told and "/clear" in told and "/exit" in told, told)
    expect(talk(tools, artifact, "the and\n", "--system", "") == talk(tools, artifact, "the and\n"), "--system ''")
    answer, told = converse(tools, artifact, "the and the\n", "--temp", "2")
    word, seed = told.splitlines()[-1].split()
    expect(word == "seed", told)
    again = talk(tools, artifact, "the and the\n", "--temp", "2", "--seed", seed)
    expect(again == answer, f"with seed {seed} {again!r}, not {answer!r}")


def edited(tools):
    """At a terminal a line is edited before it is sent, and the terminal is left as it was."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0"), "chat.izh", "--target=native")
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen([tools.binaries / "izh-rt", "chat", artifact], stdin=theirs, stdout=subprocess.PIPE,
                               stderr=theirs, env=os.environ | {"TERM": "xterm"})
    shown = b""
    # Back over two bytes of one character and to the start; then that line once more.
    for keys in (b"exit\xc3\xa4\x7f\x1b[H/y\x1b[C\r", b"\x1b[A" + b"\x1b[D" * 4 + b"\x7f\r"):
        shown += read_until(ours, ASKED)
        os.write(ours, keys)
    answer, _ = process.communicate(timeout=60)
    expect(process.returncode == 0, f"status {process.returncode}")
    expect(termios.tcgetattr(theirs) == before, "the terminal is left in another state")
    shown += read_until(ours, b"\n")
    os.close(theirs)
    os.close(ours)
    expect(answer == b"" and b"no command '/yexit'" in shown, f"{answer!r} {shown!r}")


def endings(tools):
    """What ended a text is told, and rates where there are some."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0"), "chat.izh", "--target=native")
    run = ["izh-rt", "run", artifact, "-p", "the thing", "--temp", 0, "--ignore-eos"]
    used = len(json.loads(tools.call("izh-rt", "tokenize", artifact, "-p", "the thing", "--json").stdout))
    # The last token has to be read by nobody.
    for options, stop, count in ((["-n", 3], "length", 3), (["-n", 50, "-c", used + 2], "context", 3)):
        answer = json.loads(tools.call(*run, *options, "--json").stdout)
        expect((answer["stop"], len(answer["tokens"])) == (stop, count), f"{options}: {answer}")
    said = tools.call(*run, "-n", 3).stderr
    expect("3 tokens at " in said and "(cut by -n)" in said, said)
    said = tools.call(*run, "-n", 50, "-c", used + 2).stderr
    expect(f"the context of {used + 2} tokens is full" in said, said)
    said = tools.call(*run, "-n", 1).stderr
    expect("generation 1 token (" in said, said)
    trained = json.loads(tools.call("izh-rt", "info", artifact, "--json").stdout)["context"]
    said = tools.call(*run, "-n", 1, "-c", trained + 1).stderr
    expect(f"trained or compiled for {trained} tokens" in said, said)
    expect("trained" not in tools.call(*run, "-n", 1, "-c", trained).stderr, "a warning without reason")
    command = [str(tools.binaries / "izh-rt"), *map(str, run[1:]), "-n", "3"]
    both = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60).stdout
    expect(both.splitlines()[-1].startswith(b"load "), both)


def ends_at_once(tools):
    """A model whose likeliest token, the first of equal ones, ends the text."""
    path = tools.work / "silent.gguf"
    options = make_gguf.options([str(path), "--template", TEMPLATE])
    metadata, tensors = make_gguf.make_metadata(options), make_gguf.make_tensors(options)
    norm = tensors["output_norm.weight"]
    tensors["output_norm.weight"] = gguf.Tensor("f32", norm.shape, bytes(4) * norm.shape[0])
    metadata["tokenizer.ggml.eos_token_id"] = (gguf.U32, 0)
    gguf.write(path, metadata, tensors)
    done = tools.call("izh-rt", "run", tools.compile(path, "silent.izh"), "-p", "the", "--temp", 0)
    expect(done.stdout == "", repr(done.stdout))
    expect("ended the text at once" in done.stderr and "izh-rt chat" in done.stderr, done.stderr)


def missing_parts(tools):
    """What an artifact will not do is told when it is made."""
    path, plain = model_file(tools), tools.work / "plain.gguf"
    make_gguf.make([str(plain)])
    compiled = lambda model: tools.call("izhc", "compile", model, "--target=reference", "-o", tools.work / "part.izh").stderr
    expect("warning" not in compiled(path), "a warning about a whole model")
    said = compiled(plain)
    expect("no chat template" in said and "1 variant\n" in said, said)
    for template, problem in (("{% for m in messages %}", "ends inside of a block"), ("{{ messages | unheard }}", "no filter 'unheard'")):
        make_gguf.make([str(plain), "--template", template])
        said = compiled(plain)
        expect("makes no prompt of a message 'Hello'" in said and problem in said, said)
    made = tools.work / "mute"
    make_folder.make(path, made, "llama")
    for name in ("tokenizer.json", "tokenizer.model"):
        (made / name).unlink(missing_ok=True)
    expect("no tokenizer" in compiled(made), "nothing is said about the tokenizer")


def interrupt(tools):
    """Ctrl-C ends the answer, and the next message is answered."""
    artifact = tools.compile(model_file(tools, "--kind=q8_0", "--context=8192"), "long.izh", "--target=native")
    command = [tools.binaries / "izh-rt", "chat", artifact, "--temp", "1", "--seed", "1", "-n", "100000", "-c", "8192"]
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, bufsize=0)
    for _ in range(2):
        process.stdin.write(b"the thing\n")
        expect(process.stdout.read(1), "no answer")
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    process.stdin.close()
    process.stdout.read()
    expect(process.wait(60) == 0, f"status {process.returncode}: {process.stderr.read().decode()}")


def vectors(tools):
    """A model whose tokenizer contradicts the files beside it is not compiled."""
    path = tools.work / "vectors.gguf"
    make_gguf.make([str(path)])
    texts = ["the thing", "", "12 an\u00e4\n"]
    ids = [json.loads(tools.call("izhc", "tokenize", path, "--no-bos", "-p", text).stdout) for text in texts]
    path.with_suffix(".inp").write_text("".join(f"{text}\n__ggml_vocab_test__\n" for text in texts))

    refuse = lambda *says: tools.refused("izhc", "compile", path, "--target=reference", says=says)
    refuse("vectors.inp", "no", "vectors.out")

    def write(lines):
        path.with_suffix(".out").write_text("".join(f" {' '.join(map(str, line))}\n" for line in lines))

    write(ids)
    compiled = lambda: tools.call("izhc", "compile", path, "--target=reference", "-o", tools.work / "vectors.izh").stderr
    said = compiled()
    expect("all 3 texts in" in said and "vectors.inp" in said, said)
    # The name may also be kept whole.
    for ending in (".inp", ".out"):
        path.with_suffix(ending).rename(f"{path}{ending}")
    expect("vectors.gguf.inp" in compiled(), "texts beside the model were not looked at")
    # A name without an ending is both.
    bare = tools.work / "vectors-bare"
    for ending in ("", ".inp", ".out"):
        shutil.copy(f"{path}{ending}", f"{bare}{ending}")
    said = tools.call("izhc", "compile", bare, "--target=reference", "-o", tools.work / "vectors.izh").stderr
    expect("all 3 texts in" in said and said.count("vectors-bare.inp") == 1, said)
    path.with_suffix(".gguf.out").write_text(" 1\n" * 3)
    refuse("vectors.gguf.out", "text 1")
    for ending in (".inp", ".out"):
        pathlib.Path(f"{path}{ending}").rename(path.with_suffix(ending))
    ids[2] = ids[2][::-1]
    for lines, said in ((ids, "text 3"), (ids[:2], "the same number")):
        write(lines)
        refuse(said)
    # Of long lists only the place of the difference is told.
    long = "the thing, " * 3000
    found = json.loads(tools.call("izhc", "tokenize", path, "--no-bos", "-p", long).stdout)
    path.with_suffix(".inp").write_text(f"{long}\n__ggml_vocab_test__\n")
    write([found[:5000] + [1] + found[5001:]])
    refuse("text 1", f"of {len(found)}", "from place 4996 on")
    said = tools.call("izhc", "compile", path, "--target=reference", status=1).stderr
    expect(len(said) < 1000, f"{len(said)} bytes: {said[:1000]}")
    path.with_suffix(".inp").write_bytes("\r\n__ggml_vocab_test__\r\n".join(texts).encode())
    refuse("vectors.inp", "carriage return")
    path.with_suffix(".inp").write_text("")
    refuse("vectors.inp has no texts")
    path.with_suffix(".inp").unlink()
    path.with_suffix(".inp").symlink_to("nowhere")
    refuse("cannot read", "vectors.inp")
    # What a pipe would give is waited for in vain.
    path.with_suffix(".inp").unlink()
    os.mkfifo(path.with_suffix(".inp"))
    refuse("vectors.inp", "no regular file")
    path.with_suffix(".inp").unlink()
    # Two tokenizers in one folder that are not the same.
    made = tools.work / "two"
    make_folder.make(model_file(tools), made, "llama")
    files = json.loads((pathlib.Path(__file__).parent / "tokenizers/vectors/pieces-bpe.json").read_text())["files"]
    (made / "tokenizer.model").write_bytes(base64.b64decode(files["tokenizer.model"]))
    tools.refused("izhc", "compile", made, "--target=reference", says=["tokenizer.json gives", "tokenizer.model"])
    (made / "tokenizer.model").write_bytes(b"of another kind")
    tools.call("izhc", "compile", made, "--target=reference", "-o", tools.work / "two.izh")


def tokenizer_works(tools):
    """Compile encodes texts with what it made of the tokenizer, whether there are vectors or not."""
    made = tools.work / "works"
    make_folder.make(model_file(tools), made, "llama")
    good = json.loads((made / "tokenizer.json").read_text())

    def refused(says, **changes):
        (made / "tokenizer.json").write_text(json.dumps(good | changes))
        tools.refused("izhc", "compile", made, "--target=reference", says=["works", *says])

    cut = {"type": "Split", "pattern": {"Regex": "(?<=a)b"}, "behavior": "Isolated"}
    refused(["pattern", "(?<=a)b"], pre_tokenizer={"type": "Sequence", "pretokenizers": [cut, {"type": "ByteLevel"}]})
    # The letter that stands for a space is the text of a token that is printed as it is.
    space = good["model"]["vocab"]["\u0120"]
    refused(["contradict"], added_tokens=good["added_tokens"] + [{"id": space, "content": "\u0120", "special": False}])
    (made / "tokenizer.json").write_text(json.dumps(good))
    tools.call("izhc", "compile", made, "--target=reference", "-o", tools.work / "works.izh")


def refusals(tools):
    path = tools.work / "plain.gguf"
    make_gguf.make([str(path)])
    artifact = tools.compile(path, "plain.izh", "--target=native")
    tools.refused("izh-rt", "chat", artifact, says=["chat template", "izh-rt run"])
    made = tools.work / "broken"
    make_folder.make(path, made, "llama")
    (made / "model-00002-of-00002.safetensors").unlink()
    tools.refused("izhc", "compile", made, says=["model-00002-of-00002.safetensors"])
    (made / "config.json").write_text('{"model_type": "nothing"}')
    make_folder.make(path, made, "nothing")
    tools.refused("izhc", "compile", made, says=["'nothing'", "llama"])


def run(suite, tools):
    suite.run("folder llama", folder, tools, "llama")
    small = ["--layers=4", "--width=128", "--ffn=256", "--head-size=32"]
    for arch in ("gemma2", "gemma3", "gemma4", "exaone4", "seed_oss"):
        suite.run(f"folder {arch}", folder, tools, arch, *small)
    suite.run("folder qwen35", folder, tools, "qwen35", *small, kind="qwen3_5_text")
    suite.run("folder gemma3, told in part", told_in_part, tools)
    suite.run("folder qwen3 bf16, tied", folder, tools, "qwen3", "--kind=bf16", "--tied")
    for name, function in (("render", render), ("chat", chat), ("chat commands", commands),
                           ("chat with too long messages", too_long), ("chat with pasted lines", pasted),
                           ("chat at a terminal", edited),
                           ("what ends a text", endings), ("a text that ends at once", ends_at_once),
                           ("warnings about missing parts", missing_parts),
                           ("chat interrupted", interrupt),
                           ("tokenizer against its vectors", vectors), ("tokenizer works", tokenizer_works),
                           ("folders and templates refused", refusals)):
        suite.run(name, function, tools)
