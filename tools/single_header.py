#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes heed as one header: tools/single_header.py [OUT] [HEADER ...]

Every <heed/…> include of HEADER (default heed/heed.hpp) is replaced by the file itself; other includes,
Eigen's among them, stay. OUT defaults to standard output.
"""
import pathlib
import re
import sys

include = pathlib.Path(__file__).resolve().parent.parent / "include"
done = set()
part = None  # the last "#define HEED_SIMD_PART": other parts of kernels/part.inl are left out


def expand(name):
    text = (include / name).read_text()
    if "#pragma once" in text:
        if name in done:
            return []
        done.add(name)
    global part
    lines = []
    wanted = True  # whether the branch of a condition on the part is the wanted one
    nested = 0  # conditions inside of that branch
    inside = False
    for line in text.splitlines():
        part = (re.match(r"#define HEED_SIMD_PART (\d)", line) or [0, part])[1]
        choice = re.match(r"#(?:el)?if HEED_SIMD_PART == (\d)", line)
        if choice:
            inside = True
            wanted = choice[1] == part
            continue
        if inside and line.startswith("#endif") and nested == 0:
            inside, wanted = False, True
            continue
        if inside:
            nested += line.startswith("#if")
            nested -= line.startswith("#endif")
        if not wanted:
            continue
        found = re.match(r"\s*#include <(heed/[^>]+)>", line)
        if found:
            lines += expand(found[1])
        elif not line.startswith(("#pragma once", "// SPDX-License-Identifier")):
            lines.append(line)
    return lines


arguments = sys.argv[1:]
out = arguments[0] if arguments else "-"
start = ["// SPDX-License-Identifier: MIT", "// heed in one header, made by tools/single_header.py.",
         "#pragma once"]
text = "\n".join(start + [line for header in arguments[1:] or ["heed/heed.hpp"]
                          for line in expand(header)]) + "\n"
if out == "-":
    sys.stdout.write(text)
else:
    pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(out).write_text(text)
