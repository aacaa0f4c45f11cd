#!/usr/bin/env python3
"""A transformer in numpy, float64, straight from the published definitions.

    reference.py MODEL.gguf IDS.json OUT.npy

writes the logits (tokens x vocabulary). It is the independent side of the
end-to-end tests: slow, plain, and sharing nothing with the compiler.
Covers the architectures named in TRAITS.
"""

import json
import sys

import numpy as np

import blocks
import gguf

# What sets an architecture apart. pairs: neighbours rotate together, not one of
# each half. still: layers that don't rotate. behind: norms stand behind the
# parts of a layer, not (or not only) before. gelu: gated by gelu. near: all but
# every n-th layer see a window only (if the file says nothing else). wide:
# embeddings times the root of their width. scale: of the products of attention.
# normed_values: each head of them. limited: how experts gate. shares: experts'
# weights are their shares of the softmax. gated: attention is. grouped: value
# heads with the same key head are neighbours. Others are explained where they
# are used.
TRAITS = {
    "llama": {"pairs": True},
    "mistral3": {"pairs": True},
    "smollm3": {"pairs": True, "still": lambda layer: layer % 4 == 3},
    "granite": {"pairs": True},
    "qwen2": {},
    "qwen3": {},
    "qwen3moe": {},
    "glm4moe": {"second_norm": "post_attention_norm"},
    "gpt-oss": {"second_norm": "post_attention_norm", "near": 2, "limited": True},
    "deepseek2": {"pairs": True},
    "qwen2moe": {"shares": True},
    "phi3": {},
    "olmo2": {"behind": True, "before": False},
    "seed_oss": {"second_norm": "post_attention_norm"},
    "exaone4": {"behind": True, "before": False, "near": 4, "still": lambda layer: layer % 4 == 3},
    "gemma2": {"behind": True, "gelu": True, "wide": True, "near": 2},
    "gemma3": {"behind": True, "gelu": True, "wide": True, "near": 6},
    "gemma4": {"behind": True, "gelu": True, "wide": True, "near": 6, "scale": 1.0, "normed_values": True},
    "lfm2": {"output_norm": "token_embd_norm"},
    "qwen35": {"second_norm": "post_attention_norm", "gated": True},
    "qwen35moe": {"second_norm": "post_attention_norm", "gated": True},
    "qwen3next": {"second_norm": "post_attention_norm", "gated": True, "grouped": True},
}


def rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(x, weight):
    """Each column of x (tokens, columns) with its row of weight (columns, taps)."""
    taps = weight.shape[1]
    padded = np.concatenate([np.zeros((taps - 1, x.shape[1])), x])
    return sum(padded[j:j + len(x)] * weight[:, j] for j in range(taps))


def silu(x):
    return x / (1 + np.exp(-x))


def yarn_ramp(size, base, original, fast, slow):
    """For each frequency: 0 where it is kept, 1 where it is stretched."""
    def place(turns):
        return size * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(base))
    low, high = max(np.floor(place(fast)), 0), min(np.ceil(place(slow)), size - 1)
    return np.clip((np.arange(size // 2) - low) / max(high - low, 0.001), 0, 1)


class Model:
    def __init__(self, path, tokens=0):
        """tokens: how long texts may become, where that changes the model"""
        self.facts, tensors = gguf.read(path)
        self.tokens = tokens
        self.arch = self.facts["general.architecture"]
        self.weights = {name: blocks.decode(t) for name, t in tensors.items()}
        self.layers = self.fact("block_count") - self.fact("nextn_predict_layers", 0)
        self.heads = self.fact("attention.head_count")
        self.kv_heads = np.max(self.fact("attention.head_count_kv", self.heads))
        self.head_size = self.fact("attention.key_length", self.fact("embedding_length") // self.heads)
        self.epsilon = self.fact("attention.layer_norm_rms_epsilon")
        self.traits = TRAITS[self.arch]
        self.kept = {}  # keys and values of the last layer with and without a window

    def fact(self, name, *default):
        key = f"{self.arch}.{name}"
        return self.facts.get(key, *default) if default else self.facts[key]

    def linear(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def scale_frequencies(self, frequencies, size):
        """-> frequencies, what cosines and sines are multiplied by"""
        many = self.tokens > self.fact("rope.scaling.original_context_length", 0)
        for name in ("rope_freqs.weight", "rope_factors_long.weight" if many else "rope_factors_short.weight"):
            if name in self.weights:
                frequencies = frequencies / self.weights[name]
        kind = self.fact("rope.scaling.type", "none")
        factor = self.fact("rope.scaling.factor", 1.0)
        if kind == "linear":
            return frequencies / factor, 1.0
        if kind == "yarn":
            ramp = yarn_ramp(size, self.fact("rope.freq_base"), self.fact("rope.scaling.original_context_length"),
                             self.fact("rope.scaling.yarn_beta_fast", 32.0),
                             self.fact("rope.scaling.yarn_beta_slow", 1.0))
            by_all = self.fact("rope.scaling.yarn_log_multiplier", 0.0)
            magnitude = (0.1 * np.log(factor) + 1) / (0.1 * by_all * np.log(factor) + 1)
            return frequencies * (ramp / factor + 1 - ramp), magnitude
        if kind == "longrope":
            original = self.fact("rope.scaling.original_context_length")
            return frequencies, np.sqrt(1 + np.log(self.fact("context_length") / original) / np.log(original))
        return frequencies, 1.0

    def sees_window(self, number):
        if "near" not in self.traits:
            return False
        pattern = self.fact("attention.sliding_window_pattern", self.traits["near"])
        return pattern[number] if isinstance(pattern, list) else number % pattern < pattern - 1

    def of_kind(self, name, number, *default):
        """The fact of layers like this one: of those with a window, where they have one."""
        near = number is not None and self.sees_window(number)
        return self.fact(name + "_swa" if near and f"{self.arch}.{name}_swa" in self.facts else name, *default)

    def turns(self, number):
        return not self.traits.get("still", lambda layer: False)(number)

    def rotate(self, x, positions, number=None):
        """x: (tokens, heads, head size)"""
        size = self.of_kind("rope.dimension_count", number, x.shape[2])
        base, magnitude = self.fact("rope.freq_base", 10000.0), 1.0
        other = self.fact("rope.freq_base_swa", 0.0) if number is not None and self.sees_window(number) else 0.0
        frequencies = (other or base) ** (-np.arange(0, size, 2) / size)
        if not other:
            frequencies, magnitude = self.scale_frequencies(frequencies, size)
        angles = positions[:, None, None] * frequencies
        cos, sin = magnitude * np.cos(angles), magnitude * np.sin(angles)
        if self.traits.get("pairs"):
            first, second = slice(0, size, 2), slice(1, size, 2)
        else:
            first, second = slice(0, size // 2), slice(size // 2, size)
        a, b = x[:, :, first], x[:, :, second]
        out = x.copy()
        out[:, :, first], out[:, :, second] = a * cos - b * sin, a * sin + b * cos
        return out

    def head_norm(self, x, name):
        """Over each head, or over all together, as the weight's size says."""
        weight = self.weights.get(name + ".weight")
        if weight is None:
            return x
        return rms_norm(x.reshape(len(x), -1, weight.size), weight, self.epsilon).reshape(x.shape)

    def project(self, x, layer, number):
        """-> queries, keys, values: (tokens, heads, head size)"""
        size = self.of_kind("attention.key_length", number, self.head_size)
        if self.traits.get("gated"):
            # Each head's query, then its gate.
            both = self.linear(x, layer + "attn_q").reshape(len(x), self.heads, 2, size)
            k, v = (self.linear(x, layer + name).reshape(len(x), -1, size) for name in ("attn_k", "attn_v"))
            return [both[:, :, 0], k, v, both[:, :, 1]]
        if layer + "attn_qkv.weight" in self.weights:
            all_heads = self.linear(x, layer + "attn_qkv").reshape(len(x), -1, size)
            return np.split(all_heads, [self.heads, self.heads + self.kv_heads], axis=1)
        # Where values have no matrix, that of the keys makes them.
        value = "attn_v" if layer + "attn_v.weight" in self.weights else "attn_k"
        return [self.linear(x, layer + name).reshape(len(x), -1, size) for name in ("attn_q", "attn_k", value)]

    def keys_and_values(self, k, v, number):
        """As attention uses them."""
        k = self.head_norm(k, f"blk.{number}.attn_k_norm")
        if self.turns(number):
            k = self.rotate(k, np.arange(len(k), dtype=np.float64), number)
        if self.traits.get("normed_values"):
            v = rms_norm(v, 1, self.epsilon)
        self.kept[self.sees_window(number)] = k, v
        return k, v

    def latent(self, x, layer):
        """Keys and values made from one latent row a token: each head's own, and
        a part of the key that turns and that all heads share."""
        tokens, positions = len(x), np.arange(len(x), dtype=np.float64)
        turning, rank = self.fact("rope.dimension_count"), self.fact("attention.kv_lora_rank")
        q = self.norm(self.linear(x, layer + "attn_q_a"), layer + "attn_q_a_norm")
        q = self.linear(q, layer + "attn_q_b").reshape(tokens, self.heads, -1)
        plain, turned = q[:, :, :-turning], self.rotate(q[:, :, -turning:], positions)
        row = self.linear(x, layer + "attn_kv_a_mqa")
        shared = self.rotate(row[:, None, rank:], positions)[:, 0]
        row = self.norm(row[:, :rank], layer + "attn_kv_a_norm")
        keys = np.einsum("tr,hrn->thn", row, self.weights[layer + "attn_k_b.weight"])
        values = np.einsum("tr,hvr->thv", row, self.weights[layer + "attn_v_b.weight"])
        scores = np.einsum("qhn,khn->hqk", plain, keys) + np.einsum("qhn,kn->hqk", turned, shared)
        scores = np.where(np.tri(tokens, dtype=bool), scores * q.shape[2] ** -0.5, -np.inf)
        out = np.einsum("hqk,khv->qhv", softmax(scores), values)
        return self.linear(out.reshape(tokens, -1), layer + "attn_output")

    def attention(self, x, number):
        layer, tokens = f"blk.{number}.", len(x)
        if layer + "attn_kv_a_mqa.weight" in self.weights:
            return self.latent(x, layer)
        positions = np.arange(tokens, dtype=np.float64)
        if number < self.layers - self.fact("attention.shared_kv_layers", 0):
            q, k, v, *gate = self.project(x, layer, number)
            k, v = self.keys_and_values(k, v, number)
        else:
            q, gate = self.linear(x, layer + "attn_q"), []
            k, v = self.kept[self.sees_window(number)]
            q = q.reshape(tokens, self.heads, k.shape[2])
        q = self.head_norm(q, layer + "attn_q_norm")
        if self.turns(number):
            q = self.rotate(q, positions, number)
        growth = self.fact("attention.temperature_scale", 0.0)
        if growth:
            periods = positions // self.fact("rope.scaling.original_context_length")
            q = q * (1 + growth * np.log(1 + periods))[:, None, None]
        k, v = (np.repeat(t, self.heads // t.shape[1], axis=1) for t in (k, v))
        scale = self.fact("attention.scale", self.traits.get("scale", q.shape[2] ** -0.5))
        scores = np.einsum("qhd,khd->hqk", q, k) * scale
        cap = self.fact("attn_logit_softcapping", 0.0)
        scores = cap * np.tanh(scores / cap) if cap else scores
        far = positions[:, None] - positions >= self.fact("attention.sliding_window", tokens)
        hidden = ~np.tri(tokens, dtype=bool) | (far if self.sees_window(number) else False)
        scores = np.where(hidden, -np.inf, scores)
        if layer + "attn_sinks.weight" in self.weights:
            # One more score, whose value is nothing.
            sinks = np.broadcast_to(self.weights[layer + "attn_sinks.weight"][:, None, None], (self.heads, tokens, 1))
            shares = softmax(np.concatenate([scores, sinks], axis=2))[:, :, :-1]
        else:
            shares = softmax(scores)
        out = np.einsum("hqk,khd->qhd", shares, v)
        for one in gate:
            out = out * sigmoid(one)
        return self.linear(out.reshape(tokens, -1), layer + "attn_output")

    def gated_convolution(self, x, layer):
        b, c, x = np.split(self.linear(x, layer + "shortconv.in_proj"), 3, axis=1)
        y = c * convolve(b * x, self.weights[layer + "shortconv.conv.weight"])
        return self.linear(y, layer + "shortconv.out_proj")

    def delta_attention(self, x, layer):
        """Linear attention with the gated delta rule, token by token."""
        tokens, heads, key_heads = len(x), self.fact("ssm.time_step_rank"), self.fact("ssm.group_count")
        size = self.fact("ssm.state_size")
        mixed = silu(convolve(self.linear(x, layer + "attn_qkv"), self.weights[layer + "ssm_conv1d.weight"]))
        q, k, v = np.split(mixed, [key_heads * size, 2 * key_heads * size], axis=1)
        unit = lambda t: t / np.sqrt((t * t).sum(axis=-1, keepdims=True) + 1e-6)
        group = heads // key_heads
        q, k = (unit(t.reshape(tokens, key_heads, size)) for t in (q, k))
        if self.traits.get("grouped"):
            # Neighbouring value heads have the same key head, which holds shares and decays of its own.
            q, k = (np.repeat(t, group, axis=1) for t in (q, k))
            both = self.linear(x, layer + "ssm_ba").reshape(tokens, key_heads, 2, group)
            beta, alpha = (both[:, :, i].reshape(tokens, heads) for i in (0, 1))
        else:
            q, k = (np.tile(t, (1, group, 1)) for t in (q, k))
            beta, alpha = (self.linear(x, layer + "ssm_" + name) for name in ("beta", "alpha"))
        v = v.reshape(tokens, heads, -1)
        softplus = np.log1p(np.exp(alpha + self.weights[layer + "ssm_dt.bias"]))
        kept, share = np.exp(self.weights[layer + "ssm_a"] * softplus), sigmoid(beta)
        memory, out = np.zeros((heads, size, v.shape[2])), np.empty(v.shape)
        for t in range(tokens):
            memory *= kept[t, :, None, None]
            found = np.einsum("hk,hkv->hv", k[t], memory)
            memory += np.einsum("hk,hv->hkv", k[t], share[t, :, None] * (v[t] - found))
            out[t] = np.einsum("hk,hkv->hv", q[t], memory) / np.sqrt(size)
        gate = silu(self.linear(x, layer + "attn_gate")).reshape(out.shape)
        return self.linear((self.norm(out, layer + "ssm_norm") * gate).reshape(tokens, -1), layer + "ssm_out")

    def mix(self, x, number):
        layer = f"blk.{number}."
        if layer + "shortconv.in_proj.weight" in self.weights:
            return self.gated_convolution(x, layer)
        if layer + "ssm_out.weight" in self.weights:
            return self.delta_attention(x, layer)
        return self.attention(x, number)

    def expert(self, x, layer, number):
        def product(x, name):
            bias = self.weights.get(f"{layer}ffn_{name}_exps.bias")
            return self.weights[f"{layer}ffn_{name}_exps.weight"][number] @ x + (0 if bias is None else bias[number])
        gate, up = product(x, "gate"), product(x, "up")
        if self.traits.get("limited"):
            gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
            return product(gate / (1 + np.exp(-1.702 * gate)) * (up + 1), "down")
        return product(silu(gate) * up, "down")

    def experts(self, x, layer):
        """The best experts of each row by a softmax over all, or by sigmoids and a
        bias that counts for the choice only; then those that work on all rows."""
        used, sigmoid = self.fact("expert_used_count"), self.fact("expert_gating_func", 1) == 2
        ratings = self.linear(x, layer + "ffn_gate_inp")
        weights = 1 / (1 + np.exp(-ratings)) if sigmoid else softmax(ratings)
        ranks = weights + self.weights.get(layer + "exp_probs_b.bias", 0)
        out = np.zeros_like(x)
        for t, row in enumerate(x):
            best = np.argsort(-ranks[t], kind="stable")[:used]
            whole = 1 if self.traits.get("shares") else weights[t, best].sum()
            share = weights[t] / whole * self.fact("expert_weights_scale", 1.0)
            out[t] = sum(share[e] * self.expert(row, layer, e) for e in best)
        if layer + "ffn_up_shexp.weight" in self.weights:
            gate, up = self.linear(x, layer + "ffn_gate_shexp"), self.linear(x, layer + "ffn_up_shexp")
            shared = self.linear(silu(gate) * up, layer + "ffn_down_shexp")
            if layer + "ffn_gate_inp_shexp.weight" in self.weights:
                shared = shared / (1 + np.exp(-x @ self.weights[layer + "ffn_gate_inp_shexp.weight"].T))
            out += shared
        return out

    def mlp(self, x, layer):
        if layer + "ffn_gate_inp.weight" in self.weights:
            return self.experts(x, layer)
        if layer + "ffn_gate.weight" in self.weights:
            gate, up = self.linear(x, layer + "ffn_gate"), self.linear(x, layer + "ffn_up")
        else:
            gate, up = np.split(self.linear(x, layer + "ffn_up"), 2, axis=1)
        bent = gelu(gate) if self.traits.get("gelu") else silu(gate)
        return self.linear(bent * up, layer + "ffn_down")

    def norm(self, x, name):
        return rms_norm(x, self.weights[name + ".weight"], self.epsilon)

    def layer(self, x, number):
        layer = f"blk.{number}."
        before = (lambda x, name: self.norm(x, layer + name)) if self.traits.get("before", True) else lambda x, _: x
        behind = (lambda x, name: self.norm(x, layer + name)) if self.traits.get("behind") else lambda x, _: x
        share = self.fact("residual_scale", 1.0)
        x = x + share * behind(self.mix(before(x, "attn_norm"), number), "post_attention_norm")
        second = self.traits.get("second_norm", "ffn_norm")
        x = x + share * behind(self.mlp(before(x, second), layer), "post_ffw_norm")
        if self.extra is not None:
            part = gelu(self.linear(x, layer + "inp_gate")) * self.extra[:, number]
            x = x + self.norm(self.linear(part, layer + "proj"), layer + "post_norm")
        return x * self.weights.get(layer + "layer_output_scale.weight", 1.0)

    def read_extra(self, ids, x):
        """What layers add for each token: (tokens, layers, width), or None."""
        width = self.fact("embedding_length_per_layer_input", 0)
        if not width:
            return None
        table = self.weights["per_layer_token_embd.weight"][ids].reshape(len(ids), -1, width) * np.sqrt(width)
        made = (self.linear(x, "per_layer_model_proj") / np.sqrt(x.shape[1])).reshape(table.shape)
        return (self.norm(made, "per_layer_proj_norm") + table) / np.sqrt(2)

    def logits(self, ids):
        x = self.weights["token_embd.weight"][ids] * self.fact("embedding_scale", 1.0)
        if self.traits.get("wide"):
            x = x * np.sqrt(x.shape[1])
        self.extra = self.read_extra(ids, x)
        for i in range(self.layers):
            x = self.layer(x, i)
        x = self.norm(x, self.traits.get("output_norm", "output_norm"))
        y = self.linear(x, "output" if "output.weight" in self.weights else "token_embd")
        cap = self.fact("final_logit_softcapping", 0.0)
        return (cap * np.tanh(y / cap) if cap else y) / self.fact("logit_scale", 1.0)


def nmse(a, b):
    """The square error of a against b, as a share of b's squares."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(((a - b) ** 2).sum() / (b ** 2).sum())


def main():
    model, ids, out = sys.argv[1:]
    with open(ids) as file:
        np.save(out, Model(model).logits(json.load(file)).astype(np.float32))


if __name__ == "__main__":
    main()
