// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <heed/core/index.hpp>

namespace heed {

/// A layer with weights as we and as a published model name it; `*` is the number of the block. The
/// last part, `weight` or `bias`, is the same in both.
struct WeightName {
  std::string_view ours, theirs;
  bool transposed = false;  // their matrices are (inputs, outputs)
};

/// The names of an architecture's weights.
struct WeightNames {
  std::span<const WeightName> layers;
  /// What a file may hold beside, and heed has no use for; `*` is a number here too.
  std::span<const std::string_view> left_out;
  /// What may stand before all of their names, as where the model is part of a larger one.
  std::string_view prefix;
};

namespace detail {

inline constexpr WeightName bert_layers[] = {
    {"embedding", "embeddings.word_embeddings"},
    {"positions", "embeddings.position_embeddings"},
    {"segments", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"blocks.*.attention.query", "encoder.layer.*.attention.self.query"},
    {"blocks.*.attention.key", "encoder.layer.*.attention.self.key"},
    {"blocks.*.attention.value", "encoder.layer.*.attention.self.value"},
    {"blocks.*.attention.out", "encoder.layer.*.attention.output.dense"},
    {"blocks.*.attention_norm", "encoder.layer.*.attention.output.LayerNorm"},
    {"blocks.*.feed_forward.up", "encoder.layer.*.intermediate.dense"},
    {"blocks.*.feed_forward.down", "encoder.layer.*.output.dense"},
    {"blocks.*.feed_forward_norm", "encoder.layer.*.output.LayerNorm"},
};
inline constexpr std::string_view bert_left_out[] = {
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.bias",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
};

inline constexpr WeightName gpt2_layers[] = {
    {"embedding", "wte"},
    {"positions", "wpe"},
    {"blocks.*.attention_norm", "h.*.ln_1"},
    {"blocks.*.attention.query_key_value", "h.*.attn.c_attn", true},
    {"blocks.*.attention.out", "h.*.attn.c_proj", true},
    {"blocks.*.feed_forward_norm", "h.*.ln_2"},
    {"blocks.*.feed_forward.up", "h.*.mlp.c_fc", true},
    {"blocks.*.feed_forward.down", "h.*.mlp.c_proj", true},
    {"norm", "ln_f"},
};
/// Masks as tensors, and the head, which is the embedding once more.
inline constexpr std::string_view gpt2_left_out[] = {"h.*.attn.bias", "h.*.attn.masked_bias",
                                                     "lm_head.weight"};

inline constexpr WeightName llama_layers[] = {
    {"embedding", "model.embed_tokens"},
    {"blocks.*.attention_norm", "model.layers.*.input_layernorm"},
    {"blocks.*.attention.query", "model.layers.*.self_attn.q_proj"},
    {"blocks.*.attention.key", "model.layers.*.self_attn.k_proj"},
    {"blocks.*.attention.value", "model.layers.*.self_attn.v_proj"},
    {"blocks.*.attention.out", "model.layers.*.self_attn.o_proj"},
    {"blocks.*.feed_forward_norm", "model.layers.*.post_attention_layernorm"},
    {"blocks.*.feed_forward.gate", "model.layers.*.mlp.gate_proj"},
    {"blocks.*.feed_forward.up", "model.layers.*.mlp.up_proj"},
    {"blocks.*.feed_forward.down", "model.layers.*.mlp.down_proj"},
    {"norm", "model.norm"},
    {"head", "lm_head"},
};
inline constexpr std::string_view llama_left_out[] = {
    "model.layers.*.self_attn.rotary_emb.inv_freq"};
/// Where the head is tied, a second copy of the embedding may stand in the file.
inline constexpr std::string_view tied_llama_left_out[] = {
    "model.layers.*.self_attn.rotary_emb.inv_freq", "lm_head.weight"};

inline constexpr WeightName gguf_llama_layers[] = {
    {"embedding", "token_embd"},
    {"blocks.*.attention_norm", "blk.*.attn_norm"},
    {"blocks.*.attention.query", "blk.*.attn_q"},
    {"blocks.*.attention.key", "blk.*.attn_k"},
    {"blocks.*.attention.value", "blk.*.attn_v"},
    {"blocks.*.attention.out", "blk.*.attn_output"},
    {"blocks.*.feed_forward_norm", "blk.*.ffn_norm"},
    {"blocks.*.feed_forward.gate", "blk.*.ffn_gate"},
    {"blocks.*.feed_forward.up", "blk.*.ffn_up"},
    {"blocks.*.feed_forward.down", "blk.*.ffn_down"},
    {"norm", "output_norm"},
    {"head", "output"},
};

/// A name with its first number between dots as `*`, and that number.
struct NumberedName {
  std::string pattern, number;
};
inline NumberedName numbered(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    std::size_t end = dot + 1;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == dot + 1 || end == name.size() || name[end] != '.') continue;
    return {std::string(name.substr(0, dot + 1)) + "*" + std::string(name.substr(end)),
            std::string(name.substr(dot + 1, end - dot - 1))};
  }
  return {std::string(name), ""};
}

}  // namespace detail

inline constexpr WeightNames bert_names{detail::bert_layers, detail::bert_left_out, "bert."};
inline constexpr WeightNames gpt2_names{detail::gpt2_layers, detail::gpt2_left_out, "transformer."};
inline constexpr WeightNames llama_names{detail::llama_layers, detail::llama_left_out, ""};
inline constexpr WeightNames tied_llama_names{detail::llama_layers, detail::tied_llama_left_out,
                                              ""};
inline constexpr WeightNames gguf_llama_names{detail::gguf_llama_layers, {}, ""};

}  // namespace heed
