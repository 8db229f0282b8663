#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/09-performance.md and README.md from what the scripts of bench/peers wrote
with --json; each file fills its own table (those of whole models one together), and those of no file stay.

  bench/peers/sdpa.py LIBRARY --json sdpa.json
  bench/peers/libraries.py LIBRARY --json libraries.json
  bench/peers/decode.py LIBRARY --json decode.json
  bench/peers/linear.py LIBRARY --json linear.json
  bench/peers/generation.py LIBRARY FOLDER --json models.json
  bench/peers/sdpa_backward.py LIBRARY --json back.json && bench/report.py --backward back.json
  bench/report.py sdpa.json libraries.json decode.json linear.json models.json
"""
import argparse
import json
import pathlib
import re

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("files", nargs="+")
parser.add_argument("--backward", action="store_true", help="the table of forward and backward")
options = parser.parse_args()
root = pathlib.Path(__file__).resolve().parent.parent


def table(header, rows):
    return "\n".join(["| " + " | ".join(header) + " |", "|" + "---|" * len(header)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def share_of(row):
    return f"{100 * row['peak_share']:.0f} %" if row["peak_share"] else ""


def sdpa(rows):
    return table(["case", "threads", "heed, useful GFLOP/s", "of the multiply-add peak", "PyTorch",
                  "times as fast (10 % to 90 %)"],
                 [[row["case"], str(row["threads"]), f"{row['ours_gflops']:.0f}", share_of(row),
                   f"{row['theirs_gflops']:.0f}",
                   f"**{row['ratio']:.2f}** ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})"]
                  for row in rows])


def libraries(rows):
    peers = ["SDPA", "FlexAttention", "ONNX Runtime"]

    def cell(row, peer):
        if peer in row["failed"]:
            return "fails"
        if peer not in row["ratio"]:
            return "–"
        middle, low, high = row["ratio"][peer]
        return f"{row['gflops'][peer]:.0f}: **{middle:.2f}** ({low:.2f} to {high:.2f})"

    return table(["case", "type", "threads", "heed, useful GFLOP/s", "of the peak"] + peers,
                 [[row["case"], row["type"], str(row["threads"]), f"{row['gflops']['heed']:.0f}",
                   share_of(row)] + [cell(row, peer) for peer in peers] for row in rows])


def decode(rows):
    return table(["case", "threads", "heed, ms", "GB/s", "of what torch.sum reads",
                  "times as fast as SDPA"],
                 [[row["case"], str(row["threads"]), f"{row['ours_ms']:.3f}",
                   f"{row['ours_gbytes']:.1f}", f"{100 * row['of_memory']:.0f} %",
                   f"**{row['ratio']:.2f}**"] for row in rows])


def linear(rows):
    return table(["rows × inputs × outputs", "weights", "threads", "heed, GFLOP/s",
                  "weights, GB/s", "PyTorch, GFLOP/s", "times as fast (10 % to 90 %)"],
                 [[row["case"], row["kind"], str(row["threads"]), f"{row['gflops']:.0f}",
                   f"{row['gbytes']:.0f}", f"{row['theirs_gflops']:.0f}",
                   f"**{row['ratio']:.2f}** ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})"]
                  for row in rows])


def models(rows):
    names = ("transformers", "llama.cpp", "PyTorch")
    return table(["case", "threads", "heed", "transformers", "llama.cpp", "PyTorch, no cache"],
                 [[row["case"], str(row["threads"]), f"{row['heed']:.0f}"] +
                  [f"{row[name]:.0f}, **{row[f'ratio_{name}']:.2f}** times" if name in row else ""
                   for name in names] for row in rows])


def write(page, name, text):
    path = root / page
    old = path.read_text()
    path.write_text(re.sub(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
                           lambda m: m[1] + text + "\n" + m[2], old, flags=re.S))


shown = ["L4096 D64 causal", "L4096 D128", "L512 D64 causal", "window", "H8 L64 D64 causal", "B64 H8 L16"]
reports = [json.loads(pathlib.Path(file).read_text()) for file in options.files]
of_models = [report for report in reports if "heed" in report["rows"][0]]
if of_models:
    write("docs/09-performance.md", "models",
          f"{of_models[0]['machine']}, instruction set {of_models[0]['isa']}; tokens (MiniLM: sentences) "
          "a second.\n\n" + models([row for report in of_models for row in report["rows"]]))
for report in reports:
    if report in of_models:
        continue
    name, rows = report.get("table", "sdpa"), report["rows"]
    ort = f"; ONNX Runtime {report['onnxruntime']}" if "onnxruntime" in report else ""
    machine = (f"{report['machine']}, instruction set {report['isa']}; heed built by "
               f"{report['compiler']}, plain `-O2`; PyTorch {report['torch']}{ort}; "
               f"{report['date']}.\n\n")
    mark = "sdpa_backward" if options.backward else name
    write("docs/09-performance.md", mark, machine + globals()[name](rows))
    if mark == "sdpa":
        write("README.md", name, machine + sdpa(
            [row for row in rows if row["threads"] == 1
             and any(part in row["case"] for part in shown)]))
