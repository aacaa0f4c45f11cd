#!/usr/bin/env python3
"""A transformer in numpy, float64, straight from the published definitions.

    reference.py MODEL.gguf IDS.json OUT.npy

writes the logits (tokens x vocabulary). It is the independent side of the
end-to-end tests: slow, plain, and sharing nothing with the compiler.
Covers the architectures named in ROTARY.
"""

import json
import sys

import numpy as np

import blocks
import gguf

# architecture -> which two elements of a head rotate together: neighbours,
# or one of each half
ROTARY = {"llama": "neighbours", "qwen2": "halves", "qwen3": "halves"}


def rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Model:
    def __init__(self, path):
        self.facts, tensors = gguf.read(path)
        self.arch = self.facts["general.architecture"]
        self.weights = {name: blocks.decode(t) for name, t in tensors.items()}
        self.layers = self.fact("block_count")
        self.heads = self.fact("attention.head_count")
        self.kv_heads = self.fact("attention.head_count_kv", self.heads)
        self.head_size = self.fact("attention.key_length", self.fact("embedding_length") // self.heads)
        self.epsilon = self.fact("attention.layer_norm_rms_epsilon")

    def fact(self, name, *default):
        key = f"{self.arch}.{name}"
        return self.facts.get(key, *default) if default else self.facts[key]

    def linear(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def rotate(self, x, positions):
        """x: (tokens, heads, head size)"""
        size = self.fact("rope.dimension_count", self.head_size)
        frequencies = self.fact("rope.freq_base", 10000.0) ** (-np.arange(0, size, 2) / size)
        if "rope_freqs.weight" in self.weights:
            frequencies = frequencies / self.weights["rope_freqs.weight"]
        if self.fact("rope.scaling.type", "none") == "linear":
            frequencies = frequencies / self.fact("rope.scaling.factor")
        angles = positions[:, None, None] * frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        if ROTARY[self.arch] == "neighbours":
            first, second = slice(0, size, 2), slice(1, size, 2)
        else:
            first, second = slice(0, size // 2), slice(size // 2, size)
        a, b = x[:, :, first], x[:, :, second]
        out = x.copy()
        out[:, :, first], out[:, :, second] = a * cos - b * sin, a * sin + b * cos
        return out

    def head_norm(self, x, name):
        weight = self.weights.get(name + ".weight")
        return x if weight is None else rms_norm(x, weight, self.epsilon)

    def attention(self, x, layer):
        tokens, positions = len(x), np.arange(len(x), dtype=np.float64)
        split = lambda name: self.linear(x, layer + name).reshape(tokens, -1, self.head_size)
        q = self.rotate(self.head_norm(split("attn_q"), layer + "attn_q_norm"), positions)
        k = self.rotate(self.head_norm(split("attn_k"), layer + "attn_k_norm"), positions)
        v = split("attn_v")
        k, v = (np.repeat(t, self.heads // self.kv_heads, axis=1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head_size)
        scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
        out = np.einsum("hqk,khd->qhd", softmax(scores), v)
        return self.linear(out.reshape(tokens, -1), layer + "attn_output")

    def mlp(self, x, layer):
        gate = self.linear(x, layer + "ffn_gate")
        return self.linear(gate / (1 + np.exp(-gate)) * self.linear(x, layer + "ffn_up"),
                           layer + "ffn_down")

    def logits(self, ids):
        norm = lambda x, name: rms_norm(x, self.weights[name + ".weight"], self.epsilon)
        x = self.weights["token_embd.weight"][ids]
        for i in range(self.layers):
            layer = f"blk.{i}."
            x = x + self.attention(norm(x, layer + "attn_norm"), layer)
            x = x + self.mlp(norm(x, layer + "ffn_norm"), layer)
        x = norm(x, "output_norm")
        return self.linear(x, "output" if "output.weight" in self.weights else "token_embd")


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
