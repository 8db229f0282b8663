#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes small files by other people's writers, for the tests of heed's readers.

tests/golden/safetensors: by the reference implementation, through PyTorch.
tests/golden/gguf: by the Python package gguf, with what it dequantizes in a safetensors file; given
the real model (tools/models.sh), a sum over the bits of each of its dequantized tensors too.

  pip install torch safetensors gguf
  tools/make_file_goldens.py [FOLDER/smollm2.gguf]
"""
import pathlib
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

golden = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"


def write_safetensors():
    folder = golden / "safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    ramp = torch.arange(6).reshape(2, 3)
    tensors = {name: (ramp * 0.5 - 1).to(type) for name, type in
               {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}.items()}
    tensors |= {"i64": ramp.long() - (1 << 40), "i32": ramp.int() - 2, "u8": (ramp * 51).to(torch.uint8),
                "bool": ramp % 2 == 1, "empty": torch.zeros(3, 0), "scalar": torch.tensor(2.5),
                'odd "name"\\\n\u00e9\U0001f600': torch.tensor([1.0])}
    save_file(tensors, folder / "all_types.safetensors", {"format": "pt", "note": "caf\u00e9"})


def blocks(random, type, rows, columns):
    """Random bytes with finite scales, so that every bit of a block is used."""
    length, size = gguf.GGML_QUANT_SIZES[type]
    data = random.integers(0, 256, (rows, columns // length, size), dtype=np.uint8)
    name = type.name
    at = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q6_K": [208]}[name]
    for where in at:
        scales = random.normal(0, 0.1, data.shape[:2]).astype(np.float16)
        scales[0, 0] = np.float16(6e-8) * (1 if where == 0 else -1)  # subnormal
        data[..., where:where + 2] = scales.view(np.uint8).reshape(*scales.shape, 2)
    return data.reshape(rows, -1)


def write_gguf():
    folder = golden / "gguf"
    folder.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(folder / "all_types.gguf", "test")
    for name, value in {"uint8": 200, "int8": -100, "uint16": 60000, "int16": -30000, "uint32": 4_000_000_000,
                        "int32": -2_000_000_000, "uint64": 2**63, "int64": -2**63, "float32": 0.1, "float64": 0.1,
                        "bool": True, "string": "caf\u00e9 \U0001f600"}.items():
        getattr(writer, f"add_{name}")(f"test.{name}", value)
    writer.add_array("test.integers", [1, -2, 3])
    writer.add_array("test.floats", [0.5, -0.25])
    writer.add_array("test.texts", ["a", "", "\u4e2d"])
    writer.add_array("test.bools", [True, False])
    writer.add_array("test.nested", [[1, 2], [3]])
    random = np.random.default_rng(7)
    expected = {}
    for name in ("Q8_0", "Q4_0", "Q4_1", "Q6_K"):
        type = gguf.GGMLQuantizationType[name]
        data = blocks(random, type, 3, 512 if name == "Q6_K" else 96)
        writer.add_tensor(name, data, raw_dtype=type)
        expected[name] = gguf.dequantize(data, type)
    values = random.normal(size=(2, 3, 5)).astype(np.float32)
    writer.add_tensor("F32", values)
    writer.add_tensor("F16", values.astype(np.float16))
    bf16 = gguf.quantize(values, gguf.GGMLQuantizationType.BF16)
    writer.add_tensor("BF16", bf16, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.add_tensor("I32", np.arange(4, dtype=np.int32))
    expected |= {"F32": values, "F16": values.astype(np.float16).astype(np.float32),
                 "BF16": gguf.dequantize(bf16, gguf.GGMLQuantizationType.BF16)}
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file({name: torch.from_numpy(value.copy()) for name, value in expected.items()},
              folder / "all_types.safetensors")


def sum_of_bits(values):
    """The sum of bits[i] * (2 i + 1), modulo 2^64."""
    bits = np.ascontiguousarray(values, dtype=np.float32).reshape(-1).view(np.uint32).astype(np.uint64)
    return int((bits * (2 * np.arange(bits.size, dtype=np.uint64) + 1)).sum(dtype=np.uint64))


def write_sums(model):
    with open(golden / "gguf" / "smollm2_sums.txt", "w") as file:
        for tensor in gguf.GGUFReader(model).tensors:
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
            file.write(f"{tensor.name} {sum_of_bits(values):016x}\n")


write_safetensors()
write_gguf()
if len(sys.argv) > 1:
    write_sums(sys.argv[1])
