#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Matrix products beside PyTorch's linear, on the same buffers: weights as layers hold them,
(columns, depth), and the same weights packed once for inference. In bfloat16 both round all factors;
our rows and results are floats all the same, PyTorch's are bfloat16.

Both are checked against each other first, then called in turn (ours, theirs, ours, theirs, …); the
figure is the median of the pairwise ratios, so that a noisy machine disturbs both alike. `cold` takes
another copy of the weights in every call, so that they come from memory.

  cmake --build build/release --target heed_bench_peer
  bench/peers/linear.py build/release/bench/libheed_bench_peer.so [--threads 1 2]
"""
import argparse
import ctypes
import statistics
import time

import torch

from sdpa import load as load_library
from sdpa import save

CASES = [  # rows, depth, columns, copies of the weights
    (512, 768, 3072, 1), (512, 3072, 768, 1), (768, 128, 512, 1), (2048, 384, 1536, 1),
    (64, 768, 3072, 1), (16, 768, 3072, 1), (4, 768, 3072, 1), (1, 768, 3072, 1),
    (1, 256, 256, 1), (1, 768, 3072, 24), (4, 768, 3072, 24),
]


KINDS = ["float", "float, packed", "bfloat16, packed"]


def load(path):
    library = load_library(path)
    pointer, index = ctypes.c_void_p, ctypes.c_ssize_t
    library.heed_linear.argtypes = [pointer] * 3 + [index] * 3
    for pack in (library.heed_pack, library.heed_pack_bfloat16):
        pack.argtypes, pack.restype = [pointer, index, index], pointer
    library.heed_free_packed.argtypes = [pointer]
    library.heed_linear_packed.argtypes = [pointer] * 3 + [index]
    return library


def timed(call, calls, threads):
    """Seconds of one of some calls in a row, of one thread its own time, which other programs do not
    disturb. With threads, what ran before is given time to stop spinning: OpenMP's threads burn their
    core for milliseconds after their work."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    if threads > 1:
        time.sleep(0.02)
    call()
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def ratios(ours, theirs, threads, seconds):
    """Times of both in turn, and how their ratios spread."""
    mine, other = [], []
    calls = max(1, round(0.002 / timed(ours, 1, threads)))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(mine) < 5:
        mine.append(timed(ours, calls, threads))
        other.append(timed(theirs, calls, threads))
    pairs = sorted(b / a for a, b in zip(mine, other))
    return (statistics.median(mine), statistics.median(other), statistics.median(pairs),
            pairs[len(pairs) // 10], pairs[len(pairs) - 1 - len(pairs) // 10],
            min(other) / min(mine))


def run_case(library, case, threads, seconds, kind):
    rows, depth, columns, copies = case
    a = torch.randn(rows, depth)
    weights = [torch.randn(columns, depth) / depth ** 0.5 for _ in range(copies)]
    out = torch.empty(rows, columns)
    pack, rows_of_torch = library.heed_pack, a
    if kind.startswith("bfloat16"):
        weights, rows_of_torch = [w.bfloat16() for w in weights], a.bfloat16()
        pack = library.heed_pack_bfloat16
    handles = [pack(w.data_ptr(), depth, columns) for w in weights]
    turn = {"ours": 0, "theirs": 0}

    def ours():
        turn["ours"] = (turn["ours"] + 1) % copies
        if kind != "float":
            library.heed_linear_packed(a.data_ptr(), handles[turn["ours"]], out.data_ptr(), rows)
        else:
            library.heed_linear(a.data_ptr(), weights[turn["ours"]].data_ptr(), out.data_ptr(),
                                rows, depth, columns)

    def theirs():
        turn["theirs"] = (turn["theirs"] + 1) % copies
        with torch.no_grad():
            return torch.nn.functional.linear(rows_of_torch, weights[turn["theirs"]])

    ours()
    error = (out - theirs()).abs().max().item()
    allowed = 1e-4 if weights[0].dtype == torch.float else 5e-2
    assert error < allowed, f"{case}: results differ by {error}"
    mine, other, ratio, low, high, shortest = ratios(ours, theirs, threads, seconds)
    for handle in handles:
        library.heed_free_packed(handle)
    name = f"{rows} × {depth} × {columns}{', cold' if copies > 1 else ''}"
    work, read = 2e-9 * rows * depth * columns, 1e-9 * weights[0].nbytes
    print(f"{name:24s} {kind:16s} heed {work / mine:6.1f} torch {work / other:6.1f} GFLOP/s  "
          f"weights at {read / mine:5.1f} GB/s  ratio {ratio:.2f} [{low:.2f}, {high:.2f}]; "
          f"shortest {shortest:.2f}", flush=True)
    return {"case": name, "kind": kind, "threads": threads, "gflops": work / mine,
            "gbytes": read / mine, "theirs_gflops": work / other, "ratio": ratio, "ratio_low": low,
            "ratio_high": high, "shortest_ratio": shortest}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.0, help="per case")
    parser.add_argument("--json")
    options = parser.parse_args()
    library = load(options.library)
    print(f"PyTorch {torch.__version__}, heed {library.heed_isa().decode()}; "
          "ratio = theirs / ours in time, 10 % to 90 % quantile")
    rows = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        library.heed_threads(threads)
        print(f"{threads} threads")
        for case in CASES:
            rows += [run_case(library, case, threads, options.seconds, kind) for kind in KINDS]
    save(options.json, library, rows, table="linear")


if __name__ == "__main__":
    main()
