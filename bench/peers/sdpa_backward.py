#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forward and backward attention beside PyTorch's scaled_dot_product_attention with autograd.

The same numbers go through both, gradients are compared first, then they are called in turn (ours,
theirs, ours, theirs, …); the figure is the median of the pairwise ratios. Useful FLOPs count visible
scores only: 14 · dim each (two products forward, five backward).

  cmake --build build/release --target heed_bench_peer
  bench/peers/sdpa_backward.py build/release/bench/libheed_bench_peer.so [--threads 1 2] [--json FILE]
"""
import argparse
import ctypes
import statistics
import time

import torch

from sdpa import load, save

CASES = [(heads, length, dim, mask, kind)
         for heads, length, dim, kind in (
             (25, 1024, 64, "float"), (1, 4096, 64, "float"), (8, 2048, 128, "float"),
             (96, 256, 64, "float"), (48, 64, 32, "float"), (8, 1024, 64, "bfloat16"),
             (8, 1024, 128, "bfloat16"))
         for mask in ("none", "causal")]


def run_case(library, case, seconds):
    heads, length, dim, mask, kind = case
    narrow = kind == "bfloat16"
    torch.manual_seed(0)
    shape = (1, heads, length, dim)
    dtype = torch.bfloat16 if narrow else torch.float
    q, k, v = (torch.randn(shape).to(dtype).requires_grad_() for _ in range(3))
    grad = torch.randn(shape).to(dtype)
    out = torch.empty(shape, dtype=dtype)
    ours_q, ours_k, ours_v = (torch.empty(shape) for _ in range(3))
    lse = torch.empty(1, heads, length)
    assert library.heed_mask(mask.encode(), 0, None, length, length)
    pointers = [t.data_ptr() for t in (q, k, v, out, lse, grad, ours_q, ours_k, ours_v)]

    call = library.heed_forward_backward_bfloat16 if narrow else library.heed_forward_backward

    def ours():
        call(*pointers, 1, heads, length, dim)

    def theirs():
        q.grad = k.grad = v.grad = None
        torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=mask == "causal").backward(grad)

    ours()
    theirs()
    error = max((a - b.grad).abs().max().item()
                for a, b in ((ours_q, q), (ours_k, k), (ours_v, v)))
    assert error < (0.1 if narrow else 1e-4), f"{case}: gradients differ by {error}"
    visible = length * (length + 1) / 2 if mask == "causal" else length * length
    flops = 14.0 * dim * heads * visible
    mine, other = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(mine) < 5:
        start = time.perf_counter(); ours(); middle = time.perf_counter(); theirs()
        mine.append(middle - start)
        other.append(time.perf_counter() - middle)
    ratios = sorted(b / a for a, b in zip(mine, other))
    return {"case": f"H{heads} L{length} D{dim} {mask}" + " bfloat16" * narrow,
            "ours_gflops": flops / statistics.median(mine) * 1e-9,
            "theirs_gflops": flops / statistics.median(other) * 1e-9,
            "ours_ms": statistics.median(mine) * 1e3, "ratio": statistics.median(ratios),
            "ratio_low": ratios[len(ratios) // 10],
            "ratio_high": ratios[len(ratios) - 1 - len(ratios) // 10], "error": error}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="per case")
    parser.add_argument("--json")
    options = parser.parse_args()
    library = load(options.library)
    for call in (library.heed_forward_backward, library.heed_forward_backward_bfloat16):
        call.argtypes = [ctypes.c_void_p] * 9 + [ctypes.c_ssize_t] * 4
    rows = []
    print(f"PyTorch {torch.__version__}, heed {library.heed_isa().decode()}; forward + backward, "
          "GFLOP/s useful; ratio = theirs / ours in time, 10 % to 90 % quantile")
    for threads in options.threads:
        torch.set_num_threads(threads)
        library.heed_threads(threads)
        for case in CASES:
            peak_of = library.heed_peak if case[4] == "float" else library.heed_bfloat16_peak
            before = peak_of()
            row = run_case(library, case, options.seconds)
            peak = (before + peak_of()) / 2 * threads
            row.update(threads=threads, peak_share=row["ours_gflops"] / peak if peak else None)
            rows.append(row)
            print(f"{threads} thr  {row['case']:22s} heed {row['ours_gflops']:6.1f} "
                  f"({100 * (row['peak_share'] or 0):4.1f} % of peak)  torch "
                  f"{row['theirs_gflops']:6.1f}  ratio {row['ratio']:5.2f} "
                  f"[{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]  {row['ours_ms']:.3f} ms",
                  flush=True)
    save(options.json, library, rows)


if __name__ == "__main__":
    main()
