#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole models beside transformers and llama.cpp, called in turn on the same tokens.

smollm2  SmolLM2-135M from its GGUF file: a prompt of 512 tokens, then 32 tokens behind it; beside
         transformers on the dequantized floats and llama-cpp-python (built from source) on the file
rounded  the same with rounded products
smollm2_bf16  the same with weights and products in bfloat16, beside transformers in bfloat16
laptop   a GPT of 4 blocks, 4 heads, 128 wide, 65 letters (nanoGPT's for a laptop): 48 tokens behind 8
gpt2     GPT-2's small size: 32 tokens behind 64
minilm   all-MiniLM-L6-v2: 32 sentences of 4 to 40 words, padded; vectors of length 1
minilm_bf16  the same with weights and products in bfloat16, beside transformers in bfloat16

All compute with their caches but `PyTorch`, which writes as nanoGPT does: plain modules, the text so
far anew for every token. What comes out is compared where the weights are the same, in bfloat16 with a
tolerance; the other models have random ones. The figure is the median of the ratios of neighboring runs.
llama.cpp is left out where llama-cpp-python is not installed.

  pip install torch transformers gguf accelerate llama-cpp-python && tools/models.sh FOLDER
  cmake --build build/release --target heed_bench_models
  bench/peers/generation.py build/release/bench/libheed_bench_models.so FOLDER [--threads 1 2]
"""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import random
import statistics
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import (AutoModel, AutoModelForCausalLM, AutoTokenizer, GPT2Config,
                          GPT2LMHeadModel)

from sdpa import machine
from training import Gpt

EXACT, ROUNDED, BFLOAT16 = range(3)  # heed_models_c.cpp
KINDS = ["", " rounded", " in bfloat16"]
WORDS = ("the a cat dog house tree runs sleeps quickly under over blue seven attention model river "
         "because therefore music window number little").split()


def load(path):
    library = ctypes.CDLL(path)
    pointer, index = ctypes.c_void_p, ctypes.c_ssize_t
    library.heed_isa.restype = ctypes.c_char_p
    library.heed_open.argtypes = [ctypes.c_char_p, ctypes.c_int]
    library.heed_random_gpt2.argtypes = [index] * 5
    library.heed_open_encoder.argtypes = [ctypes.c_char_p, ctypes.c_int]
    for opener in (library.heed_open, library.heed_random_gpt2, library.heed_open_encoder):
        opener.restype = pointer
    library.heed_close.argtypes = [pointer]
    library.heed_prefill.argtypes = [pointer, pointer, index]
    library.heed_prefill.restype = index
    library.heed_decode.argtypes = [pointer, index, index, pointer]
    library.heed_embed.argtypes = [pointer] * 3 + [index] * 2 + [pointer]
    return library


class Ours:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def threads(self, count):
        self.library.heed_threads(count)

    def prefill(self, tokens):
        array = (ctypes.c_ssize_t * len(tokens))(*tokens)
        return self.library.heed_prefill(self.handle, array, len(tokens))

    def decode(self, token, count):
        written = (ctypes.c_ssize_t * count)()
        self.library.heed_decode(self.handle, token, count, written)
        return list(written)


class Transformers:
    def __init__(self, model):
        self.model = model.eval()

    def threads(self, count):
        torch.set_num_threads(count)

    def call(self, tokens, cache):
        with torch.inference_mode():
            out = self.model(torch.tensor([tokens]), past_key_values=cache, use_cache=True,
                             logits_to_keep=1)
        self.cache = out.past_key_values
        return out.logits[0, -1].argmax().item()

    def prefill(self, tokens):
        return self.call(tokens, None)

    def decode(self, token, count):
        written = []
        for _ in range(count):
            token = self.call([token], self.cache)
            written.append(token)
        return written


class Plain:
    """nanoGPT's way to write."""

    def __init__(self, model):
        self.model = model.eval()

    def threads(self, count):
        torch.set_num_threads(count)

    def next(self):
        with torch.inference_mode():
            return self.model(torch.tensor([self.tokens]))[0, -1].argmax().item()

    def prefill(self, tokens):
        self.tokens = list(tokens)
        return self.next()

    def decode(self, token, count):
        first = len(self.tokens)
        for _ in range(count):
            self.tokens.append(token)
            token = self.next()
        return self.tokens[first + 1:] + [token]


class LlamaCpp:
    def __init__(self, path, threads):
        import llama_cpp
        self.model = llama_cpp.Llama(path, n_ctx=1024, n_batch=512, n_ubatch=512, n_threads=threads,
                                     n_threads_batch=threads, verbose=False)

    def threads(self, count):
        pass

    def prefill(self, tokens):
        self.model.reset()
        self.model.eval(tokens)

    def decode(self, token, count):
        for _ in range(count):  # which tokens does not matter to the time
            self.model.eval([token])


def timed(call):
    time.sleep(0.02)  # what ran before stops spinning
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def compare(case, threads, engines, prompt, count, seconds, same):
    """Rows of prefill and decode: tokens a second of each engine, and theirs / ours in time."""
    times = {name: ([], []) for name in engines}
    for engine in engines.values():
        engine.threads(threads)
        engine.prefill(prompt)
        engine.decode(1, 2)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["heed"][0]) < 3:
        written = {}
        for name, engine in engines.items():
            prefill, _ = timed(lambda: engine.prefill(prompt))
            decode, written[name] = timed(lambda: engine.decode(prompt[0], count))
            times[name][0].append(prefill)
            times[name][1].append(decode)
        if same:
            assert written["heed"] == written["transformers"], "the texts differ"
    rows = []
    for phase, tokens in ((0, len(prompt)), (1, count)):
        row = {"case": f"{case}, {'prompt of' if phase == 0 else 'writing'} {tokens}",
               "threads": threads}
        for name in engines:
            row[name] = tokens / statistics.median(times[name][phase])
            if name != "heed":
                row[f"ratio_{name}"] = statistics.median(
                    b / a for a, b in zip(times["heed"][phase], times[name][phase]))
        rows.append(row)
    return rows


def smollm2(library, folder, threads, seconds, kind):
    path = str(folder / "smollm2.gguf")
    dtype = torch.bfloat16 if kind == BFLOAT16 else torch.float32
    peer = AutoModelForCausalLM.from_pretrained(folder, gguf_file="smollm2.gguf", dtype=dtype)
    engines = {"heed": Ours(library, library.heed_open(path.encode(), kind)),
               "transformers": Transformers(peer)}
    if importlib.util.find_spec("llama_cpp"):
        engines["llama.cpp"] = LlamaCpp(path, threads)
    chooser = random.Random(1)
    prompt = [chooser.randrange(49000) for _ in range(512)]
    rows = compare("SmolLM2-135M" + KINDS[kind], threads, engines, prompt, 32, seconds,
                   same=kind != BFLOAT16)
    library.heed_close(engines["heed"].handle)
    return rows


def gpt2(library, case, threads, seconds, vocabulary, dim, heads, blocks, length, prompt, count):
    peer = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_positions=length, n_embd=dim,
                                      n_head=heads, n_layer=blocks))
    handle = library.heed_random_gpt2(vocabulary, dim, heads, blocks, length)
    engines = {"heed": Ours(library, handle), "transformers": Transformers(peer),
               "PyTorch": Plain(Gpt(vocabulary, dim, heads, blocks, length, 0.0))}
    rows = compare(case, threads, engines, [i % vocabulary for i in range(prompt)], count, seconds,
                   same=False)
    library.heed_close(handle)
    return rows


def minilm(library, folder, threads, seconds, kind):
    chooser = random.Random(1)
    sentences = [" ".join(chooser.choices(WORDS, k=chooser.randint(4, 40))) for _ in range(32)]
    tokenizer = AutoTokenizer.from_pretrained(folder / "minilm")
    dtype, limit = (torch.bfloat16, 0.05) if kind == BFLOAT16 else (torch.float32, 1e-5)
    peer = AutoModel.from_pretrained(folder / "minilm", dtype=dtype).eval()
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    tokens, mask = batch["input_ids"].contiguous(), batch["attention_mask"]
    lengths = mask.sum(1).contiguous()
    out = torch.empty(32, 384)
    encoder = library.heed_open_encoder(str(folder / "minilm").encode(), kind)

    def ours():
        library.heed_embed(encoder, tokens.data_ptr(), lengths.data_ptr(), 32, tokens.shape[1],
                           out.data_ptr())

    def theirs():
        with torch.inference_mode():
            hidden = peer(**batch).last_hidden_state
            weights = mask[:, :, None].to(dtype)
            return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1))

    library.heed_threads(threads)
    torch.set_num_threads(threads)
    ours()
    error = (out - theirs()).abs().max().item()
    assert error < limit, f"vectors differ by {error}"
    times = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for call, into in zip((ours, theirs), times):
            into.append(timed(call)[0])
    middle = [statistics.median(values) for values in times]
    return [{"case": f"MiniLM{KINDS[kind]}, 32 sentences", "threads": threads, "heed": 32 / middle[0],
             "transformers": 32 / middle[1],
             "ratio_transformers": statistics.median(b / a for a, b in zip(*times))}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cases", nargs="+",
                        default=["smollm2", "rounded", "smollm2_bf16", "laptop", "gpt2", "minilm",
                                 "minilm_bf16"])
    parser.add_argument("--seconds", type=float, default=8.0, help="per case")
    parser.add_argument("--json")
    options = parser.parse_args()
    library = load(options.library)
    cases = {
        "smollm2": lambda t, s: smollm2(library, options.folder, t, s, EXACT),
        "rounded": lambda t, s: smollm2(library, options.folder, t, s, ROUNDED),
        "smollm2_bf16": lambda t, s: smollm2(library, options.folder, t, s, BFLOAT16),
        "laptop": lambda t, s: gpt2(library, "laptop GPT", t, s, 65, 128, 4, 4, 64, 8, 48),
        "gpt2": lambda t, s: gpt2(library, "GPT-2 small", t, s, 50257, 768, 12, 12, 1024, 64, 32),
        "minilm": lambda t, s: minilm(library, options.folder, t, s, EXACT),
        "minilm_bf16": lambda t, s: minilm(library, options.folder, t, s, BFLOAT16),
    }
    rows = []
    for threads in options.threads:
        for case in options.cases:
            for row in cases[case](threads, options.seconds):
                rows.append(row)
                peers = "; ".join(f"{name} {row[name]:.1f}, {row[f'ratio_{name}']:.2f} times"
                                  for name in ("transformers", "llama.cpp", "PyTorch") if name in row)
                print(f"{threads} thr  {row['case']:32s} heed {row['heed']:8.1f} a second; {peers}",
                      flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine(), "isa": library.heed_isa().decode(), "rows": rows},
                      file, indent=1)


if __name__ == "__main__":
    main()
