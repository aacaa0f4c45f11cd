"""Turns a tiny GGUF model (make_gguf.py) into the folder that its publisher would
have: config.json, safetensors in two files with an index, tokenizer.json."""

import json
import struct

import numpy as np

import gguf

NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
TYPES = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
KEYS = {
    "hidden_size": "embedding_length", "num_hidden_layers": "block_count", "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base", "head_dim": "rope.dimension_count",
}


def published(name):
    *layer, part, kind = name.split(".")
    return ".".join(["model.layers", layer[1], NAMES[part], kind] if layer else [NAMES[part], kind])


def halves(tensor, heads):
    """Rows of each head from the order of pairs to that of two halves."""
    rows = np.frombuffer(tensor.data, np.uint8).reshape(heads, -1, 2, len(tensor.data) // tensor.shape[0])
    return rows.swapaxes(1, 2).tobytes()


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": TYPES[kind], "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write_tokenizer(folder, facts):
    tokens, types = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    added = [{"id": i, "content": t, "special": True} for i, t in enumerate(tokens) if types[i] == 3]
    steps = [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": False}]
    (folder / "tokenizer.json").write_text(json.dumps({
        "added_tokens": added, "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)},
                  "merges": facts["tokenizer.ggml.merges"]}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "bos_token": tokens[facts["tokenizer.ggml.bos_token_id"]], "eos_token": {"content": tokens[1]},
        "chat_template": facts.get("tokenizer.chat_template")}))


def make(path, folder, kind):
    """Writes `folder` from the GGUF `path`. kind: the value of model_type"""
    facts, tensors = gguf.read(path)
    arch = facts["general.architecture"]
    folder.mkdir(exist_ok=True)
    config = {"model_type": kind, "hidden_act": "silu", "tie_word_embeddings": "output.weight" not in tensors}
    config |= {name: facts[f"{arch}.{key}"] for name, key in KEYS.items()}
    (folder / "config.json").write_text(json.dumps(config))
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    stored = {}
    for name, tensor in tensors.items():
        turned = heads.get(name.split(".")[-2]) if arch == "llama" else None
        data = halves(tensor, turned) if turned else bytes(tensor.data)
        stored[published(name)] = (tensor.kind, list(tensor.shape), data)
    names, index = sorted(stored), {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        write_safetensors(folder / file, {name: stored[name] for name in part})
        index |= {name: file for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    write_tokenizer(folder, facts)
