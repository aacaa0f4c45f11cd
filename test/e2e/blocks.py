"""Weight blocks of GGUF files in numpy: what each means, and random ones.

`decode` is written from the published definitions (bytes to values) and
shares nothing with the compiler's formats. `random_blocks` makes blocks with
every code and sub-scale possible, scaled to a wanted deviation of the values.
"""

import numpy as np

from gguf import TYPES, Tensor


def _half(raw):
    return np.ascontiguousarray(raw).view("<f2").astype(np.float64)


def _nibbles(raw):
    """(n, 16 or 32) bytes -> low nibbles, then high ones"""
    return np.concatenate([raw & 15, raw >> 4], axis=-1).astype(np.int64)


def _bits(raw):
    """(n, 4) bytes -> 32 bits, lowest first"""
    return np.unpackbits(raw, axis=-1, bitorder="little").astype(np.int64)


def _q4_0(b):
    return _half(b[:, :2]) * (_nibbles(b[:, 2:18]) - 8)


def _q4_1(b):
    return _half(b[:, :2]) * _nibbles(b[:, 4:20]) + _half(b[:, 2:4])


def _q5_0(b):
    return _half(b[:, :2]) * ((_nibbles(b[:, 6:22]) | _bits(b[:, 2:6]) << 4) - 16)


def _q5_1(b):
    codes = _nibbles(b[:, 8:24]) | _bits(b[:, 4:8]) << 4
    return _half(b[:, :2]) * codes + _half(b[:, 2:4])


def _q8_0(b):
    return _half(b[:, :2]) * b[:, 2:34].view(np.int8)


def _k_scales(s):
    """12 bytes -> eight 6-bit scales and eight 6-bit minima"""
    s = s.astype(np.int64)
    low, mid, high = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], axis=1)
    minima = np.concatenate([mid & 63, (high >> 4) | (mid >> 6) << 4], axis=1)
    return scales, minima


def _k_block(b, codes):
    scales, minima = _k_scales(b[:, 4:16])
    d, dmin = _half(b[:, 0:2]), _half(b[:, 2:4])
    out = (d * scales)[:, :, None] * codes - (dmin * minima)[:, :, None]
    return out.reshape(len(b), 256)


def _q4_k(b):
    # 32 bytes hold two sub-blocks: low nibbles the first, high the second.
    return _k_block(b, _nibbles(b[:, 16:144].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def _q5_k(b):
    codes = _nibbles(b[:, 48:176].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    # Bit j of byte l is the fifth bit of weight l of sub-block j.
    fifth = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    return _k_block(b, codes | fifth.astype(np.int64) << 4)


def _q6_k(b):
    low = b[:, 0:128].reshape(-1, 2, 2, 32)
    high = b[:, 128:192].reshape(-1, 2, 1, 32)
    # Of each half of 128: two runs of low nibbles, then two of high nibbles.
    nibbles = np.stack([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)[:, None]
    codes = nibbles.astype(np.int64) | ((high >> shifts) & 3).astype(np.int64) << 4
    scales = b[:, 192:208].view(np.int8).astype(np.float64)
    values = (codes.reshape(-1, 16, 16) - 32) * scales[:, :, None]
    return _half(b[:, 208:210]) * values.reshape(-1, 256)


BLOCKS = {"q4_0": _q4_0, "q4_1": _q4_1, "q5_0": _q5_0, "q5_1": _q5_1, "q8_0": _q8_0,
          "q4_k": _q4_k, "q5_k": _q5_k, "q6_k": _q6_k}


def decode(tensor):
    """The values of a Tensor, float64."""
    raw = np.frombuffer(tensor.data, dtype=np.uint8)
    if tensor.kind == "f32":
        values = raw.view("<f4")
    elif tensor.kind == "f16":
        values = raw.view("<f2")
    elif tensor.kind == "bf16":
        values = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = BLOCKS[tensor.kind](raw.reshape(-1, TYPES[tensor.kind][2]))
    return values.astype(np.float64).reshape(tensor.shape)


def _half_bytes(values):
    return np.asarray(values, dtype="<f2").reshape(-1, 1).view(np.uint8)


def _pack_k_scales(scales, minima):
    low = (scales[:, :4] & 63) | (scales[:, 4:] >> 4) << 6
    mid = (minima[:, :4] & 63) | (minima[:, 4:] >> 4) << 6
    high = (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4
    return np.concatenate([low, mid, high], axis=1).astype(np.uint8)


def _random_k(rng, count, deviation, bits):
    scales = rng.integers(0, 64, (count, 8))
    minima = np.clip(scales + rng.integers(-6, 7, (count, 8)), 0, 63)
    # Codes have a deviation of 2^bits/sqrt(12), scales a mean square of 36.6².
    d = deviation / (2 ** bits / 3.46 * 36.6) * rng.uniform(0.5, 1.4, count)
    head = [_half_bytes(d), _half_bytes(d * (2 ** bits - 1) / 2), _pack_k_scales(scales, minima)]
    codes = rng.integers(0, 256, (count, 128 + (32 if bits == 5 else 0)), dtype=np.uint8)
    return np.concatenate(head + [codes], axis=1)


def _random_q6_k(rng, count, deviation):
    codes = rng.integers(0, 256, (count, 192), dtype=np.uint8)
    scales = rng.integers(-128, 128, (count, 16)).astype(np.int8).view(np.uint8)
    d = deviation / (18.5 * 74) * rng.uniform(0.5, 1.4, count) * rng.choice([-1, 1], count)
    return np.concatenate([codes, scales, _half_bytes(d)], axis=1)


def _random_32(rng, kind, count, deviation):
    bits = {"q4_0": 4, "q4_1": 4, "q5_0": 5, "q5_1": 5, "q8_0": 8}[kind]
    d = deviation / (2 ** bits / 3.46) * rng.uniform(0.5, 1.4, count)
    has_min = kind.endswith("_1")
    if not has_min:
        d *= rng.choice([-1, 1], count)
    head = [_half_bytes(d)]
    if has_min:
        head.append(_half_bytes(-d * (2 ** bits - 1) * rng.uniform(0.4, 0.6, count)))
    body = TYPES[kind][2] - 2 * len(head)
    return np.concatenate(head + [rng.integers(0, 256, (count, body), dtype=np.uint8)], axis=1)


def random_tensor(rng, kind, shape, deviation):
    """A Tensor of random blocks whose values have about that deviation."""
    number = int(np.prod(shape))
    if TYPES[kind][1] == 1:
        values = rng.normal(0, deviation, number).astype(np.float32)
        if kind == "f16":
            data = values.astype("<f2").tobytes()
        elif kind == "bf16":
            data = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
        else:
            data = values.tobytes()
        return Tensor(kind, shape, data)
    count, rest = divmod(number, TYPES[kind][1])
    assert rest == 0 and shape[-1] % TYPES[kind][1] == 0, (kind, shape)
    if kind == "q6_k":
        blocks = _random_q6_k(rng, count, deviation)
    elif kind in ("q4_k", "q5_k"):
        blocks = _random_k(rng, count, deviation, int(kind[1]))
    else:
        blocks = _random_32(rng, kind, count, deviation)
    return Tensor(kind, shape, np.ascontiguousarray(blocks).tobytes())
