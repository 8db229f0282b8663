// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/pretrained/model_config.hpp>, which includes this file.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <heed/core/text.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/file.hpp>

namespace heed {

template <class T>
const T& ModelConfig::get(const std::string& key, const char* wanted) const {
  if (!has(key)) fail("no ", quote(key));
  const auto found = values_.find(key);
  const T* value = std::get_if<T>(&found->second.value);
  if (value == nullptr) fail_at(key, "is not ", wanted);
  return *value;
}

HEED_INLINE ModelConfig::ModelConfig(std::string_view text, std::string name)
    : name_(std::move(name)) {
  if (text.size() > longest_text) {
    fail(text.size(), " bytes, expected at most ", longest_text);
  }
  detail::JsonReader json(text, name_);
  read_object(json, text, "");
  json.end();
}

HEED_INLINE ModelConfig ModelConfig::read(const FilePath& path) {
  const auto bytes = detail::read_at_most(path, longest_text);
  return {std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path};
}

HEED_INLINE Index ModelConfig::integer(const std::string& key) const {
  const double value = get<double>(key, "a number");
  if (!(value >= 0 && value <= 1e12 && value == std::floor(value))) {
    fail_at(key, "is ", value, ", expected a whole number up to 1e12");
  }
  return static_cast<Index>(value);
}

HEED_INLINE double ModelConfig::real(const std::string& key) const {
  return get<double>(key, "a number");
}

HEED_INLINE double ModelConfig::number(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end() || !std::holds_alternative<bool>(found->second.value)) {
    return real(key);
  }
  return std::get<bool>(found->second.value) ? 1 : 0;
}

HEED_INLINE bool ModelConfig::is_list_of(const std::string& key, std::string_view text) const {
  const std::string& list = get<List>(key, "a list").text;
  detail::JsonReader json(list, name_);
  bool all = true;
  json.array([&] {
    const bool same = json.peek() == '"' ? json.string() == text : (json.skip(), false);
    all = all && same;
  });
  return all;
}

HEED_INLINE std::string ModelConfig::text(const std::string& key,
                                          const std::string& otherwise) const {
  return has(key) ? get<std::string>(key, "text") : otherwise;
}

HEED_INLINE bool ModelConfig::flag(const std::string& key, bool otherwise) const {
  return has(key) ? get<bool>(key, "true or false") : otherwise;
}

HEED_INLINE void ModelConfig::expect_kind(const std::string& expected) const {
  const std::string kind = text("model_type", expected);
  if (kind != expected) fail_at("model_type", "is ", quote(kind), ", expected ", expected);
}

HEED_INLINE ActivationKind ModelConfig::activation(const std::string& key,
                                                   const std::string& otherwise) const {
  const std::string kind = text(key, otherwise);
  if (kind == "gelu") return ActivationKind::gelu;
  if (kind == "gelu_new" || kind == "gelu_pytorch_tanh") return ActivationKind::gelu_tanh;
  if (kind == "silu" || kind == "swish") return ActivationKind::silu;
  if (kind == "relu") return ActivationKind::relu;
  fail_at(key, "is ", quote(kind), ", expected gelu, gelu_new, silu or relu");
}

HEED_INLINE void ModelConfig::read_object(detail::JsonReader& json, std::string_view text,
                                          const std::string& outer) {
  json.object([&](const std::string& key) {
    if (outer.size() + key.size() > longest_name) {
      fail(quote(outer.empty() ? key : outer), ": a name of more than ", longest_name, " bytes");
    }
    const std::string name = outer + key;
    const char next = json.peek();
    if (next == '{') return read_object(json, text, name + ".");
    const std::size_t at = json.at();
    decltype(Entry::value) value;
    if (next == 'n') {
      json.skip();
    } else if (next == '[') {
      json.skip();
      value = List{std::string(text.substr(at, json.at() - at))};
    } else if (next == '"') {
      value = json.string();
    } else if (next == 't' || next == 'f') {
      value = json.boolean();
    } else {
      value = json.real();
    }
    if (!values_.emplace(name, Entry{std::move(value), at}).second) {
      fail("byte ", at, ": ", quote(name), " twice");
    }
    if (values_.size() > most_entries) fail("more than ", most_entries, " entries");
  });
}

namespace detail {

HEED_INLINE void check_positive(const std::string& name, const char* what, double value) {
  if (value > 0 && std::isfinite(value)) return;
  throw_file_error(name, ": ", what, " is ", value, ", expected a number above 0");
}

HEED_INLINE void check_rotary(const std::string& name, RotaryOptions options) {
  // The heads are as long as the divisors say: the file may claim any length.
  const auto pairs = static_cast<Index>(options.divisors.size());
  options.dims = std::max(2 * pairs, Index{2});
  made_of_file(name, [&] { return Rotary(options, options.dims); });
}

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
    {"rope.scaling.attn_factor", 1, 1},
    {"use_parallel_residual", 0, 0},
};
/// Fields that are read, or that change nothing while the others have their required values.
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
    "rope.scale_linear",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
};

HEED_INLINE void refuse_unsupported(const ModelConfig& config) {
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

HEED_INLINE double number_in(const Gguf& file, const GgufField& field) {
  if (field.is_array || width_of(field.type) == 0) file.fail_at(field, "is not a number");
  return visit_number(field.type, field.data, [](auto x) { return static_cast<double>(x); });
}

HEED_INLINE std::string llama_kind(const Gguf& file) {
  const char* architecture = "general.architecture";
  const auto kind = file.value<std::string_view>(architecture);
  if (kind != "llama" && kind != "qwen2" && kind != "qwen3") {
    file.fail_at(file.field(architecture), "is ", quote(kind), ", expected llama, qwen2 or qwen3 ",
                 "(bert and gpt2 are read from folders)");
  }
  return std::string(kind);
}

HEED_INLINE void refuse_unsupported_llama(const Gguf& file) {
  const std::string prefix = llama_kind(file) + ".";
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

HEED_INLINE void check_llama_attention(const Gguf& file, Index max_length, Index head_dim) {
  const std::string prefix = llama_kind(file) + ".attention.";
  const auto check = [&](const char* name, auto accepts, const auto&... expected) {
    const std::string key = prefix + name;
    if (!file.has_field(key)) return;
    const GgufField& field = file.field(key);
    const double value = number_in(file, field);
    if (!accepts(value)) file.fail_at(field, "is ", value, ", expected ", expected...);
  };
  check(
      "sliding_window",
      [&](double window) { return window == 0 || window >= static_cast<double>(max_length); },
      "0, or the context length ", max_length, " or more");
  const double usual = 1 / std::sqrt(static_cast<double>(head_dim));
  check(
      "scale", [&](double scale) { return scale == 0 || std::abs(scale - usual) <= 1e-6 * usual; },
      usual);
  check(
      "value_length", [&](double length) { return length == static_cast<double>(head_dim); },
      head_dim);
}

}  // namespace detail

}  // namespace heed
