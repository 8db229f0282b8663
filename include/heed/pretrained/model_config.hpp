// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/layers/feed_forward.hpp>

namespace heed {

/// A model's config.json as Hugging Face writes it: numbers, texts and flags by name. A value in a
/// nested object is `outer.inner`; null counts as absent. At most 1 MiB, 2000 entries, and names of
/// 128 bytes. All errors are FileErrors with the file and the entry.
class ModelConfig {
 public:
  /// `name` appears in error messages.
  ModelConfig(std::string_view text, std::string name) : name_(std::move(name)) {
    if (text.size() > longest_text) {
      fail(text.size(), " bytes, expected at most ", longest_text);
    }
    detail::JsonReader json(text, name_);
    read_object(json, text, "");
    json.end();
  }
  static ModelConfig read(const std::string& path) {
    const std::size_t size = detail::size_of(path);
    if (size > longest_text) {
      throw_file_error(path, ": ", size, " bytes, expected at most ", longest_text);
    }
    const auto bytes = read_file(path);
    return {std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path};
  }

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const { return values_.count(key) > 0; }

  /// A whole number from 0 to 1e12.
  Index integer(const std::string& key) const {
    const double value = get<double>(key, "a number");
    if (!(value >= 0 && value <= 1e12 && value == std::floor(value))) {
      fail_at(key, "is ", value, ", expected a whole number up to 1e12");
    }
    return static_cast<Index>(value);
  }
  Index integer(const std::string& key, Index otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  double real(const std::string& key) const { return get<double>(key, "a number"); }
  /// A number, or a flag as 0 or 1.
  double number(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end() || !std::holds_alternative<bool>(found->second.value)) {
      return real(key);
    }
    return std::get<bool>(found->second.value) ? 1 : 0;
  }
  /// Whether every value of a list is that text.
  bool is_list_of(const std::string& key, std::string_view text) const {
    const std::string& list = get<List>(key, "a list").text;
    detail::JsonReader json(list, name_);
    bool all = true;
    json.array([&] {
      const bool same = json.peek() == '"' ? json.string() == text : (json.skip(), false);
      all = all && same;
    });
    return all;
  }
  double real(const std::string& key, double otherwise) const {
    return has(key) ? real(key) : otherwise;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    return has(key) ? get<std::string>(key, "text") : otherwise;
  }
  bool flag(const std::string& key, bool otherwise) const {
    return has(key) ? get<bool>(key, "true or false") : otherwise;
  }
  /// Throws FileError if the config is of another kind of model; one that does not say is accepted.
  void expect_kind(const std::string& expected) const {
    const std::string kind = text("model_type", expected);
    if (kind != expected) fail_at("model_type", "is ", quote(kind), ", expected ", expected);
  }
  /// The activation for a name in Hugging Face's spelling.
  ActivationKind activation(const std::string& key, const std::string& otherwise) const {
    const std::string kind = text(key, otherwise);
    if (kind == "gelu") return ActivationKind::gelu;
    if (kind == "gelu_new" || kind == "gelu_pytorch_tanh") return ActivationKind::gelu_tanh;
    if (kind == "silu" || kind == "swish") return ActivationKind::silu;
    if (kind == "relu") return ActivationKind::relu;
    fail_at(key, "is ", quote(kind), ", expected gelu, gelu_new, silu or relu");
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw_file_error(name_, ": ", parts...);
  }
  /// Throws FileError about an entry, with the byte of its value.
  template <class... Parts>
  [[noreturn]] void fail_at(const std::string& key, const Parts&... parts) const {
    const auto found = values_.find(key);
    if (found == values_.end()) fail(quote(key), " ", parts...);
    fail("byte ", found->second.at, ": ", quote(key), " ", parts...);
  }

 private:
  static constexpr std::size_t longest_text = std::size_t{1} << 20, longest_name = 128;
  static constexpr std::size_t most_entries = 2000;

  struct List {
    std::string text;  // as in the file; parsed only when asked for
  };
  struct Entry {
    std::variant<List, double, std::string, bool> value;
    std::size_t at;  // byte of the file
  };

  void read_object(detail::JsonReader& json, std::string_view text, const std::string& outer) {
    json.object([&](const std::string& key) {
      if (outer.size() + key.size() > longest_name) {
        fail(quote(outer.empty() ? key : outer), ": a name of more than ", longest_name, " bytes");
      }
      const std::string name = outer + key;
      const char next = json.peek();
      if (next == '{') return read_object(json, text, name + ".");
      if (next == 'n') return json.skip();
      const std::size_t at = json.at();
      decltype(Entry::value) value;
      if (next == '[') {
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
  template <class T>
  const T& get(const std::string& key, const char* wanted) const {
    const auto found = values_.find(key);
    if (found == values_.end()) fail("no ", quote(key));
    const T* value = std::get_if<T>(&found->second.value);
    if (value == nullptr) fail_at(key, "is not ", wanted);
    return *value;
  }

  std::string name_;
  std::map<std::string, Entry> values_;
};

namespace detail {

/// Checks numbers that a file's weights would not contradict but no model can have; those throw
/// FileError. Returns the options.
template <class Options>
const Options& checked_options(const Options& options, const std::string& name) {
  constexpr Index longest = Index{1} << 24;  // whoever caches so many tokens runs out of memory
  if (options.max_length < 1 || options.max_length > longest) {
    throw_file_error(name, ": a length of ", options.max_length, " tokens, expected 1 to ",
                     longest);
  }
  const auto positive = [&](const char* what, double value) {
    if (value > 0 && std::isfinite(value)) return;
    throw_file_error(name, ": ", what, " is ", value, ", expected a number above 0");
  };
  positive("the norms' epsilon", options.block.norm_epsilon);
  positive("the base of rotary positions", options.block.rotary.base);
  return options;
}

/// An entry that changes a model's results, and the two values with which it does not.
struct NeutralEntry {
  std::string_view key;
  double neutral, also;
};

/// Entries of many architectures, and those of a Llama that converters write.
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
/// Entries that change a model's results whatever their value.
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
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
};

/// Throws FileError for a config.json with an entry that changes a model's results in a way that
/// heed does not support.
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

/// The number in a field of any numeric type; a bool is 0 or 1.
inline double number_in(const Gguf& file, const GgufField& field) {
  if (field.is_array || width_of(field.type) == 0) file.fail_at(field, "is not a number");
  return visit_number(field.type, field.data, [](auto x) { return static_cast<double>(x); });
}

/// Throws FileError for a GGUF file with a field of the architecture `llama` that changes the
/// model's results in a way that heed does not support, and for fields that heed does not know,
/// since they might.
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

/// Throws FileError for a GGUF Llama whose attention is not over the whole context, is not scaled
/// by 1 / sqrt(head_dim), or has values of another length than its keys.
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

}  // namespace detail

}  // namespace heed
