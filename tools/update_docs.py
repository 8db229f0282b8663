#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fills the marked code blocks of README.md and docs/ from the files they show.

  <!-- snippet: FILE#REGION -->, <!-- snippet: FILE --> and <!-- output: FILE --> before a block;
tests/architecture/snippets.cmake checks the same. Run from anywhere: tools/update_docs.py
"""
import pathlib
import re

root = pathlib.Path(__file__).resolve().parent.parent


def content(kind, file, region):
    text = (root / file).read_text()
    if region:
        text = text.split(f"// [{region}]\n", 1)[1].split(f"// [/{region}]", 1)[0].rstrip(" ")
        indent = re.match(" *", text).group()
        if indent:
            text = ("\n" + text).replace("\n" + indent, "\n")[1:]
    elif kind == "snippet":
        text = re.sub(r"^// SPDX[^\n]*\n", "", text)
    return text


pattern = re.compile(r"(<!-- (snippet|output): ([^ #]+)(?:#([^ ]+))? -->\n+```[a-z]*\n)(.*?)(```)", re.S)
for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
    old = page.read_text()
    new = pattern.sub(lambda m: m[1] + content(m[2], m[3], m[4]) + m[6], old)
    if new != old:
        page.write_text(new)
        print("updated", page.relative_to(root))
