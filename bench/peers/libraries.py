#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forward attention beside PyTorch's scaled_dot_product_attention and FlexAttention (compiled for the
CPU, which takes a g++) and ONNX Runtime's Attention, all called in turn on the same numbers.

Every result is compared with PyTorch's first. A peer is left out of a case that it has no form for,
or that it fails at, in which case the reason is printed and kept in the report.

  pip install torch onnxruntime onnx
  bench/peers/libraries.py build/release/bench/libheed_bench_peer.so [--threads 1] [--json FILE]
"""
import argparse
import statistics
import time

import onnx
import onnxruntime
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from sdpa import dense_mask, load, save, timed

CASES = [  # heads, length, dim, mask, its size, type
    (4, 4096, 64, "none", 0, "float"),
    (4, 4096, 64, "causal", 0, "float"),
    (4, 4096, 128, "causal", 0, "float"),
    (8, 512, 64, "causal", 0, "float"),
    (2, 8192, 64, "window", 1024, "float"),
    (4, 4096, 64, "documents", 700, "float"),
    (4, 4096, 64, "prefix", 512, "float"),
    (4, 4096, 64, "blocks", 128, "float"),
    (4, 4096, 64, "none", 0, "bfloat16"),
    (4, 4096, 64, "causal", 0, "bfloat16"),
    (4, 4096, 128, "none", 0, "bfloat16"),
    (4, 4096, 128, "causal", 0, "bfloat16"),
]
PREDICATES = {
    "causal": lambda size: lambda b, h, q, k: k <= q,
    "window": lambda size: lambda b, h, q, k: (k <= q) & (k > q - size),
    "documents": lambda size: lambda b, h, q, k: (k <= q) & (k // size == q // size),
    "prefix": lambda size: lambda b, h, q, k: (k <= q) | (k < size),
    "blocks": lambda size: lambda b, h, q, k: (
        (q // size == k // size) | ((q // size * 7 + k // size * 3) % 13 == 0)),
}


def flex(q, k, v, mask, size):
    """FlexAttention, compiled."""
    block_mask = None
    if mask != "none":
        block_mask = create_block_mask(PREDICATES[mask](size), B=None, H=None, Q_LEN=q.shape[2],
                                       KV_LEN=k.shape[2], device="cpu")
    compiled = torch.compile(flex_attention, dynamic=False)

    def call():
        with torch.no_grad():
            return compiled(q, k, v, block_mask=block_mask)
    return call


def runtime(q, k, v, mask, threads):
    """ONNX Runtime's Attention of the ONNX standard."""
    if q.dtype != torch.float32 or mask not in ("none", "causal"):
        return None
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(x.shape))
              for name, x in zip("QKVY", (q, k, v, q))]
    node = onnx.helper.make_node("Attention", ["Q", "K", "V"], ["Y"],
                                 is_causal=int(mask == "causal"))
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "attention", values[:3], values[3:]),
                                   opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=11)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings,
                                           providers=["CPUExecutionProvider"])
    feed = {name: x.numpy() for name, x in zip("QKV", (q, k, v))}
    return lambda: torch.from_numpy(session.run(None, feed)[0])


def run_case(library, case, threads, seconds):
    heads, length, dim, mask, size, kind = case
    name = f"H{heads} L{length} D{dim} {mask}{' ' + str(size) if size else ''}"
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, heads, length, dim).to(getattr(torch, kind)) for _ in range(3))
    out = torch.empty_like(q)
    seen = dense_mask(length, length, mask, size)
    dense = None if mask in ("none", "causal") else seen
    assert library.heed_mask(mask.encode(), size, seen.data_ptr(), length, length)
    forward = library.heed_forward if kind == "float" else library.heed_forward_bfloat16

    def ours():
        forward(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), 1, heads, heads, length,
                length, dim)
        return out

    def sdpa():
        with torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=dense, is_causal=mask == "causal")

    exact = sdpa().float()
    calls, failed = {"heed": ours, "SDPA": sdpa}, {}
    for peer, make in (("FlexAttention", lambda: flex(q, k, v, mask, size)),
                       ("ONNX Runtime", lambda: runtime(q, k, v, mask, threads))):
        try:
            call = make()
            if call is not None:
                call()
                calls[peer] = call
        except Exception as error:  # any reason of theirs is a reason to go on without them
            failed[peer] = str(error).splitlines()[0][:100]
    for peer, call in calls.items():
        error = (call().float() - exact).abs().max().item()
        assert error < (1e-5 if kind == "float" else 2e-2), f"{name}: {peer} differs by {error}"
    times = {peer: [] for peer in calls}
    repeats = {peer: max(1, round(0.002 / timed(call, 1, threads))) for peer, call in calls.items()}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["heed"]) < 3:
        for peer, call in calls.items():
            times[peer].append(timed(call, repeats[peer], threads))
    flops = 4.0 * dim * heads * seen.sum().item()
    row = {"case": name, "type": kind, "threads": threads, "failed": failed,
           "gflops": {p: flops / statistics.median(t) * 1e-9 for p, t in times.items()}, "ratio": {}}
    for peer in list(calls)[1:]:
        ratios = sorted(b / a for a, b in zip(times["heed"], times[peer]))
        row["ratio"][peer] = [statistics.median(ratios), ratios[len(ratios) // 10],
                              ratios[len(ratios) - 1 - len(ratios) // 10]]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--seconds", type=float, default=3.0, help="per case")
    parser.add_argument("--filter", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    library = load(options.library)
    rows = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        library.heed_threads(threads)
        for case in CASES:
            if options.filter not in f"H{case[0]} L{case[1]} D{case[2]} {case[3]} {case[5]}":
                continue
            peak = library.heed_peak if case[5] == "float" else library.heed_bfloat16_peak
            before = peak()
            row = run_case(library, case, threads, options.seconds)
            most = (before + peak()) / 2 * threads
            row["peak_share"] = row["gflops"]["heed"] / most if most else None
            rows.append(row)
            print(f"{threads} thr {row['case']:28s} {row['type']:8s} heed {row['gflops']['heed']:6.1f} "
                  f"({100 * (row['peak_share'] or 0):.0f} % of peak)  " +
                  "  ".join(f"{peer} {row['gflops'][peer]:6.1f} ({ratio[0]:.2f} times as slow)"
                            for peer, ratio in row["ratio"].items()) +
                  "".join(f"  {peer}: {why}" for peer, why in row["failed"].items()), flush=True)
    save(options.json, library, rows, table="libraries", onnxruntime=onnxruntime.__version__)


if __name__ == "__main__":
    main()
