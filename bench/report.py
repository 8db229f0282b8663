#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/09-performance.md and README.md from what bench/peers/sdpa.py --json wrote.

  bench/peers/sdpa.py LIBRARY --json sdpa.json && bench/report.py sdpa.json
"""
import json
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
report = json.loads(pathlib.Path(sys.argv[1]).read_text())
rows = report["rows"]


def table(rows):
    lines = ["| case | threads | heed, useful GFLOP/s | of the multiply-add peak | PyTorch | times as fast "
             "(10 % to 90 %) |", "|---|---|---|---|---|---|"]
    for row in rows:
        share = f"{100 * row['peak_share']:.0f} %" if row["peak_share"] else ""
        lines.append(f"| {row['case']} | {row['threads']} | {row['ours_gflops']:.0f} | {share} | "
                     f"{row['theirs_gflops']:.0f} | **{row['ratio']:.2f}** ({row['ratio_low']:.2f} to "
                     f"{row['ratio_high']:.2f}) |")
    return "\n".join(lines)


machine = (f"{report['machine']}, instruction set {report['isa']}; heed built by "
           f"{report['compiler']}, plain `-O2`; PyTorch {report['torch']}; {report['date']}.")
shown = ["L4096 D64 causal", "L4096 D128", "L512 D64 causal", "window", "H8 L64 D64 causal", "B64 H8 L16"]
for page, chosen in (("docs/09-performance.md", rows),
                     ("README.md", [row for row in rows if row["threads"] == 1
                                    and any(name in row["case"] for name in shown)])):
    path = root / page
    text = path.read_text()
    new = re.sub(r"(<!-- sdpa -->\n).*?(<!-- /sdpa -->)",
                 lambda m: m[1] + machine + "\n\n" + table(chosen) + "\n" + m[2], text, flags=re.S)
    path.write_text(new)
