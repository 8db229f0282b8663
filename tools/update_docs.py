#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fills the marked code blocks of README.md and docs/ from the files they show.

  <!-- snippet: FILE#REGION -->, <!-- snippet: FILE --> and <!-- output: FILE --> before a block;
tests/architecture/snippets.cmake checks the same. Run from anywhere: tools/update_docs.py
  tools/update_docs.py BUILD: also what BUILD/examples/masks draws and prints, for docs/02-masks.md
(tests/laws/masks_page_test.cpp and examples/masks_gallery check it).
"""
import pathlib
import re
import subprocess
import sys

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

if len(sys.argv) > 1:
    masks = [pathlib.Path(sys.argv[1], "examples/masks").resolve(), "--svg", root / "docs/pictures/masks.svg"]
    printed = subprocess.run(masks, capture_output=True, text=True, check=True).stdout
    drawings = {text.split("\n")[0]: text for text in printed.split("\n\n")}
    page = root / "docs/02-masks.md"
    block = re.compile(r"(?<=^```text\n)(.*)\n(?:.*\n)*?(?=```$)", re.M)
    page.write_text(block.sub(lambda m: drawings.get(m[1], m[0][:-1]) + "\n", page.read_text()))
