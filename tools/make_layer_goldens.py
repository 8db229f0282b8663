#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/layers: transformer blocks as PyTorch and transformers compute them in float64.

One safetensors file per case. `input` (and `memory`) and the weights, under heed's names, are numbers
that half precision holds exactly, so that float32 and float64 readers see the same; `output` and, for
a gradient `grad_output`, the gradients of everything as `grad.NAME` are float64. Masks are written
here, independently of heed's. The C++ side is tests/layers/torch_golden_test.cpp.

  pip install torch transformers safetensors numpy
  tools/make_layer_goldens.py [FOLDER]
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import GPT2Config, LlamaConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                      pathlib.Path(__file__).resolve().parent.parent / "tests/golden/layers")
folder.mkdir(parents=True, exist_ok=True)
torch.manual_seed(20261121)
torch.set_default_dtype(torch.float64)


def normal(*shape):
    """Normal numbers that half precision holds exactly."""
    return torch.randn(*shape).half().double()


def write(name, module, names, inputs, call):
    """names: heed's name → function of the module's parameters (or of their gradients), by name."""
    with torch.no_grad():
        for key, parameter in module.named_parameters():
            start = 1.0 if "norm" in key and key.endswith("weight") or "ln_" in key and \
                key.endswith("weight") else 0.0
            parameter.copy_((normal(*parameter.shape) * 0.25 + start).half())
    for tensor in inputs.values():
        tensor.requires_grad_()
    output = call(**inputs)
    grad_output = normal(*output.shape)
    output.backward(grad_output)
    parameters = dict(module.named_parameters())
    gradients = {key: parameter.grad for key, parameter in parameters.items()}
    tensors = {"output": output, "grad_output": grad_output.half()}
    for key, tensor in inputs.items():
        tensors[key] = tensor.half()
        tensors["grad." + key] = tensor.grad
    for key, take in names.items():
        tensors[key] = take(parameters).half()
        assert (tensors[key].double() == take(parameters)).all(), key
        tensors["grad." + key] = take(gradients)
    path = folder / f"{name}.safetensors"
    save_file({key: tensor.detach().contiguous() for key, tensor in tensors.items()}, path)
    path.chmod(0o644)


def both(ours, theirs):
    return {f"{ours}.{part}": (lambda p, key=f"{theirs}.{part}": p[key])
            for part in ("weight", "bias")}


def fused(ours, theirs):
    return {f"{ours}.query_key_value.{part}":
            (lambda p, key=f"{theirs}.in_proj_{part}": p[key]) for part in ("weight", "bias")}


def split(ours, theirs):
    return {f"{ours}.{which}.{part}":
            (lambda p, key=f"{theirs}.in_proj_{part}", i=i: p[key].chunk(3)[i])
            for i, which in enumerate(("query", "key", "value")) for part in ("weight", "bias")}


def padding(lengths, tokens):
    """True where PyTorch is to ignore a key."""
    return torch.arange(tokens)[None, :] >= torch.tensor(lengths)[:, None]


def encoder(name, activation, norm_first):
    layer = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, activation=activation,
                                       batch_first=True, norm_first=norm_first)
    ignored = padding([5, 3], 5)
    names = {**both("attention_norm", "norm1"), **fused("attention", "self_attn"),
             **both("attention.out", "self_attn.out_proj"), **both("feed_forward_norm", "norm2"),
             **both("feed_forward.up", "linear1"), **both("feed_forward.down", "linear2")}
    write(name, layer, names, {"input": normal(2, 5, 12)},
          lambda input: layer(input, src_key_padding_mask=ignored))


def decoder():
    layer = nn.TransformerDecoderLayer(12, 3, 20, dropout=0.0, activation="relu", batch_first=True)
    ignored = padding([6, 2], 6)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    names = {**both("attention_norm", "norm1"), **split("attention", "self_attn"),
             **both("attention.out", "self_attn.out_proj"), **both("cross_attention_norm", "norm2"),
             **split("cross_attention", "multihead_attn"),
             **both("cross_attention.out", "multihead_attn.out_proj"),
             **both("feed_forward_norm", "norm3"), **both("feed_forward.up", "linear1"),
             **both("feed_forward.down", "linear2")}
    write("decoder", layer, names, {"input": normal(2, 4, 12), "memory": normal(2, 6, 12)},
          lambda input, memory: layer(input, memory, tgt_mask=future,
                                      memory_key_padding_mask=ignored))


def causal(tokens):
    return torch.zeros(tokens, tokens).masked_fill(
        torch.ones(tokens, tokens, dtype=torch.bool).triu(1), -torch.inf)[None, None]


def first(result):
    return result[0] if isinstance(result, tuple) else result


def gpt():
    config = GPT2Config(n_embd=12, n_head=3, n_inner=20, attn_pdrop=0, resid_pdrop=0,
                        attn_implementation="eager")
    block = GPT2Block(config, layer_idx=0).double()

    def turned(ours, theirs):  # transformers keeps GPT-2's weights as (in, out)
        return {f"{ours}.weight": lambda p: p[f"{theirs}.weight"].T,
                f"{ours}.bias": lambda p: p[f"{theirs}.bias"]}

    names = {**both("attention_norm", "ln_1"), **turned("attention.query_key_value", "attn.c_attn"),
             **turned("attention.out", "attn.c_proj"), **both("feed_forward_norm", "ln_2"),
             **turned("feed_forward.up", "mlp.c_fc"), **turned("feed_forward.down", "mlp.c_proj")}
    write("gpt", block, names, {"input": normal(2, 5, 12)},
          lambda input: first(block(input, attention_mask=causal(5))))


def llama():
    config = LlamaConfig(hidden_size=12, num_attention_heads=6, num_key_value_heads=2, head_dim=4,
                         intermediate_size=20, rms_norm_eps=1e-5, attn_implementation="sdpa")
    block = LlamaDecoderLayer(config, layer_idx=0).double()
    # transformers' own norm computes in float32 whatever the type.
    block.input_layernorm = nn.RMSNorm(12, eps=1e-5)
    block.post_attention_layernorm = nn.RMSNorm(12, eps=1e-5)
    angles = torch.outer(torch.arange(5).double(), 10000 ** (-torch.arange(0, 4, 2) / 4))
    angles = torch.cat((angles, angles), dim=-1)[None]

    def weight(ours, theirs):
        return {f"{ours}.weight": lambda p: p[f"{theirs}.weight"]}

    names = {**weight("attention_norm", "input_layernorm"),
             **weight("attention.query", "self_attn.q_proj"),
             **weight("attention.key", "self_attn.k_proj"),
             **weight("attention.value", "self_attn.v_proj"),
             **weight("attention.out", "self_attn.o_proj"),
             **weight("feed_forward_norm", "post_attention_layernorm"),
             **weight("feed_forward.up", "mlp.up_proj"),
             **weight("feed_forward.gate", "mlp.gate_proj"),
             **weight("feed_forward.down", "mlp.down_proj")}
    write("llama", block, names, {"input": normal(2, 5, 12)},
          lambda input: first(block(input, attention_mask=causal(5),
                                    position_embeddings=(angles.cos(), angles.sin()))))


encoder("encoder_post_norm", "gelu", norm_first=False)
encoder("encoder_pre_norm", "relu", norm_first=True)
decoder()
gpt()
llama()
