#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/pictures/compare anew: the same data by heed, and by matplotlib and seaborn (pip install seaborn).

tools/compare_pictures.py [BERTVIZ]: BERTVIZ is a folder with head_view.js of bertviz, d3.js (5) and jquery.js, which
BertViz otherwise loads from a network, and chromium draws its page. Versions differ, and so may the right pictures.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import seaborn

root = pathlib.Path(__file__).resolve().parent.parent
folder = root / "docs/pictures/compare"
work = pathlib.Path(tempfile.mkdtemp())
subprocess.run(["g++", "-std=c++20", "-O1", f"-I{root}/include", root / "tools/compare_pictures.cpp",
                "-o", work / "draw", "-pthread"], check=True)
subprocess.run([work / "draw", work], check=True)
for picture in work.glob("*.png"):
    shutil.copy(picture, folder)
plt.rcParams["font.family"] = ["DejaVu Sans", "WenQuanYi Micro Hei"]


def data(name):
    labels = (work / f"{name}.txt").read_text().split("\n")[:-1]
    return np.load(work / f"{name}.npy"), labels


def save(name):
    plt.savefig(folder / f"{name}-matplotlib.png")
    plt.close()


def heatmap(name, title, **options):
    values, labels = data(name)
    plt.figure(figsize=(8, 7))
    if labels:
        options.update(xticklabels=labels, yticklabels=labels)
    seaborn.heatmap(values, square=True, **options)
    plt.title(title), plt.xlabel("key"), plt.ylabel("query"), plt.tight_layout()
    save(name)


for language in ["latin", "chinese"]:
    for count in [12, 38, 66, 200]:
        name = f"{language}{count}"
        heatmap(name, "Layer 3, head 2", cmap="viridis", mask=data(name)[0] == 0)
heatmap("weights300", "300 × 300 weights", cmap="viridis", mask=data("weights300")[0] == 0)
heatmap("root300", "300 × 300 weights", cmap="viridis", mask=data("root300")[0] == 0,
        norm=matplotlib.colors.PowerNorm(0.5))
heatmap("signed", "Learned bias", cmap="RdBu_r", center=0)

plt.figure(figsize=(8, 7))
plt.imshow(data("mask50")[0], cmap="gray")
plt.title("Sparse mask"), plt.xlabel("key"), plt.ylabel("query"), plt.tight_layout()
save("mask50")

plt.figure(figsize=(8, 5))
lines, names = data("series20")
for line, name in zip(lines, names):
    plt.plot(range(1, 21), line, marker="o", label=name)
plt.title("Attention over time"), plt.xlabel("epoch"), plt.ylabel("weight"), plt.grid(True), plt.legend()
plt.tight_layout()
save("series20")

bars, names = data("bars")
figure, left = plt.subplots(figsize=(8, 5))
for i in range(3):
    left.bar(np.arange(4) + (i - 1) * 0.27, bars[i], 0.27, label=names[i])
left.set_xticks(range(4), ["causal", "window of 8", "sparse", "prefix of 16"])
left.set_title("Accuracy and time"), left.set_ylabel("accuracy"), left.set_ylim(0, 1)
right = left.twinx()
right.plot(range(4), bars[3], marker="o", color="black", label="time")
right.set_ylabel("milliseconds"), right.set_ylim(0)
left.legend(), right.legend(), plt.tight_layout()
save("bars")


def screenshot(name, html):
    page = work / f"{name}.html"
    page.write_text(html)
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=700,940",
                    f"--screenshot={folder}/{name}.png", page.as_uri()], check=True, stderr=subprocess.DEVNULL)


if len(sys.argv) > 1:
    page = (work / "latin38.html").read_text()
    screenshot("lines38-heed", page.replace("</script></body>", "lines=true;enlarge(0,0)</script></body>"))
    given = pathlib.Path(sys.argv[1])
    weights, labels = data("latin38")
    attention = {"name": None, "attn": [[weights.tolist()]], "left_text": labels, "right_text": labels}
    parameters = {"attention": [attention], "default_filter": "0", "root_div_id": "view", "layer": 3,
                  "heads": [0], "include_layers": [3]}
    script = (given / "head_view.js").read_text().replace("PYTHON_PARAMS", json.dumps(parameters))
    loader = "const require={config(){}},requirejs=(names,run)=>run(jQuery,d3);"  # in place of require.js
    scripts = [(given / "jquery.js").read_text(), (given / "d3.js").read_text(), loader, script]
    screenshot("lines38-bertviz",
               '<meta charset="utf-8"><body><div id="view" style="font-family:Helvetica,Arial,sans-serif">'
               'Layer: <select id="layer"></select><div id="vis"></div></div>'
               + "".join(f"<script>{text}</script>" for text in scripts))
shutil.rmtree(work)
