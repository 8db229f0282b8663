#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decoding, one query over many keys, beside PyTorch's scaled_dot_product_attention and beside the
memory itself: torch.sum over the same keys and values, called in turn with both.

  bench/peers/decode.py build/release/bench/libheed_bench_peer.so [--threads 1 2] [--json FILE]
"""
import argparse
import statistics
import time

import torch

from sdpa import load, save, timed

CASES = [  # heads, key heads, queries, keys, dim, type
    (32, 8, 1, 16384, 128, torch.float32),
    (32, 32, 1, 16384, 128, torch.float32),
    (32, 1, 1, 16384, 128, torch.float32),
    (9, 3, 1, 2048, 64, torch.float32),
    (32, 8, 4, 16384, 128, torch.float32),
    (8, 8, 1, 512, 64, torch.float32),
    (32, 8, 1, 32768, 128, torch.bfloat16),
    (32, 32, 1, 16384, 128, torch.bfloat16),
    (9, 3, 1, 2048, 64, torch.bfloat16),
    (8, 8, 1, 1024, 64, torch.bfloat16),
]


def run_case(library, case, threads, seconds):
    heads, kv_heads, queries, keys, dim, dtype = case
    bfloat16 = dtype == torch.bfloat16
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, count, length, dim).to(dtype)
               for count, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys)))
    forward = library.heed_forward_bfloat16 if bfloat16 else library.heed_forward
    out = torch.empty_like(q)
    assert library.heed_mask(b"none", 0, None, queries, keys)

    def ours():
        forward(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), 1, heads, kv_heads,
                queries, keys, dim)

    def theirs():
        with torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    def memory():
        return k.view(torch.float32).sum() + v.view(torch.float32).sum()  # the same bytes

    ours()
    error = (out.float() - theirs().float()).abs().max().item()
    assert error < (0.01 if bfloat16 else 1e-5), f"results differ by {error}"
    times = [], [], []
    calls = [max(1, round(0.004 / timed(call, 1, threads))) for call in (ours, theirs, memory)]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, count, into in zip((ours, theirs, memory), calls, times):
            into.append(timed(call, count, threads))
    bytes_read = (k.numel() + v.numel()) * k.element_size()
    middle = [statistics.median(values) for values in times]
    return {"case": f"{heads}/{kv_heads} heads, {queries} of {keys}, D{dim}" + " bfloat16" * bfloat16,
            "threads": threads,
            "ours_gbytes": bytes_read / middle[0] * 1e-9,
            "memory_gbytes": bytes_read / middle[2] * 1e-9, "ours_ms": middle[0] * 1e3,
            "ratio": statistics.median(b / a for a, b in zip(times[0], times[1])),
            "of_memory": statistics.median(b / a for a, b in zip(times[0], times[2])),
            "error": error, "shortest_gbytes": bytes_read / min(times[0]) * 1e-9,
            "shortest_ratio": min(times[1]) / min(times[0]),
            "shortest_of_memory": min(times[2]) / min(times[0])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="per case")
    parser.add_argument("--json")
    options = parser.parse_args()
    library = load(options.library)
    rows = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        library.heed_threads(threads)
        for case in CASES:
            row = run_case(library, case, threads, options.seconds)
            rows.append(row)
            print(f"{threads} thr  {row['case']:40s} {row['ours_ms']:8.3f} ms  "
                  f"{row['ours_gbytes']:5.1f} GB/s, {100 * row['of_memory']:3.0f} % of torch.sum's "
                  f"{row['memory_gbytes']:5.1f};  {row['ratio']:.2f} times SDPA; shortest "
                  f"{row['shortest_gbytes']:5.1f} GB/s, {100 * row['shortest_of_memory']:3.0f} %, "
                  f"{row['shortest_ratio']:.2f} times", flush=True)
    save(options.json, library, rows, table="decode")


if __name__ == "__main__":
    main()
