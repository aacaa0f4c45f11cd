"""Reads and writes GGUF files, from the published description of the format.

Only what the end-to-end tests need: every metadata type, tensors as raw
bytes. Independent of the compiler's reader, and of the gguf package.
"""

import struct

import numpy as np

MAGIC = b"GGUF"
ALIGNMENT = 32

# Metadata value types: struct codes of the plain ones.
PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
U32, I32, F32, BOOL = 4, 5, 6, 7

# name -> (type number, weights a block, bytes a block)
TYPES = {
    "f32": (0, 1, 4),
    "f16": (1, 1, 2),
    "q4_0": (2, 32, 18),
    "q4_1": (3, 32, 20),
    "q5_0": (6, 32, 22),
    "q5_1": (7, 32, 24),
    "q8_0": (8, 32, 34),
    "q4_k": (12, 256, 144),
    "q5_k": (13, 256, 176),
    "q6_k": (14, 256, 210),
    "bf16": (30, 1, 2),
}
NAME_OF_TYPE = {number: name for name, (number, _, _) in TYPES.items()}


class Tensor:
    """`shape` as numpy has it: rows first, the contiguous dimension last."""

    def __init__(self, kind, shape, data):
        self.kind, self.shape, self.data = kind, tuple(shape), data


def _write_string(out, text):
    raw = text.encode() if isinstance(text, str) else text
    out += struct.pack("<Q", len(raw)) + raw


def _write_value(out, kind, value):
    if kind == STRING:
        _write_string(out, value)
    elif kind == ARRAY:
        element, values = value
        out += struct.pack("<IQ", element, len(values))
        for item in values:
            _write_value(out, element, item)
    else:
        out += struct.pack("<" + PLAIN[kind], value)


def write(path, metadata, tensors, version=3):
    """metadata: name -> (type, value), arrays as (ARRAY, (type, list));
    tensors: name -> Tensor."""
    out = bytearray(MAGIC + struct.pack("<IQQ", version, len(tensors), len(metadata)))
    for name, (kind, value) in metadata.items():
        _write_string(out, name)
        out += struct.pack("<I", kind)
        _write_value(out, kind, value)
    offset = 0
    for name, tensor in tensors.items():
        _write_string(out, name)
        out += struct.pack("<I", len(tensor.shape))
        for size in reversed(tensor.shape):
            out += struct.pack("<Q", size)
        out += struct.pack("<IQ", TYPES[tensor.kind][0], offset)
        offset += -(-len(tensor.data) // ALIGNMENT) * ALIGNMENT
    out += bytes(-len(out) % ALIGNMENT)
    for tensor in tensors.values():
        out += tensor.data + bytes(-len(tensor.data) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(out)


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        size = self.take("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at]).decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.take("I"), self.take("Q")
            return [self.value(element) for _ in range(count)]
        return self.take(PLAIN[kind])


def read(path):
    """-> (metadata name -> value, tensor name -> Tensor)"""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    reader = _Reader(memoryview(data))
    assert bytes(data[:4]) == MAGIC, path
    reader.at = 4
    assert reader.take("I") in (2, 3), path
    tensor_count, metadata_count = reader.take("Q"), reader.take("Q")
    metadata = {}
    for _ in range(metadata_count):
        name = reader.string()
        metadata[name] = reader.value(reader.take("I"))
    infos = []
    for _ in range(tensor_count):
        name = reader.string()
        shape = [reader.take("Q") for _ in range(reader.take("I"))][::-1]
        infos.append((name, shape, reader.take("I"), reader.take("Q")))
    alignment = metadata.get("general.alignment", ALIGNMENT)
    base = -(-reader.at // alignment) * alignment
    tensors = {}
    for name, shape, number, offset in infos:
        kind = NAME_OF_TYPE[number]
        _, weights, size = TYPES[kind]
        count = int(np.prod(shape)) // weights * size
        tensors[name] = Tensor(kind, shape, bytes(data[base + offset:base + offset + count]))
    return metadata, tensors
