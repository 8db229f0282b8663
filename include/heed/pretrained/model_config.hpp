// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/file.hpp>
#include <heed/layers/activation.hpp>

namespace heed {

/// A model's config.json as Hugging Face writes it: numbers, texts and flags by name. What stands
/// in an object inside is `outer.inner`; null is as if it were not there. At most 1 MiB, 2000
/// entries and names of 128 bytes. All errors are FileErrors that name the file and the entry.
class ModelConfig {
 public:
  /// `name` stands in error messages.
  ModelConfig(std::string_view text, std::string name) : name_(std::move(name)) {
    if (text.size() > longest_text) {
      fail(text.size(), " bytes, expected at most ", longest_text);
    }
    detail::JsonReader json(text, name_);
    read_object(json, text, "");
    json.end();
  }
  static ModelConfig read(const std::string& path) {
    const std::size_t size = detail::size_of(detail::open_regular(path), path);
    if (size > longest_text) {
      throw_file_error(path, ": ", size, " bytes, expected at most ", longest_text);
    }
    const auto bytes = read_file(path);
    return {std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path};
  }

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const { return values_.count(key) > 0; }

  /// A whole number of at least 0 that an Index holds many times.
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
  /// Whether all values of a list are that text.
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
  /// Refuses a config of another kind of model, where it says of which.
  void expect_kind(const std::string& expected) const {
    const std::string kind = text("model_type", expected);
    if (kind != expected) fail_at("model_type", "is ", quote(kind), ", expected ", expected);
  }
  /// The activation of that name in Hugging Face's spelling.
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
  /// What is wrong with an entry, at the byte where its value stands.
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
    std::string text;  // as it stands in the file: read when it is asked for
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

/// The options that a file gives a model, but for numbers that no model has and that its weights
/// would not contradict; those throw FileError.
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
  positive("the norms' epsilon", options.norm_epsilon);
  if constexpr (requires { options.rotary; }) {
    positive("the base of rotary positions", options.rotary.base);
  }
  return options;
}

}  // namespace detail

}  // namespace heed
