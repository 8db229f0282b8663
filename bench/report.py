#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/09-performance.md and README.md from what bench/peers/sdpa.py --json wrote,
that of forward and backward from what sdpa_backward.py did, and that of whole models from what
generation.py did, in one file or several.

  bench/peers/sdpa.py LIBRARY --json sdpa.json && bench/report.py sdpa.json
  bench/peers/sdpa_backward.py LIBRARY --json back.json && bench/report.py --backward back.json
  bench/peers/generation.py LIBRARY FOLDER --json models.json && bench/report.py models.json
"""
import argparse
import json
import pathlib
import re
import sys

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("files", nargs="+")
parser.add_argument("--backward", action="store_true", help="the table of forward and backward")
options = parser.parse_args()
root = pathlib.Path(__file__).resolve().parent.parent
reports = [json.loads(pathlib.Path(name).read_text()) for name in options.files]
report = reports[0]
rows = [row for each in reports for row in each["rows"]]


def table(rows):
    lines = ["| case | threads | heed, useful GFLOP/s | of the multiply-add peak | PyTorch | times as fast "
             "(10 % to 90 %) |", "|---|---|---|---|---|---|"]
    for row in rows:
        share = f"{100 * row['peak_share']:.0f} %" if row["peak_share"] else ""
        lines.append(f"| {row['case']} | {row['threads']} | {row['ours_gflops']:.0f} | {share} | "
                     f"{row['theirs_gflops']:.0f} | **{row['ratio']:.2f}** ({row['ratio_low']:.2f} to "
                     f"{row['ratio_high']:.2f}) |")
    return "\n".join(lines)


def models_table(rows):
    names = ("transformers", "llama.cpp", "PyTorch")
    lines = ["| case | threads | heed | transformers | llama.cpp | PyTorch, no cache |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        peers = [f"{row[name]:.0f}, **{row[f'ratio_{name}']:.2f}** times" if name in row else ""
                 for name in names]
        lines.append(f"| {row['case']} | {row['threads']} | {row['heed']:.0f} | "
                     + " | ".join(peers) + " |")
    return "\n".join(lines)


def replace(page, mark, content):
    path = root / page
    path.write_text(re.sub(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)",
                           lambda m: m[1] + content + "\n" + m[2], path.read_text(), flags=re.S))


if "heed" in rows[0]:
    replace("docs/09-performance.md", "models",
            f"{report['machine']}, instruction set {report['isa']}; tokens (MiniLM: sentences) a second.\n\n"
            + models_table(rows))
    sys.exit()

machine = (f"{report['machine']}, instruction set {report['isa']}; heed built by "
           f"{report['compiler']}, plain `-O2`; PyTorch {report['torch']}; {report['date']}.")
shown = ["L4096 D64 causal", "L4096 D128", "L512 D64 causal", "window", "H8 L64 D64 causal", "B64 H8 L16"]
if options.backward:
    replace("docs/09-performance.md", "sdpa_backward", machine + "\n\n" + table(rows))
    sys.exit()
for page, chosen in (("docs/09-performance.md", rows),
                     ("README.md", [row for row in rows if row["threads"] == 1
                                    and any(name in row["case"] for name in shown)])):
    replace(page, "sdpa", machine + "\n\n" + table(chosen))
