"""Turns a tiny GGUF model (make_gguf.py) into the folder that its publisher would
have: config.json, safetensors in two files with an index, tokenizer.json."""

import json
import struct

import numpy as np

import gguf
from reference import TRAITS, Model

NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
    "inp_gate": "per_layer_input_gate", "proj": "per_layer_projection", "post_norm": "post_per_layer_input_norm",
    "per_layer_token_embd": "model.embed_tokens_per_layer", "per_layer_proj_norm": "model.per_layer_projection_norm",
    "per_layer_model_proj": "model.per_layer_model_projection",
}
# Of linear attention.
DELTA = {
    "attn_qkv.weight": "in_proj_qkv.weight", "attn_gate.weight": "in_proj_z.weight", "ssm_beta.weight": "in_proj_b.weight",
    "ssm_alpha.weight": "in_proj_a.weight", "ssm_conv1d.weight": "conv1d.weight", "ssm_a": "A_log",
    "ssm_dt.bias": "dt_bias", "ssm_norm.weight": "norm.weight", "ssm_out.weight": "out_proj.weight",
}
# Where norms stand on both sides of the feed-forward part.
BEFORE = {"ffn_norm": "pre_feedforward_layernorm"}
TYPES = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
KEYS = {
    "hidden_size": "embedding_length", "num_hidden_layers": "block_count", "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base", "head_dim": "rope.dimension_count",
}


# Whose norms are stored as the difference from 1.
FROM_ONE = ("gemma2", "gemma3", "qwen35")


def published(name, arch):
    if name.split(".", 2)[-1] in DELTA and arch == "qwen35":
        return f"model.layers.{name.split('.')[1]}.linear_attn." + DELTA[name.split(".", 2)[-1]]
    *layer, part, kind = name.split(".")
    if part == "layer_output_scale":
        return f"model.layers.{layer[1]}.layer_scalar"
    names = NAMES | (BEFORE if TRAITS[arch].get("behind") else {})
    return ".".join(["model.layers", layer[1], names[part], kind] if layer else [names[part], kind])


def rope(facts, arch):
    """The two kinds of layers of a model with windows."""
    fact = lambda name, *default: facts.get(f"{arch}.{name}", *default)
    far = {"rope_type": "default", "rope_theta": fact("rope.freq_base")}
    if fact("rope.scaling.type") == "linear":
        far |= {"rope_type": "linear", "factor": fact("rope.scaling.factor")}
    if arch == "gemma4":
        far |= {"rope_type": "proportional", "partial_rotary_factor": 0.25}
    near = {"rope_type": "default", "rope_theta": fact("rope.freq_base_swa")}
    return {"full_attention": far, "sliding_attention": near} if near["rope_theta"] else far


def window_keys(path, facts, arch):
    """What models with windows say beyond the usual."""
    model, layers = Model(path), facts[f"{arch}.block_count"]
    config = {"sliding_window": facts[f"{arch}.attention.sliding_window"], "rope_parameters": rope(facts, arch),
              "layer_types": ["sliding_attention" if model.sees_window(i) else "full_attention" for i in range(layers)]}
    if "gelu" in TRAITS[arch]:
        config["hidden_activation"] = "gelu_pytorch_tanh"
        config["query_pre_attn_scalar"] = model.head_size
        for cap in ("attn_logit_softcapping", "final_logit_softcapping"):
            config[cap] = facts.get(f"{arch}.{cap}")
    if arch == "gemma4":
        config |= gemma4_keys(facts)
    return config


def gemma4_keys(facts):
    fact = lambda name: facts["gemma4." + name]
    heads, widths = fact("attention.head_count_kv"), fact("feed_forward_length")
    return {"head_dim": fact("attention.key_length_swa"), "global_head_dim": fact("attention.key_length"),
            "num_key_value_heads": heads[0], "num_global_key_value_heads": heads[1], "attention_k_eq_v": True,
            "num_kv_shared_layers": fact("attention.shared_kv_layers"), "intermediate_size": widths[0],
            "use_double_wide_mlp": widths[-1] > widths[0],
            "hidden_size_per_layer_input": fact("embedding_length_per_layer_input")}


def delta_keys(facts):
    fact = lambda name: facts["qwen35." + name]
    heads, interval = fact("ssm.time_step_rank"), fact("full_attention_interval")
    return {"linear_num_key_heads": fact("ssm.group_count"), "linear_key_head_dim": fact("ssm.state_size"),
            "linear_num_value_heads": heads, "linear_value_head_dim": fact("ssm.inner_size") // heads,
            "linear_conv_kernel_dim": fact("ssm.conv_kernel"), "partial_rotary_factor": 1.0,
            "layer_types": ["full_attention" if i % interval == interval - 1 else "linear_attention"
                            for i in range(fact("block_count"))]}


def delta_values(name, data, shape, config):
    """Value heads that share a key head side by side, and decays as logarithms."""
    keys, values, size = (config["linear_" + part] for part in ("num_key_heads", "num_value_heads", "value_head_dim"))
    part = name.split(".", 2)[-1]
    if part == "ssm_a":
        data = np.log(-np.frombuffer(data, "<f4")).tobytes()
    across = part == "ssm_out.weight"
    count = shape[-1] if across else shape[0]
    size = {"ssm_beta.weight": 1, "ssm_alpha.weight": 1, "ssm_a": 1, "ssm_dt.bias": 1}.get(part, size)
    before = count - values * size
    # Head h of the file has the key head h modulo their number.
    heads = sorted(range(values), key=lambda head: (head % keys, head // keys))
    order = [*range(before), *(before + head * size + i for head in heads for i in range(size))]
    rows = np.frombuffer(data, np.uint8).reshape((shape[0], count, -1) if across else (count, -1))
    return rows[:, order].tobytes() if across else rows[order].tobytes()


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
    if "near" in TRAITS[arch]:
        config = {name: value for name, value in config.items() if name not in ("hidden_act", "rope_theta")}
        config |= window_keys(path, facts, arch)
    if arch == "qwen35":
        config |= delta_keys(facts)
    (folder / "config.json").write_text(json.dumps(config))
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    stored = {}
    for name, tensor in tensors.items():
        if name == "rope_freqs.weight":
            continue
        turned = heads.get(name.split(".")[-2]) if arch == "llama" else None
        data = halves(tensor, turned) if turned else bytes(tensor.data)
        if arch == "qwen35" and name.split(".", 2)[-1] in DELTA and "norm" not in name:
            data = delta_values(name, data, tensor.shape, config)
        elif arch in FROM_ONE and name.endswith("norm.weight") and "ssm_norm" not in name:
            data = (np.frombuffer(data, "<f4") - 1).tobytes()
        stored[published(name, arch)] = (tensor.kind, list(tensor.shape), data)
    names, index = sorted(stored), {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        write_safetensors(folder / file, {name: stored[name] for name in part})
        index |= {name: file for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    write_tokenizer(folder, facts)
