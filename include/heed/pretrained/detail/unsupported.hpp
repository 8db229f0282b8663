// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/pretrained/model_config.hpp>

namespace heed::detail {

/// An entry that changes what a model computes, and the two values with which it does not.
struct NeutralEntry {
  std::string_view key;
  double neutral, also;
};

/// In files of many architectures, and in a Llama's as far as converters write them.
inline constexpr NeutralEntry neutral_config_entries[] = {
    {"alibi", 0, 0},
    {"add_cross_attention", 0, 0},
    {"attention_bias", 0, 0},
    {"attn_logit_softcapping", 0, 0},
    {"embedding_multiplier", 1, 1},
    {"final_logit_softcapping", 0, 0},
    {"logit_scale", 1, 1},
    {"logits_scaling", 1, 1},
    {"mlp_bias", 0, 0},
    {"n_routed_experts", 0, 0},
    {"num_experts", 0, 0},
    {"num_local_experts", 0, 0},
    {"partial_rotary_factor", 1, 1},
    {"qk_layernorm", 0, 0},
    {"residual_multiplier", 1, 1},
    {"rope_interleave", 0, 0},
    {"rope_parameters.attention_factor", 1, 1},
    {"rope_parameters.factor", 1, 1},
    {"rope_parameters.partial_rotary_factor", 1, 1},
    {"rope_scaling.attention_factor", 1, 1},
    {"rope_scaling.factor", 1, 1},
    {"rotary_pct", 1, 1},
    {"scale_depth", 1, 1},
    {"scale_emb", 1, 1},
    {"use_bidirectional_attention", 0, 0},
    {"use_parallel_residual", 0, 0},
    {"use_qk_norm", 0, 0},
};
/// Entries that change it whatever their value.
inline constexpr std::string_view unsupported_config_entries[] = {
    "attention_multiplier",
    "clip_qkv",
    "no_rope_layers",
    "quantization_config.quant_method",
    "query_pre_attn_scalar",
    "rope_parameters.full_attention.rope_type",
    "rope_parameters.sliding_attention.rope_type"};
inline constexpr NeutralEntry neutral_llama_fields[] = {
    {"attention.causal", 1, 1},
    {"attention.clamp_kqv", 0, 0},
    {"attention.max_alibi_bias", 0, 0},
    {"attn_logit_softcapping", 0, 0},
    {"embedding_scale", 0, 1},
    {"expert_count", 0, 0},
    {"expert_shared_count", 0, 0},
    {"final_logit_softcapping", 0, 0},
    {"leading_dense_block_count", 0, 0},
    {"logit_scale", 0, 1},
    {"residual_scale", 0, 1},
    {"rope.scale_linear", 0, 1},
    {"rope.scaling.attn_factor", 1, 1},
    {"rope.scaling.factor", 0, 1},
    {"use_parallel_residual", 0, 0},
};
/// Fields that are read, or that change nothing where the others are as they must be.
inline constexpr std::string_view known_llama_fields[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.scale",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_feed_forward_length",
    "expert_used_count",
    "feed_forward_length",
    "pooling_type",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
};

/// Refuses a config.json with an entry that changes what a model computes in a way that heed's
/// models have not.
inline void refuse_unsupported(const ModelConfig& config) {
  for (const NeutralEntry& entry : neutral_config_entries) {
    const std::string key(entry.key);
    if (!config.has(key)) continue;
    const double value = config.number(key);
    if (value != entry.neutral && value != entry.also) {
      config.fail_at(key, "is ", value, ", expected ", entry.neutral);
    }
  }
  for (const std::string_view entry : unsupported_config_entries) {
    const std::string key(entry);
    if (config.has(key)) config.fail_at(key, "is given, which heed's models have not");
  }
  if (config.has("layer_types") && !config.is_list_of("layer_types", "full_attention")) {
    config.fail_at("layer_types", "names others than full_attention");
  }
}

/// The number in a field, of whatever type; a bool is 0 or 1.
inline double number_in(const Gguf& file, const GgufField& field) {
  if (field.is_array || width_of(field.type) == 0) file.fail_at(field, "is not a number");
  return visit_number(field.type, field.data, [](auto x) { return static_cast<double>(x); });
}

/// Refuses a GGUF file with a field of the architecture `llama` that changes what the model
/// computes in a way that heed's Llama has not, and fields of it that heed does not know, as
/// these might.
inline void refuse_unsupported_llama(const Gguf& file) {
  constexpr std::string_view prefix = "llama.";
  for (const GgufField& field : file.fields()) {
    if (!field.key.starts_with(prefix)) continue;
    const std::string_view key = field.key.substr(prefix.size());
    const auto entry =
        std::find_if(std::begin(neutral_llama_fields), std::end(neutral_llama_fields),
                     [&](const NeutralEntry& x) { return x.key == key; });
    if (entry != std::end(neutral_llama_fields)) {
      const double value = number_in(file, field);
      if (value == entry->neutral || value == entry->also) continue;
      file.fail_at(field, "is ", value, ", expected ", entry->also);
    }
    if (std::find(std::begin(known_llama_fields), std::end(known_llama_fields), key) ==
        std::end(known_llama_fields)) {
      file.fail_at(field, "is not a field that heed knows of a Llama");
    }
  }
}

/// Refuses a GGUF Llama whose attention is not over the whole context, or scaled otherwise than by
/// 1 / sqrt(head_dim), or whose values are of another length than its keys.
inline void check_llama_attention(const Gguf& file, Index max_length, Index head_dim) {
  const auto check = [&](const char* key, auto accepts, const auto&... expected) {
    if (!file.has_field(key)) return;
    const GgufField& field = file.field(key);
    const double value = number_in(file, field);
    if (!accepts(value)) file.fail_at(field, "is ", value, ", expected ", expected...);
  };
  check(
      "llama.attention.sliding_window",
      [&](double window) { return window == 0 || window >= static_cast<double>(max_length); },
      "0, or the context length ", max_length, " or more");
  const double usual = 1 / std::sqrt(static_cast<double>(head_dim));
  check(
      "llama.attention.scale",
      [&](double scale) { return scale == 0 || std::abs(scale - usual) <= 1e-6 * usual; }, usual);
  check(
      "llama.attention.value_length",
      [&](double length) { return length == static_cast<double>(head_dim); }, head_dim);
}

}  // namespace heed::detail
