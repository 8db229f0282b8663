// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/layers/feed_forward.hpp>
#include <heed/layers/rotary.hpp>

namespace heed {

namespace detail {
class JsonReader;
}  // namespace detail

/// A model's config.json as Hugging Face writes it: numbers, texts and flags by name. A value in a
/// nested object is `outer.inner`; null counts as absent. At most 1 MiB, 2000 entries, and names of
/// 128 bytes. All errors are FileErrors with the file and the entry.
class ModelConfig {
 public:
  /// `name` appears in error messages.
  ModelConfig(std::string_view text, std::string name);
  static ModelConfig read(const FilePath& path);

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const { return values_.count(key) > 0 && !is_null(key); }
  /// Whether a value is null, where that says something else than the lack of the entry.
  bool is_null(const std::string& key) const {
    const auto found = values_.find(key);
    return found != values_.end() && std::holds_alternative<std::monostate>(found->second.value);
  }

  /// A whole number from 0 to 1e12.
  Index integer(const std::string& key) const;
  Index integer(const std::string& key, Index otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  double real(const std::string& key) const;
  /// A number, or a flag as 0 or 1.
  double number(const std::string& key) const;
  /// Whether every value of a list is that text.
  bool is_list_of(const std::string& key, std::string_view text) const;
  double real(const std::string& key, double otherwise) const {
    return has(key) ? real(key) : otherwise;
  }
  std::string text(const std::string& key, const std::string& otherwise) const;
  bool flag(const std::string& key, bool otherwise) const;
  /// Throws FileError if the config is of another kind of model; one that does not say is accepted.
  void expect_kind(const std::string& expected) const;
  /// The activation for a name in Hugging Face's spelling.
  ActivationKind activation(const std::string& key, const std::string& otherwise) const;

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
    std::variant<std::monostate, List, double, std::string, bool> value;  // null is the first
    std::size_t at;                                                       // byte of the file
  };

  void read_object(detail::JsonReader& json, std::string_view text, const std::string& outer);
  template <class T>
  const T& get(const std::string& key, const char* wanted) const;

  std::string name_;
  std::map<std::string, Entry> values_;
};

namespace detail {

/// Throws FileError unless a number is finite and above 0.
void check_positive(const std::string& name, const char* what, double value);
/// Throws FileError for rotary positions that no heads can have.
void check_rotary(const std::string& name, RotaryOptions options);

/// Checks numbers that a file's weights would not contradict but no model can have; those throw
/// FileError. Returns the options.
template <class Options>
const Options& checked_options(const Options& options, const std::string& name) {
  constexpr Index longest = Index{1} << 24;  // whoever caches so many tokens runs out of memory
  if (options.max_length < 1 || options.max_length > longest) {
    throw_file_error(name, ": a length of ", options.max_length, " tokens, expected 1 to ",
                     longest);
  }
  check_positive(name, "the norms' epsilon", options.block.norm_epsilon);
  check_rotary(name, options.block.rotary);
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
    {"rope_parameters.partial_rotary_factor", 1, 1},
    {"rope_scaling.attention_factor", 1, 1},
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

/// Throws FileError for a config.json with an entry that changes a model's results in a way that
/// heed does not support.
void refuse_unsupported(const ModelConfig& config);

/// The number in a field of any numeric type; a bool is 0 or 1.
double number_in(const Gguf& file, const GgufField& field);

/// The architecture of a GGUF file with a Llama or a model of its family: llama, which Mistrals are
/// too, qwen2 or qwen3. Fields begin with it. Throws FileError for others.
std::string llama_kind(const Gguf& file);

/// Throws FileError for a GGUF file with a field of its architecture that changes a Llama's results
/// in a way that heed does not support, and for fields that heed does not know, since they might.
void refuse_unsupported_llama(const Gguf& file);

/// Throws FileError for a GGUF Llama whose attention is not over the whole context, is not scaled
/// by 1 / sqrt(head_dim), or has values of another length than its keys.
void check_llama_attention(const Gguf& file, Index max_length, Index head_dim);

}  // namespace detail

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/pretrained/detail/model_config.inl>
#endif
