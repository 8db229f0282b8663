#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what heed's models from files are compared with, to tests/golden/pretrained.

Small random GPT-2, Llama, Qwen2, Qwen3 and BERT models as transformers saves them, with their logits
or hidden states, the logits of one more Llama with several kinds of rotary positions, and greedy
texts of the Qwens, the first of which has its weights in several files; and, given the folder that
tools/models.sh fills, sentence embeddings of all-MiniLM-L6-v2 and greedy continuations of
SmolLM2-135M-Instruct on its dequantized weights.

  pip install torch transformers numpy gguf
  tools/make_pretrained_goldens.py [FOLDER]
"""
import json
import os
import pathlib
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from transformers import (AutoModel, AutoModelForCausalLM, AutoTokenizer, BertConfig, BertModel,
                          GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM)

golden = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/pretrained"
golden.mkdir(parents=True, exist_ok=True)
torch.manual_seed(1)

SENTENCES = [
    "The cat sat on the mat.",
    "A cat is sitting on a rug.",
    "Attention is all you need.",
    "Transformers weigh every token against every other one, which is why long texts cost so much more"
    " than short ones.",
    "Berlin",
    "naïve café, 東京 and 😀!",
    "def f(x): return x ** 2",
    "Stock prices fell sharply on Monday as investors worried about inflation.",
]
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chat(text):
    return (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n"
            "<|im_start|>assistant\n")


PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a village by the sea, there lived",
    "Photosynthesis is the process by which",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "#include <vector>\n\nint sum(const std::vector<int>& values) {\n",
    chat("What is the capital of Italy?"),
    chat("Write a short poem about rain."),
    chat("Explain in one sentence what a hash table is."),
    "El perro duerme en el jardín porque",
    "2 + 2 = 4, 3 + 3 = 6, 4 + 4 = ",
]


def scatter(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def save(name, model, tokens, out, max_shard_size="1GB", **more):
    folder = golden / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    (folder / "generation_config.json").unlink(missing_ok=True)
    np.save(folder / "tokens.npy", tokens.numpy())
    np.save(folder / "out.npy", out.numpy())
    for key, value in more.items():
        np.save(folder / f"{key}.npy", value.numpy())


@torch.no_grad()
def small():
    tokens = torch.randint(0, 29, (2, 11))
    model = scatter(GPT2LMHeadModel(GPT2Config(
        vocab_size=29, n_positions=13, n_embd=12, n_layer=2, n_head=3)))
    save("gpt2", model, tokens, model(tokens).logits)
    model = scatter(LlamaForCausalLM(LlamaConfig(
        vocab_size=29, hidden_size=12, intermediate_size=19, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, head_dim=4, max_position_embeddings=64,
        rms_norm_eps=1e-5, rope_theta=50000.0)))
    save("llama", model, tokens, model(tokens).logits)
    model = scatter(BertModel(BertConfig(
        vocab_size=29, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=17, max_position_embeddings=13)))
    mask = torch.ones_like(tokens)
    mask[1, 7:] = 0
    segments = torch.tensor([[0] * 4 + [1] * 7, [0] * 5 + [1] * 6])
    out = model(tokens, attention_mask=mask, token_type_ids=segments).last_hidden_state
    save("bert", model, tokens, out * mask[:, :, None], segments=segments)


@torch.no_grad()
def rotary():
    """One Llama, and what other configs make of its weights: a folder each, without weights."""
    sizes = dict(vocab_size=29, hidden_size=12, intermediate_size=19, num_hidden_layers=2,
                 num_attention_heads=3, num_key_value_heads=1, head_dim=8,
                 max_position_embeddings=256)
    tokens = torch.randint(0, 29, (2, 40))
    # Of four frequencies, llama3 keeps the first, divides the last, and changes the second.
    base = dict(rope_theta=100.0)
    model = scatter(LlamaForCausalLM(LlamaConfig(**sizes, rope_parameters=base)))
    save("rotary", model, tokens, model(tokens).logits)
    llama3 = dict(base, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                  original_max_position_embeddings=64)
    for name, kind, config in [
            ("linear", LlamaForCausalLM,
             LlamaConfig(**sizes, rope_parameters=dict(base, rope_type="linear", factor=4.0))),
            ("llama3", LlamaForCausalLM, LlamaConfig(**sizes, rope_parameters=llama3)),
            ("mistral", MistralForCausalLM,
             MistralConfig(**sizes, rope_parameters=base, sliding_window=None)),
            ("window", MistralForCausalLM,
             MistralConfig(**sizes, rope_parameters=base, sliding_window=9))]:
        other = kind(config).eval()
        other.load_state_dict(model.state_dict())
        config.architectures, config.dtype = [kind.__name__], torch.float32
        config.save_pretrained(golden / "rotary" / name)
        np.save(golden / "rotary" / name / "out.npy", other(tokens).logits.numpy())


@torch.no_grad()
def qwen():
    torch.manual_seed(2)
    sizes = dict(vocab_size=29, hidden_size=12, intermediate_size=19, num_hidden_layers=2,
                 max_position_embeddings=64)
    tokens = torch.randint(0, 29, (2, 11))
    for name, shard, model in [
            ("qwen2", "6KB", Qwen2ForCausalLM(Qwen2Config(
                **sizes, num_attention_heads=3, num_key_value_heads=1,
                rope_parameters=dict(rope_theta=50000.0)))),
            ("qwen3", "1GB", Qwen3ForCausalLM(Qwen3Config(
                **sizes, num_attention_heads=6, num_key_value_heads=2, head_dim=4,
                tie_word_embeddings=True)))]:
        model = scatter(model)
        text = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=20,
                              do_sample=False)
        save(name, model, tokens, model(tokens).logits, max_shard_size=shard,
             greedy=text[:, tokens.shape[1]:])


@torch.no_grad()
def minilm(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder / "minilm")
    model = AutoModel.from_pretrained(folder / "minilm").eval()
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][:, :, None].float()
    mean = (hidden * mask).sum(1) / mask.sum(1)  # as sentence-transformers pools for this model
    np.save(golden / "minilm_embeddings.npy", torch.nn.functional.normalize(mean).numpy())
    (golden / "minilm_sentences.json").write_text(json.dumps(SENTENCES, indent=1) + "\n")


@torch.no_grad()
def smollm2(folder, count=32):
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file="smollm2.gguf")
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file="smollm2.gguf",
                                                 dtype=torch.float32).eval()
    prompts, written, logits = [], [], []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
        prompts.append(ids[0].tolist())
        first = ids.shape[1]
        for _ in range(count):  # no stop token, so that every continuation has the same length
            out = model(ids).logits[0, -1]
            ids = torch.cat([ids, out.argmax().reshape(1, 1)], dim=1)
            if ids.shape[1] == first + 1:
                logits.append(out[::64])  # every 64th
        logits.append(out[::64])
        written.append(ids[0, first:].tolist())
        print(repr(tokenizer.decode(written[-1])))
    np.save(golden / "smollm2_logits.npy", torch.stack(logits).numpy())
    text = json.dumps({"prompts": PROMPTS, "tokens": prompts, "continuations": written})
    (golden / "smollm2.json").write_text(text.replace("], [", "],\n[") + "\n")


small()
rotary()
qwen()
if len(sys.argv) > 1:
    minilm(pathlib.Path(sys.argv[1]))
    smollm2(pathlib.Path(sys.argv[1]))
