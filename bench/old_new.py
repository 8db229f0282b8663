#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two builds of heed beside each other: does a change keep the bits, and does it keep the speed?

Both libraries are loaded into this process, each into a namespace of its own, and called in turn on
the same buffers (old, new, new, old, …). The figure is the median of the pairwise ratios new / old of
times, so that a noisy machine disturbs both alike; below 1 the new build is faster. The ratio of the
shortest times is beside it: where strangers share the core, it moves least. Results are compared bit
by bit first. Exit status 1 where a ratio is above --limit, or bits differ and --bits is given.

  cmake --build OLD/build/release --target heed_bench_peer      # and in the new tree
  bench/old_new.py OLD/build/release/bench/libheed_bench_peer.so build/release/bench/libheed_bench_peer.so
"""
import argparse
import ctypes
import os
import random
import statistics
import sys
import time

pointer, index = ctypes.c_void_p, ctypes.c_ssize_t


class Library:
    """A build of bench/peers/heed_c.cpp. Inline variables (thread pool, instruction set) would be shared
    by two builds in one namespace, hence dlmopen."""

    def __init__(self, path):
        dl = ctypes.CDLL(None, use_errno=True)
        dl.dlmopen.restype, dl.dlmopen.argtypes = pointer, [ctypes.c_long, ctypes.c_char_p, ctypes.c_int]
        handle = dl.dlmopen(-1, os.path.abspath(path).encode(), os.RTLD_NOW)
        if not handle:
            sys.exit(f"{path}: cannot be loaded")
        self.c = ctypes.CDLL(path, handle=handle)
        self.c.heed_isa.restype = ctypes.c_char_p
        self.c.heed_mask.argtypes = [ctypes.c_char_p, index, pointer, index, index]
        self.c.heed_mask.restype = ctypes.c_bool
        for name in ("heed_forward", "heed_forward_bfloat16"):
            getattr(self.c, name).argtypes = [pointer] * 4 + [index] * 6
        self.c.heed_forward_backward.argtypes = [pointer] * 9 + [index] * 4
        self.c.heed_linear.argtypes = [pointer] * 3 + [index] * 3
        self.c.heed_pack.restype, self.c.heed_pack.argtypes = pointer, [pointer, index, index]
        self.c.heed_linear_packed.argtypes = [pointer] * 3 + [index]


def numbers(count, seed, bfloat16=False):
    """`count` normal numbers in a buffer on a cache line: a few thousand drawn, then repeated."""
    drawn = random.Random(seed)
    few = (ctypes.c_float * 16381)(*[drawn.gauss(0, 1) for _ in range(16381)])
    raw = bytes(few)
    if bfloat16:
        raw = b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))
    size = count * (2 if bfloat16 else 4)
    buffer = ctypes.create_string_buffer(size + 64)
    at = (ctypes.addressof(buffer) + 63) // 64 * 64
    for start in range(0, size, len(raw)):
        ctypes.memmove(at + start, raw, min(len(raw), size - start))
    return buffer, at


def room(size):
    buffer = ctypes.create_string_buffer(size + 64)
    return buffer, (ctypes.addressof(buffer) + 63) // 64 * 64


def forward(heads, kv_heads, queries, keys, dim, mask="none", number=0, batch=1, bfloat16=False):
    """A case: what is called on a library, and the outputs that it writes."""
    q = numbers(batch * heads * queries * dim, 1, bfloat16)
    k = numbers(batch * kv_heads * keys * dim, 2, bfloat16)
    v = numbers(batch * kv_heads * keys * dim, 3, bfloat16)
    bits = numbers(queries * keys // 4 + 1, 4) if mask == "dense" else None
    if bits:  # one key in two, by the parity of random bytes
        raw = (ctypes.c_ubyte * (queries * keys)).from_address(bits[1])
        raw[:] = [b & 1 for b in raw]
    size = batch * heads * queries * dim * (2 if bfloat16 else 4)

    def make(library):
        out = room(size)
        library.c.heed_mask(mask.encode(), number, bits[1] if bits else None, queries, keys)
        call = library.c.heed_forward_bfloat16 if bfloat16 else library.c.heed_forward
        shape = (batch, heads, kv_heads, queries, keys, dim)
        return lambda: call(q[1], k[1], v[1], out[1], *shape), [(out, size)], (q, k, v, bits)
    return make


def backward(heads, length, dim, mask="causal", batch=1):
    count = batch * heads * length * dim
    inputs = [numbers(count, seed) for seed in (1, 2, 3, 4)]

    def make(library):
        out, lse, *grads = [room(4 * count) for _ in range(5)]
        library.c.heed_mask(mask.encode(), 0, None, length, length)
        q, k, v, grad_out = (i[1] for i in inputs)
        arguments = (q, k, v, out[1], lse[1], grad_out, *(g[1] for g in grads))
        outputs = [(out, 4 * count), (lse, 4 * count // dim)] + [(g, 4 * count) for g in grads]
        return (lambda: library.c.heed_forward_backward(*arguments, batch, heads, length, dim),
                outputs, inputs)
    return make


def linear(rows, depth, columns, packed=False):
    a, weights = numbers(rows * depth, 1), numbers(depth * columns, 2)

    def make(library):
        out = room(4 * rows * columns)
        if packed:
            held = library.c.heed_pack(weights[1], depth, columns)
            return (lambda: library.c.heed_linear_packed(a[1], held, out[1], rows),
                    [(out, 4 * rows * columns)], (a, weights))
        return (lambda: library.c.heed_linear(a[1], weights[1], out[1], rows, depth, columns),
                [(out, 4 * rows * columns)], (a, weights))
    return make


CASES = {
    "forward H4 L2048 D64 none": lambda: forward(4, 4, 2048, 2048, 64),
    "forward H4 L2048 D64 causal": lambda: forward(4, 4, 2048, 2048, 64, "causal"),
    "forward H4 L2048 D128 none": lambda: forward(4, 4, 2048, 2048, 128),
    "forward H4 L2048 D128 causal": lambda: forward(4, 4, 2048, 2048, 128, "causal"),
    "forward H8 L512 D64 causal": lambda: forward(8, 8, 512, 512, 64, "causal"),
    "forward H2 L8192 D64 window 1024": lambda: forward(2, 2, 8192, 8192, 64, "window", 1024),
    "forward H4 L2048 D64 documents 700": lambda: forward(4, 4, 2048, 2048, 64, "documents", 700),
    "forward H4 L2048 D64 lambda": lambda: forward(4, 4, 2048, 2048, 64, "lambda"),
    "forward H4 L1024 D64 dense": lambda: forward(4, 4, 1024, 1024, 64, "dense"),
    "forward H8 L16 D64 causal": lambda: forward(8, 8, 16, 16, 64, "causal"),
    "forward H8 L64 D64 causal": lambda: forward(8, 8, 64, 64, 64, "causal"),
    "forward B64 H8 L16 D64 causal": lambda: forward(8, 8, 16, 16, 64, "causal", batch=64),
    "forward B16 H8 L64 D64 causal": lambda: forward(8, 8, 64, 64, 64, "causal", batch=16),
    "forward bfloat16 H4 L2048 D64 causal": lambda: forward(4, 4, 2048, 2048, 64, "causal", bfloat16=True),
    "forward bfloat16 H4 L2048 D128 none": lambda: forward(4, 4, 2048, 2048, 128, bfloat16=True),
    "decode H32/8 K4096 D128": lambda: forward(32, 8, 1, 4096, 128, "causal"),
    "decode H8 K512 D64": lambda: forward(8, 8, 1, 512, 64, "causal"),
    "decode bfloat16 H32/8 K4096 D128": lambda: forward(32, 8, 1, 4096, 128, "causal", bfloat16=True),
    "forward + backward H4 L1024 D64 causal": lambda: backward(4, 1024, 64),
    "forward + backward H4 L1024 D128 none": lambda: backward(4, 1024, 128, "none"),
    "forward + backward B16 H4 L32 D32 causal": lambda: backward(4, 32, 32, batch=16),
    "linear 512 x 768 x 3072": lambda: linear(512, 768, 3072),
    "linear 1 x 768 x 3072": lambda: linear(1, 768, 3072),
    "linear 1 x 768 x 3072 packed": lambda: linear(1, 768, 3072, packed=True),
}


def compare(libraries, make, seconds):
    """(same bits, median of new / old, its 10 % and 90 %, shortest new / shortest old)"""
    sides = [make(library) for library in libraries]
    calls = [side[0] for side in sides]
    for call in calls:
        call()
    same = all(ctypes.string_at(old[0][1], old[1]) == ctypes.string_at(new[0][1], new[1])
               for old, new in zip(sides[0][1], sides[1][1]))

    def timed(call, repeats):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return time.perf_counter() - start

    repeats = max(1, round(0.005 / max(min(timed(calls[0], 1) for _ in range(3)), 1e-7)))
    ratios, shortest, end = [], [1e9, 1e9], time.perf_counter() + seconds
    while time.perf_counter() < end or len(ratios) < 10:
        first = len(ratios) % 2
        times = [0.0, 0.0]
        for side in (first, 1 - first):
            times[side] = timed(calls[side], repeats)
        ratios.append(times[1] / times[0])
        shortest = [min(pair) for pair in zip(shortest, times)]
    ratios.sort()
    return (same, statistics.median(ratios), ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10],
            shortest[1] / shortest[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--filter", default="", help="only cases whose name has this in it")
    parser.add_argument("--seconds", type=float, default=3, help="for each case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1.01)
    parser.add_argument("--bits", action="store_true", help="fail where bits differ")
    options = parser.parse_args()
    libraries = [Library(options.old), Library(options.new)]
    for library in libraries:
        library.c.heed_threads(options.threads)
    print(f"instruction set {libraries[1].c.heed_isa().decode()}, {options.threads} thread(s); time new / old")
    failed = []
    for name, case in CASES.items():
        if options.filter not in name:
            continue
        same, middle, low, high, shortest = compare(libraries, case(), options.seconds)
        print(f"{name:42} {middle:.3f} ({low:.3f} to {high:.3f})  shortest {shortest:.3f}"
              f"{'' if same else '  OTHER BITS'}", flush=True)
        if middle > options.limit or (options.bits and not same):
            failed.append(name)
    if failed:
        sys.exit("slower than the limit, or of other bits: " + "; ".join(failed))


if __name__ == "__main__":
    main()
