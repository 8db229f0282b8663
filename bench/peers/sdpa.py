#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forward attention beside PyTorch's scaled_dot_product_attention, on the same buffers.

Both are checked against each other first, then called in turn (ours, theirs, ours, theirs, …); the
figure is the median of the pairwise ratios, so that a noisy machine disturbs both alike; where others
share the cores, the shortest times of both, which are shown too, say more. Useful
FLOPs count visible scores only: 4 · dim each.

  cmake --build build/release --target heed_bench_peer
  bench/peers/sdpa.py build/release/bench/libheed_bench_peer.so [--threads 1 2] [--json FILE]
"""
import argparse
import ctypes
import datetime
import json
import os
import statistics
import time

import torch

CASES = [  # name, batch, heads, key heads, queries, keys, dim, mask, its size
    ("B1 H4 L4096 D64 none", 1, 4, 4, 4096, 4096, 64, "none", 0),
    ("B1 H4 L4096 D64 causal", 1, 4, 4, 4096, 4096, 64, "causal", 0),
    ("B1 H4 L4096 D128 none", 1, 4, 4, 4096, 4096, 128, "none", 0),
    ("B1 H4 L4096 D128 causal", 1, 4, 4, 4096, 4096, 128, "causal", 0),
    ("B1 H8 L512 D64 none", 1, 8, 8, 512, 512, 64, "none", 0),
    ("B1 H8 L512 D64 causal", 1, 8, 8, 512, 512, 64, "causal", 0),
    ("B1 H1 L8192 D64 causal", 1, 1, 1, 8192, 8192, 64, "causal", 0),
    ("B1 H8 L2048 D80 none", 1, 8, 8, 2048, 2048, 80, "none", 0),
    ("B1 H8 L2048 D256 causal", 1, 8, 8, 2048, 2048, 256, "causal", 0),
    ("B1 H2 L8192 D64 window 1024", 1, 2, 2, 8192, 8192, 64, "window", 1024),
    ("B1 H4 L4096 D64 prefix 512", 1, 4, 4, 4096, 4096, 64, "prefix", 512),
    ("B1 H4 L4096 D64 documents 700", 1, 4, 4, 4096, 4096, 64, "documents", 700),
    ("B1 H4 L4096 D64 lambda causal", 1, 4, 4, 4096, 4096, 64, "lambda", 0),
    ("B1 H8 L2048 D64 dense random", 1, 8, 8, 2048, 2048, 64, "dense", 0),
    ("B1 H8 L16 D64 causal", 1, 8, 8, 16, 16, 64, "causal", 0),
    ("B1 H8 L64 D64 causal", 1, 8, 8, 64, 64, 64, "causal", 0),
    ("B1 H8 L256 D64 causal", 1, 8, 8, 256, 256, 64, "causal", 0),
    ("B64 H8 L16 D64 causal", 64, 8, 8, 16, 16, 64, "causal", 0),
    ("B64 H8 L64 D64 causal", 64, 8, 8, 64, 64, 64, "causal", 0),
    ("B64 H8 L128 D64 causal", 64, 8, 8, 128, 128, 64, "causal", 0),
]


def load(path):
    library = ctypes.CDLL(path)
    library.heed_peak.restype = ctypes.c_double
    library.heed_isa.restype = ctypes.c_char_p
    library.heed_compiler.restype = ctypes.c_char_p
    pointer, index = ctypes.c_void_p, ctypes.c_ssize_t
    library.heed_forward.argtypes = [pointer] * 4 + [index] * 6
    library.heed_bfloat16_peak.restype = ctypes.c_double
    library.heed_forward_bfloat16.argtypes = [pointer] * 4 + [index] * 6
    library.heed_mask.argtypes = [ctypes.c_char_p, index, pointer, index, index]
    library.heed_mask.restype = ctypes.c_bool
    return library


def machine():
    """The processor's name, and how many of them this process may use."""
    with open("/proc/cpuinfo") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    return (f"{fields.get('model name', 'unknown processor')} (family {fields.get('cpu family')}, "
            f"model {fields.get('model')}), {len(os.sched_getaffinity(0))} cores")


def dense_mask(queries, keys, mask, size):
    """The mask as a matrix, for a library that has no other form of it."""
    i = torch.arange(queries)[:, None] + keys - queries
    j = torch.arange(keys)[None, :]
    if mask == "window":
        return (j <= i) & (j > i - size)
    if mask == "prefix":
        return (j <= i) | (j < size)
    if mask == "documents":
        return (j <= i) & (j // size == i // size)
    if mask == "blocks":
        row, key = i // size, j // size
        return (row == key) | ((row * 7 + key * 3) % 13 == 0)
    if mask == "dense":
        return torch.rand(queries, keys) < 0.5
    return (j <= i) if mask in ("causal", "lambda") else torch.ones(queries, keys, dtype=torch.bool)


def timed(call, calls, threads):
    """Seconds of one of some calls in a row. With threads, what ran before is given time to stop
    spinning: OpenMP's threads burn their core for milliseconds after their work."""
    if threads > 1:
        time.sleep(0.02)
    call()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def run_case(library, case, threads, seconds):
    name, batch, heads, kv_heads, queries, keys, dim, mask, window = case
    torch.manual_seed(0)
    q = torch.randn(batch, heads, queries, dim)
    k = torch.randn(batch, kv_heads, keys, dim)
    v = torch.randn(batch, kv_heads, keys, dim)
    out = torch.empty_like(q)
    seen = dense_mask(queries, keys, mask, window)
    dense = None if mask in ("none", "causal", "lambda") else seen
    assert library.heed_mask(mask.encode(), window, seen.data_ptr(), queries, keys)

    def ours():
        library.heed_forward(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), batch,
                             heads, kv_heads, queries, keys, dim)

    def theirs():
        with torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=dense, is_causal=mask in ("causal", "lambda"))

    ours()
    error = (out - theirs()).abs().max().item()
    assert error < 1e-5, f"{name}: results differ by {error}"
    flops = 4.0 * dim * batch * heads * seen.sum().item()
    mine, other = [], []
    calls = max(1, round(0.002 / timed(ours, 1, threads)))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(mine) < 5:
        mine.append(timed(ours, calls, threads))
        other.append(timed(theirs, calls, threads))
    ratios = sorted(b / a for a, b in zip(mine, other))
    return {"case": name, "ours_gflops": flops / statistics.median(mine) * 1e-9,
            "theirs_gflops": flops / statistics.median(other) * 1e-9,
            "ours_ms": statistics.median(mine) * 1e3,
            "ratio": statistics.median(ratios), "ratio_low": ratios[len(ratios) // 10],
            "ratio_high": ratios[len(ratios) - 1 - len(ratios) // 10], "error": error,
            "shortest_gflops": flops / min(mine) * 1e-9, "shortest_ratio": min(other) / min(mine)}


def save(path, library, rows, **more):
    """What report.py reads, if there is a path."""
    if not path:
        return
    with open(path, "w") as file:
        json.dump({**more, "torch": torch.__version__, "isa": library.heed_isa().decode(),
                   "compiler": library.heed_compiler().decode(), "machine": machine(),
                   "date": datetime.date.today().isoformat(), "rows": rows}, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="per case")
    parser.add_argument("--filter", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    library = load(options.library)
    rows = []
    print(f"PyTorch {torch.__version__}, heed {library.heed_isa().decode()}; "
          "GFLOP/s useful; ratio = theirs / ours in time, 10 % to 90 % quantile")
    for threads in options.threads:
        torch.set_num_threads(threads)
        library.heed_threads(threads)
        for case in CASES:
            if options.filter not in case[0]:
                continue
            before = library.heed_peak()
            row = run_case(library, case, threads, options.seconds)
            peak = (before + library.heed_peak()) / 2 * threads
            row.update(threads=threads, peak_share=row["ours_gflops"] / peak if peak else None)
            rows.append(row)
            print(f"{threads} thr  {row['case']:30s} heed {row['ours_gflops']:6.1f} "
                  f"({100 * (row['peak_share'] or 0):4.1f} % of peak)  torch "
                  f"{row['theirs_gflops']:6.1f}  ratio {row['ratio']:5.2f} "
                  f"[{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]  {row['ours_ms']:.3f} ms; shortest "
                  f"{row['shortest_gflops']:6.1f}, {row['shortest_ratio']:.2f}",
                  flush=True)
    save(options.json, library, rows)


if __name__ == "__main__":
    main()
