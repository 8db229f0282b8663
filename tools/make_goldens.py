#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch: attention as PyTorch computes it in float64.

For every case four files: queries, keys, values in half precision (so that float32 and float64
readers see the very same numbers) and, in float64, the output of scaled_dot_product_attention; a
fifth holds the log-sum-exp of the visible scores. Cases named backward_… have the gradients of
Σ output · grad_out + Σ lse · grad_lse instead, by autograd. Masks are written here as formulas of torch
tensors, or left to PyTorch's own causal flags, independently of heed's policies. The C++ side of
the table is tests/attention/torch_golden_test.cpp.

  pip install torch numpy
  tools/make_goldens.py [FOLDER]
"""
import pathlib
import sys

import numpy as np
import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                      pathlib.Path(__file__).resolve().parent.parent / "tests/golden/torch")
folder.mkdir(parents=True, exist_ok=True)
random = torch.Generator().manual_seed(20261121)


def normal(*shape, sigma=1.0):
    """Normal numbers that half precision holds exactly."""
    return (sigma * torch.randn(*shape, generator=random)).half().double()


def write(name, batch, heads, kv_heads, queries, keys, head_dim, value_dim, mask=None,
          causal=None, scale=None, sigma=1.0):
    """One case. mask: function of (query row, key), both index tensors."""
    q = normal(batch, heads, queries, head_dim, sigma=sigma)
    k = normal(batch, kv_heads, keys, head_dim, sigma=sigma)
    v = normal(batch, kv_heads, keys, value_dim)
    visible = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
    row, key = torch.arange(queries).view(-1, 1), torch.arange(keys)
    how = {"scale": scale, "enable_gqa": heads != kv_heads}
    if causal == "top_left":
        visible &= key <= row
        out = scaled_dot_product_attention(q, k, v, is_causal=True, **how)
    elif causal == "bottom_right":
        visible &= key <= row + keys - queries
        out = scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(queries, keys),
                                           **how)
    elif mask:
        visible = visible & mask(row, key)
        out = scaled_dot_product_attention(q, k, v, attn_mask=visible, **how)
    else:
        out = scaled_dot_product_attention(q, k, v, **how)
    wide = k.repeat_interleave(heads // kv_heads, dim=1)
    scores = q @ wide.transpose(-1, -2) * (head_dim**-0.5 if scale is None else scale)
    lse = scores.masked_fill(~visible, -torch.inf).logsumexp(-1)
    empty = ~visible.any(-1)
    # What PyTorch makes of a row that sees nothing depends on its path; heed promises 0.
    out = out.masked_fill(empty.unsqueeze(-1), 0)
    assert out.isfinite().all() and out.shape == (batch, heads, queries, value_dim)
    for part, tensor, kind in (("queries", q, "<f2"), ("keys", k, "<f2"), ("values", v, "<f2"),
                               ("out", out, "<f8"), ("lse", lse, "<f8")):
        np.save(folder / f"{name}_{part}.npy", np.ascontiguousarray(tensor.numpy().astype(kind)))
    print(f"{name}: {int(empty.sum())} empty rows, lse {lse.min():.3g} to {lse.max():.3g}")


def band(left, right, offset):
    return lambda row, key: (key >= row + offset - left) & (key <= row + offset + right)


lengths = torch.tensor([11, 1, 0, 6]).view(-1, 1, 1, 1)
prefixes = torch.tensor([0, 5]).view(-1, 1, 1, 1)

write("one", 1, 1, 1, 1, 1, 1, 1)
write("odd", 2, 3, 3, 7, 13, 5, 9)
write("grouped", 2, 6, 2, 11, 11, 8, 4, causal="bottom_right")
write("single_key_head", 1, 5, 1, 3, 70, 6, 6)
write("causal_top_left", 1, 2, 2, 9, 20, 6, 3, causal="top_left")
write("causal_bottom_right", 1, 2, 2, 9, 20, 6, 3, causal="bottom_right")
write("causal_more_queries", 1, 2, 2, 20, 9, 6, 3, mask=lambda row, key: key <= row - 11)
write("window", 1, 2, 1, 75, 75, 4, 3, mask=band(5, 2, 0))
write("window_offset", 1, 1, 1, 67, 201, 4, 3, mask=band(50, 0, 201 - 67))
write("padding", 4, 2, 2, 11, 11, 5, 4, mask=lambda row, key: key < lengths)
write("prefix", 2, 1, 1, 14, 14, 5, 4,
      mask=lambda row, key: (key < prefixes) | (key <= row))
write("everything_at_once", 4, 4, 2, 11, 11, 5, 4, scale=0.75,
      mask=lambda row, key: (key < lengths) & band(3, 0, 0)(row, key))
write("negative_scale", 1, 1, 1, 6, 6, 4, 4, scale=-1.5)
write("zero_scale", 1, 1, 1, 5, 6, 4, 4, scale=0.0)
write("large_scores", 1, 2, 2, 10, 110, 16, 4, sigma=10.0)
write("many_keys", 1, 1, 1, 2, 1700, 3, 2, causal="bottom_right")


def write_gradients(name, batch, heads, kv_heads, queries, keys, head_dim, value_dim, mask=None,
                    bias=None, scale=None):
    """Gradients of one case. bias: the shape of an additive one."""
    q = normal(batch, heads, queries, head_dim).requires_grad_()
    k = normal(batch, kv_heads, keys, head_dim).requires_grad_()
    v = normal(batch, kv_heads, keys, value_dim).requires_grad_()
    b = normal(*(bias or (1, 1, 1, 1))).requires_grad_()
    grad_out = normal(batch, heads, queries, value_dim)
    grad_lse = normal(batch, heads, queries)
    row, key = torch.arange(queries).view(-1, 1), torch.arange(keys)
    visible = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
    if mask:
        visible = visible & mask(row, key)
    assert visible.any(-1).all(), "what PyTorch makes of a row that sees nothing is its own affair"
    added = torch.zeros(batch, heads, queries, keys, dtype=torch.double) + (b if bias else 0)
    added = added.masked_fill(~visible, -torch.inf)
    how = {"scale": scale, "enable_gqa": heads != kv_heads}
    out = scaled_dot_product_attention(q, k, v, attn_mask=added, **how)
    wide = k.repeat_interleave(heads // kv_heads, dim=1)
    scores = q @ wide.transpose(-1, -2) * (head_dim**-0.5 if scale is None else scale) + added
    ((out * grad_out).sum() + (scores.logsumexp(-1) * grad_lse).sum()).backward()
    parts = [("queries", q, "<f2"), ("keys", k, "<f2"), ("values", v, "<f2"),
             ("grad_out", grad_out, "<f2"), ("grad_lse", grad_lse, "<f2"),
             ("grad_queries", q.grad, "<f8"), ("grad_keys", k.grad, "<f8"),
             ("grad_values", v.grad, "<f8")]
    if bias:
        parts += [("bias", b, "<f2"), ("grad_bias", b.grad, "<f8")]
    for part, tensor, kind in parts:
        np.save(folder / f"{name}_{part}.npy",
                np.ascontiguousarray(tensor.detach().numpy().astype(kind)))
    print(f"{name}: gradients up to {max(t.abs().max() for _, t, _ in parts[5:8]):.3g}")


write_gradients("backward_odd", 2, 3, 3, 7, 13, 5, 9)
write_gradients("backward_grouped", 2, 4, 2, 11, 11, 8, 4, mask=band(11, 0, 0))
write_gradients("backward_window", 1, 1, 1, 67, 101, 4, 3, mask=band(20, 3, 101 - 67), scale=-0.7)
write_gradients("backward_bias", 2, 2, 1, 9, 20, 6, 3, mask=band(20, 0, 11), bias=(1, 2, 9, 20))
write_gradients("backward_bias_of_keys", 2, 2, 2, 9, 20, 6, 3, bias=(2, 1, 1, 20))
