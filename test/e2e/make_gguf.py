#!/usr/bin/env python3
"""Writes tiny models with random weights from a fixed seed.

    make_gguf.py OUT.gguf --arch llama --kind q4_k [--heads 4 …]

The same arguments give the same bytes. Sizes default to something that every
weight type fits (rows of 256); odd sizes are for types with smaller blocks.
"""

import argparse

import numpy as np

import blocks
import gguf
from reference import TRAITS

MERGES = ["h e", "t he", "i n", "a n", "Ġ t", "Ġ a", "e r", "o n", "Ġt he", "an d", "Ġ w", "in g"]


def byte_letters():
    """The letter that stands for each byte in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    for b in range(256):
        if b not in letters:
            letters[b] = chr(256 + len(letters) - len(plain))
    return [letters[b] for b in range(256)]


def tokenizer(size, pre):
    """Metadata of a byte-level vocabulary of `size` tokens."""
    tokens = ["<|start|>", "<|end|>", *byte_letters(), *(m.replace(" ", "") for m in MERGES)]
    assert size >= len(tokens), size
    types = [3, 3] + [1] * (len(tokens) - 2)
    for i in range(len(tokens), size):
        tokens.append(f"<|unused{i}|>")
        types.append(5)
    return {
        "tokenizer.ggml.model": (gguf.STRING, "gpt2"),
        "tokenizer.ggml.pre": (gguf.STRING, pre),
        "tokenizer.ggml.tokens": (gguf.ARRAY, (gguf.STRING, tokens)),
        "tokenizer.ggml.token_type": (gguf.ARRAY, (gguf.I32, types)),
        "tokenizer.ggml.merges": (gguf.ARRAY, (gguf.STRING, MERGES)),
        "tokenizer.ggml.bos_token_id": (gguf.U32, 0),
        "tokenizer.ggml.eos_token_id": (gguf.U32, 1),
        "tokenizer.ggml.add_bos_token": (gguf.BOOL, False),
    }


GEMMA4_EXTRA = 32  # what a layer adds for each token


def gemma4_layers(o):
    """-> for each layer: whether it has a window, its heads' size and number of
    key heads, the width of its feed-forward part, whether it has a cache of its own"""
    for i in range(o.layers):
        near, own = i % 2 == 0, i < (o.layers + 1) // 2
        yield near, o.head_size * (1 if near else 2), o.kv_heads // (1 if near else 2), o.ffn * (1 if own else 2), own


def gemma4(o):
    near, sizes, key_heads, widths, own = zip(*gemma4_layers(o))
    return {"attention.sliding_window": 8, "attention.sliding_window_pattern": list(near),
            "attention.head_count_kv": list(key_heads), "feed_forward_length": list(widths),
            "attention.key_length": max(sizes), "attention.value_length": max(sizes),
            "attention.key_length_swa": o.head_size, "attention.value_length_swa": o.head_size,
            "rope.dimension_count": max(sizes), "rope.dimension_count_swa": o.head_size, "rope.freq_base_swa": 100.0,
            "attention.shared_kv_layers": own.count(False), "embedding_length_per_layer_input": GEMMA4_EXTRA,
            "final_logit_softcapping": 2.0}


# Of the gated delta rule.
DELTA = {"ssm.conv_kernel": 4, "ssm.state_size": 32, "ssm.group_count": 2, "ssm.time_step_rank": 4,
         "ssm.inner_size": 128, "full_attention_interval": 4}

# Metadata beyond what all have.
FACTS = {
    "granite": {"attention.scale": 0.02, "embedding_scale": 0.5, "residual_scale": 0.22, "logit_scale": 8.0},
    "mistral3": {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 16,
                 "rope.scaling.yarn_log_multiplier": 0.5, "attention.temperature_scale": 0.1},
    "glm4moe": {"rope.dimension_count": 32, "expert_gating_func": 2, "expert_shared_count": 1,
                "expert_weights_scale": 1.5, "nextn_predict_layers": 1},
    "gpt-oss": {"attention.sliding_window": 16},
    "qwen2moe": {"expert_shared_count": 1},
    "deepseek2": {"attention.head_count_kv": 1, "attention.q_lora_rank": 96, "attention.kv_lora_rank": 64,
                  "attention.key_length": 96, "attention.value_length": 64, "attention.key_length_mla": 96,
                  "attention.value_length_mla": 32, "rope.dimension_count": 32, "expert_gating_func": 2,
                  "expert_shared_count": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5},
    "gemma2": {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0, "attention.sliding_window": 8},
    "gemma3": {"rope.freq_base_swa": 100.0, "attention.sliding_window": 8, "attention.sliding_window_pattern": 3,
               "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    "gemma4": gemma4,
    "exaone4": {"attention.sliding_window": 8},
    "lfm2": {"attention.head_count_kv": [0, 0, 2, 0], "shortconv.l_cache": 3},
    "qwen35": DELTA,
    "qwen35moe": DELTA | {"expert_shared_count": 1},
    "qwen3next": DELTA | {"expert_shared_count": 1},
    "phi3": {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": 128},
}


def more_facts(o):
    facts = FACTS.get(o.arch, {})
    return facts(o) if callable(facts) else facts


def typed(value):
    kinds = {bool: gguf.BOOL, int: gguf.U32, float: gguf.F32, str: gguf.STRING}
    if isinstance(value, list):
        return gguf.ARRAY, (kinds[type(value[0])], value)
    return kinds[type(value)], value


def make_metadata(o):
    facts = {
        "context_length": (gguf.U32, o.context),
        "embedding_length": (gguf.U32, o.width),
        "block_count": (gguf.U32, o.layers + (o.arch == "glm4moe")),
        "feed_forward_length": (gguf.U32, o.ffn),
        "attention.head_count": (gguf.U32, o.heads),
        "attention.head_count_kv": (gguf.U32, o.kv_heads),
        "attention.layer_norm_rms_epsilon": (gguf.F32, 1e-5),
        "rope.freq_base": (gguf.F32, 10000.0),
        "rope.dimension_count": (gguf.U32, o.head_size),
    }
    if o.head_size * o.heads != o.width:
        facts["attention.key_length"] = facts["attention.value_length"] = (gguf.U32, o.head_size)
    facts |= {name: typed(value) for name, value in more_facts(o).items()}
    if o.experts:
        facts["expert_count"], facts["expert_used_count"] = (gguf.U32, o.experts), (gguf.U32, o.used)
        facts["expert_feed_forward_length"] = (gguf.U32, o.expert_ffn)
    return {
        "general.architecture": (gguf.STRING, o.arch),
        "general.name": (gguf.STRING, "tiny"),
        **{f"{o.arch}.{name}": value for name, value in facts.items()},
        **(tokenizer(o.vocab, o.pre) if o.pre else {"tokenizer.ggml.model": (gguf.STRING, "no_vocab")}),
        **({"tokenizer.chat_template": (gguf.STRING, o.template)} if o.template else {}),
    }


SIGMOIDS = ("glm4moe", "deepseek2")  # whose first layer is dense


def experts(matrix, vector, stack, layer, o):
    # Routers are kept in float32; this one's ratings lie well apart.
    vector(layer + "ffn_gate_inp.weight", (o.experts, o.width), 0, 2 / o.width ** 0.5)
    for name, rows, columns in (("gate", o.expert_ffn, o.width), ("up", o.expert_ffn, o.width),
                                ("down", o.width, o.expert_ffn)):
        stack(layer + f"ffn_{name}_exps", o.experts, rows, columns)
        if o.arch == "gpt-oss":
            vector(layer + f"ffn_{name}_exps.bias", (o.experts, rows), 0, 0.3)
    if o.arch == "gpt-oss":
        vector(layer + "ffn_gate_inp.bias", o.experts, 0, 0.3)
    if o.arch in SIGMOIDS:
        vector(layer + "exp_probs_b.bias", o.experts, 0, 0.3)
    if o.arch in ("qwen2moe", "qwen35moe", "qwen3next"):
        vector(layer + "ffn_gate_inp_shexp.weight", (1, o.width), 0, 0.1)
    if "expert_shared_count" in more_facts(o):
        shared = o.expert_ffn * more_facts(o)["expert_shared_count"]
        matrix(layer + "ffn_gate_shexp", shared, o.width)
        matrix(layer + "ffn_up_shexp", shared, o.width)
        matrix(layer + "ffn_down_shexp", o.width, shared)


def latent(matrix, vector, stack, layer, o):
    """Attention whose keys and values are made from latent rows."""
    facts = FACTS["deepseek2"]
    query, rank = facts["attention.q_lora_rank"], facts["attention.kv_lora_rank"]
    key, turning = facts["attention.key_length_mla"], facts["rope.dimension_count"]
    matrix(layer + "attn_q_a", query, o.width)
    vector(layer + "attn_q_a_norm.weight", query, 1, 0.1)
    matrix(layer + "attn_q_b", o.heads * key, query)
    matrix(layer + "attn_kv_a_mqa", rank + turning, o.width)
    vector(layer + "attn_kv_a_norm.weight", rank, 1, 0.1)
    stack(layer + "attn_k_b", o.heads, rank, key - turning)
    stack(layer + "attn_v_b", o.heads, facts["attention.value_length_mla"], rank)
    matrix(layer + "attn_output", o.width, o.heads * facts["attention.value_length_mla"])


BIASED = ("qwen2", "qwen2moe", "glm4moe", "gpt-oss", "seed_oss")
HEAD_NORMS = ("qwen3", "qwen3moe", "exaone4", "gemma3", "lfm2", "qwen35", "qwen35moe", "qwen3next")


def attention(matrix, vector, layer, o):
    q_size, kv_size = o.heads * o.head_size, o.kv_heads * o.head_size
    if o.arch == "phi3":
        matrix(layer + "attn_qkv", q_size + 2 * kv_size, o.width)
    for name, size in (("q", q_size), ("k", kv_size), ("v", kv_size)):
        if o.arch != "phi3":
            matrix(layer + "attn_" + name, size * (2 if TRAITS[o.arch].get("gated") and name == "q" else 1), o.width)
        if o.arch in BIASED:
            vector(layer + f"attn_{name}.bias", size, 0, 0.3)
        if o.arch in HEAD_NORMS and name != "v":
            vector(layer + f"attn_{name}_norm.weight", o.head_size, 1, 0.1)
        if o.arch == "olmo2" and name != "v":
            vector(layer + f"attn_{name}_norm.weight", size, 1, 0.1)
    matrix(layer + "attn_output", o.width, q_size)
    if o.arch == "gpt-oss":
        vector(layer + "attn_output.bias", o.width, 0, 0.3)
        vector(layer + "attn_sinks.weight", o.heads, 1, 1)


def gemma4_layer(matrix, vector, number, o):
    """All of a layer but its first norm."""
    layer, (near, size, key_heads, width, own) = f"blk.{number}.", list(gemma4_layers(o))[number]
    matrix(layer + "attn_q", o.heads * size, o.width)
    vector(layer + "attn_q_norm.weight", size, 1, 0.1)
    if own:
        matrix(layer + "attn_k", key_heads * size, o.width)
        vector(layer + "attn_k_norm.weight", size, 1, 0.1)
    if own and near:  # elsewhere the product of the keys serves for both
        matrix(layer + "attn_v", key_heads * size, o.width)
    matrix(layer + "attn_output", o.width, o.heads * size)
    for name in ("post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"):
        vector(layer + name + ".weight", o.width, 1, 0.1)
    matrix(layer + "ffn_gate", width, o.width)
    matrix(layer + "ffn_up", width, o.width)
    matrix(layer + "ffn_down", o.width, width)
    matrix(layer + "inp_gate", GEMMA4_EXTRA, o.width)
    matrix(layer + "proj", o.width, GEMMA4_EXTRA)
    vector(layer + "layer_output_scale.weight", 1, 0.8, 0.1)


def gemma4_tables(matrix, vector, floats, o):
    """What all layers share."""
    matrix("per_layer_token_embd", o.vocab, o.layers * GEMMA4_EXTRA)
    matrix("per_layer_model_proj", o.layers * GEMMA4_EXTRA, o.width)
    vector("per_layer_proj_norm.weight", GEMMA4_EXTRA, 1, 0.1)
    # Of each head that sees all tokens a quarter turns.
    floats("rope_freqs.weight", [1.0] * (o.head_size // 4) + [1e30] * (o.head_size - o.head_size // 4))


def recurrent(matrix, vector, convolution, layer, o):
    """-> whether the layer has something else than attention"""
    if o.arch == "lfm2" and int(layer.split(".")[1]) % 4 != 2:
        matrix(layer + "shortconv.in_proj", 3 * o.width, o.width)
        convolution(layer + "shortconv.conv.weight", o.width, 3)
        matrix(layer + "shortconv.out_proj", o.width, o.width)
        return True
    if "ssm.state_size" in more_facts(o) and int(layer.split(".")[1]) % 4 != 3:
        matrix(layer + "attn_qkv", 256, o.width)
        convolution(layer + "ssm_conv1d.weight", 256, 4)
        matrix(layer + "attn_gate", 128, o.width)
        grouped = TRAITS[o.arch].get("grouped")
        for name, heads in {"ba": 8}.items() if grouped else {"alpha": 4, "beta": 4}.items():
            matrix(layer + "ssm_" + name, heads, o.width)
        vector(layer + "ssm_a", 4, -1, 0.3)
        vector(layer + "ssm_dt.bias", 4, 0, 0.5)
        vector(layer + "ssm_norm.weight", 32, 1, 0.1)
        matrix(layer + "ssm_out", o.width, 128)
        return True
    return False


def make_tensors(o):
    rng = np.random.default_rng(o.seed)
    kind = lambda name: next((k for part, k in o.override if part in name), o.kind)
    tensors = {}

    def matrix(name, rows, columns, gain=1.0):
        name += ".weight"
        tensors[name] = blocks.random_tensor(rng, kind(name), (rows, columns), gain / columns ** 0.5)
        if any(part in name for part in o.bias):
            vector(name.replace(".weight", ".bias"), rows, 0, 0.3)

    def stack(name, count, rows, columns):
        name += ".weight"
        tensors[name] = blocks.random_tensor(rng, kind(name), (count, rows, columns), columns ** -0.5)

    def vector(name, size, mean, deviation):
        floats(name, rng.normal(mean, deviation, size))

    def floats(name, values):
        values = np.asarray(values, "<f4")
        tensors[name] = gguf.Tensor("f32", values.shape, values.tobytes())

    matrix("token_embd", o.vocab, o.width, gain=o.width ** 0.5)

    def convolution(name, columns, taps):
        values = rng.normal(0, 0.5, (columns, taps)).astype("<f4")
        tensors[name] = gguf.Tensor("f32", (columns, taps), values.tobytes())

    traits = TRAITS[o.arch]
    before, behind = traits.get("before", True), traits.get("behind", False)
    for i in range(o.layers):
        layer = f"blk.{i}."
        if before:
            vector(layer + "attn_norm.weight", o.width, 1, 0.1)
        if o.arch == "gemma4":
            gemma4_layer(matrix, vector, i, o)
            continue
        if o.arch == "deepseek2":
            latent(matrix, vector, stack, layer, o)
        elif not recurrent(matrix, vector, convolution, layer, o):
            attention(matrix, vector, layer, o)
        if behind:
            vector(layer + "post_attention_norm.weight", o.width, 1, 0.1)
        if before:
            vector(layer + traits.get("second_norm", "ffn_norm") + ".weight", o.width, 1, 0.1)
        if o.experts and (i or o.arch not in SIGMOIDS):
            experts(matrix, vector, stack, layer, o)
            continue
        if o.arch != "phi3":
            matrix(layer + "ffn_gate", o.ffn, o.width)
        matrix(layer + "ffn_up", o.ffn * (2 if o.arch == "phi3" else 1), o.width)
        matrix(layer + "ffn_down", o.width, o.ffn)
        if behind:
            vector(layer + "post_ffw_norm.weight", o.width, 1, 0.1)
    if o.arch == "gemma4":
        gemma4_tables(matrix, vector, floats, o)
    if o.arch == "phi3":
        vector("rope_factors_short.weight", o.head_size // 2, 2, 0.3)
        vector("rope_factors_long.weight", o.head_size // 2, 9, 0.3)
    vector(traits.get("output_norm", "output_norm") + ".weight", o.width, 1, 0.1)
    if not o.tied:
        matrix("output", o.vocab, o.width)
    if o.arch == "glm4moe":
        # A layer that only guesses further tokens.
        matrix(f"blk.{o.layers}.nextn.eh_proj", o.width, 2 * o.width)
    return tensors


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--arch", default="llama", choices=list(TRAITS))
    p.add_argument("--kind", default="f32", choices=list(gguf.TYPES))
    p.add_argument("--override", action="append", default=[], metavar="PART=KIND",
                   help="weight type of tensors whose name holds PART")
    for name, default in (("width", 256), ("layers", 2), ("heads", 4), ("kv-heads", 2), ("head-size", 64),
                          ("ffn", 512), ("experts", 0), ("used", 2), ("expert-ffn", 256), ("vocab", 320),
                          ("context", 512), ("seed", 1)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--bias", action="append", default=[], metavar="PART", help="a bias for products whose name holds PART")
    p.add_argument("--tied", action="store_true", help="no output matrix: the embedding serves")
    p.add_argument("--pre", default="smollm", help="pre-tokenizer; empty: no vocabulary at all")
    p.add_argument("--template", help="a chat template")
    p.add_argument("--version", type=int, default=3)
    return p


def options(args):
    """args: a command line as a list"""
    o = parser().parse_args(args)
    o.override = [tuple(item.split("=")) for item in o.override]
    return o


def make(args):
    """args: a command line as a list"""
    o = options(args)
    gguf.write(o.out, make_metadata(o), make_tensors(o), o.version)


if __name__ == "__main__":
    import sys
    make(sys.argv[1:])
