#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training beside PyTorch doing the same work, in turn.

article  the decoder of examples/train_sequence: vocabulary 10, 64 wide, 8 heads, sequences of 10
         tokens, batch 32, Adam, a DataLoader of 1000 sequences; tokens a second of whole epochs
laptop   the GPT of examples/train_char: 4 blocks, 4 heads, 128 wide, 64 letters, batch 12, AdamW,
         clipping; tokens a second of the steps alone. With --steps 2000 the losses are comparable.
gpt      the same program with nanoGPT's larger setting: 6 blocks, 6 heads, 384 wide, 256 letters,
         dropout 0.2 of embeddings, attention weights and residual sums. Its batch is 64 there;
         a round here is --gpt-steps steps of --gpt-batch windows.

The GPTs also train in mixed precision: ours with --products bfloat16, PyTorch's under autocast.
Our programs run as processes and tell their own speed; PyTorch's loop runs here, between them.

  cmake --build build/release --target train_sequence train_char
  bench/peers/training.py build/release/examples [--threads 1 2] [--rounds 3] [--steps 100]
"""
import argparse
import math
import pathlib
import re
import statistics
import subprocess
import time
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

TEXT = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/data/shakespeare.txt"


class Attention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           dropout_p=self.dropout if self.training else 0.0)
        y = self.out(y.transpose(1, 2).reshape(batch, length, dim))
        return F.dropout(y, self.dropout, self.training)


class SimpleDecoder(nn.Module):
    """The article's: explicit scores and mask."""

    def __init__(self, vocabulary, dim=64, heads=8):
        super().__init__()
        self.embedding, self.heads = nn.Embedding(vocabulary, dim), heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.head = nn.Linear(dim, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        batch, length, dim = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        scores = (q @ k.transpose(-2, -1)) / (dim // self.heads)**0.5
        mask = torch.triu(torch.ones(length, length), diagonal=1).bool()
        weights = torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1)
        return self.head(self.out((weights @ v).transpose(1, 2).reshape(batch, length, dim)))


class Sequences(Dataset):
    def __init__(self, count):
        self.data = torch.randint(0, 10, (count, 11))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index, :-1], self.data[index, 1:]


def article(threads, epochs=20):
    torch.set_num_threads(threads)
    loader = DataLoader(Sequences(1000), batch_size=32, shuffle=True)
    model, criterion = SimpleDecoder(10), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for _ in range(epochs):
        total = 0
        for tokens, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens).view(-1, 10), targets.view(-1))
            loss.backward()
            optimizer.step()
            total += loss.item()
    return epochs * 1000 * 10 / (time.perf_counter() - begin), total / len(loader)


class Gpt(nn.Module):
    def __init__(self, vocabulary, dim, heads, blocks, length, dropout):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, dim), nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(dim), Attention(dim, heads, dropout), nn.LayerNorm(dim),
                           nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"),
                                         nn.Linear(4 * dim, dim), nn.Dropout(dropout))])
            for _ in range(blocks))
        self.norm, self.dropout = nn.LayerNorm(dim), nn.Dropout(dropout)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                residual = name.endswith(("out.weight", "3.2.weight"))
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * blocks) if residual else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens):
        x = self.dropout(self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1])))
        for norm1, attention, norm2, feed_forward in self.blocks:
            x = x + attention(norm1(x))
            x = x + feed_forward(norm2(x))
        return F.linear(self.norm(x), self.tokens.weight)


class Setting(NamedTuple):
    batch: int
    length: int
    dim: int
    heads: int
    blocks: int
    dropout: float


LAPTOP = Setting(batch=12, length=64, dim=128, heads=4, blocks=4, dropout=0.0)
GPT = Setting(batch=64, length=256, dim=384, heads=6, blocks=6, dropout=0.2)


def gpt(setting, threads, steps, mixed):
    torch.set_num_threads(threads)
    text = TEXT.read_text()
    number = {letter: i for i, letter in enumerate(sorted(set(text)))}
    data = torch.tensor([number[letter] for letter in text])
    cut = len(data) * 9 // 10
    batch, length = setting.batch, setting.length
    model = Gpt(len(number), setting.dim, setting.heads, setting.blocks, length, setting.dropout)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": others, "weight_decay": 0}], betas=(0.9, 0.99))

    def windows(part):
        at = torch.randint(len(part) - length, (batch,))
        rows = torch.stack([part[i:i + length + 1] for i in at])
        return rows[:, :-1], rows[:, 1:]

    def loss_of(part):
        tokens, targets = windows(part)
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    warm, seconds = min(100, steps // 10), 0.0
    for step in range(steps):
        begin = time.perf_counter()
        share = (step - warm) / (steps - warm)
        rate = (1e-3 * (step + 1) / (warm + 1) if step < warm else
                1e-4 + 9e-4 * (1 + math.cos(math.pi * share)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss_of(data[:cut]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds += time.perf_counter() - begin
    model.eval()
    with torch.no_grad():
        validation = statistics.mean(loss_of(data[cut:]).item() for _ in range(20))
    return steps * batch * length / seconds, validation


def ours(program, arguments, pattern):
    text = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          check=True).stdout
    found = re.findall(pattern, text)
    return float(found[0][-1] if isinstance(found[0], tuple) else found[0]), text


def measured(case, folder, threads, options):
    """Tokens a second of both libraries by kind, "float" and for the GPTs "mixed", and the losses."""
    if case == "article":
        mine, _ = ours(folder / "train_sequence", ["--threads", threads],
                       r"([\d.]+) tokens a second")
        theirs, loss = article(threads)
        return {"float": (mine, theirs)}, f"{loss:.3f}"
    setting, steps = LAPTOP, options.steps
    if case == "gpt":
        setting, steps = GPT._replace(batch=options.gpt_batch), options.gpt_steps
    arguments = ["--threads", threads, "--steps", steps, "--sample", 1, "--validations", 1]
    for name, value in setting._asdict().items():
        arguments += [f"--{'layers' if name == 'blocks' else name}", value]
    rates, losses = {}, []
    for kind, products in (("float", "exact"), ("mixed", "bfloat16")):
        mine, text = ours(folder / "train_char", [*arguments, "--products", products],
                          rf"step +{steps} .* ([\d.]+) tokens/s")
        theirs, loss = gpt(setting, threads, steps, kind == "mixed")
        rates[kind] = mine, theirs
        losses.append(f"{kind} {loss:.3f}, ours {re.findall(r'validation ([0-9.]+)', text)[-1]}")
    return rates, "; ".join(losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where our examples are")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100, help="of the laptop's setting")
    parser.add_argument("--gpt-steps", type=int, default=4)
    parser.add_argument("--gpt-batch", type=int, default=8)
    parser.add_argument("--case", choices=["all", "article", "laptop", "gpt"], default="all")
    options = parser.parse_args()
    print(f"PyTorch {torch.__version__}")
    for threads in options.threads:
        for case in ("article", "laptop", "gpt"):
            if options.case not in ("all", case):
                continue
            rounds = [measured(case, options.folder, threads, options)
                      for _ in range(options.rounds)]
            print(f"{case}, {threads} threads (loss {rounds[-1][1]})")
            for kind, against in (("float", "float"), ("mixed", "float"), ("mixed", "mixed")):
                if kind not in rounds[0][0]:
                    continue
                pairs = [(rates[kind][0], rates[against][1]) for rates, _ in rounds]
                ratio = statistics.median(a / b for a, b in pairs)
                mine, theirs = (statistics.median(side) for side in zip(*pairs))
                print(f"  ours {kind} {mine:9.0f} tokens/s  PyTorch {against} {theirs:9.0f}  "
                      f"ratio {ratio:5.2f}", flush=True)


if __name__ == "__main__":
    main()
