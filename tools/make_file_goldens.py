#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes small files by other people's writers, for the tests of heed's readers.

tests/golden/safetensors: by the reference implementation, through PyTorch.

  pip install torch safetensors
  tools/make_file_goldens.py
"""
import pathlib

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


write_safetensors()
