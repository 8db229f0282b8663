// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/safetensors.hpp>

#include "support/file_bytes.hpp"
#include "support/mutation.hpp"

namespace heed::test {

/// A safetensors file taken apart, so that one piece of it can be changed and the rest still fits.
class SafetensorsPieces {
 public:
  /// Throws FileError for a file that heed does not read.
  explicit SafetensorsPieces(const std::string& file) {
    const Safetensors read(SharedBytes(bytes_of(file)), "x");
    for (const SafetensorsEntry& entry : read.entries()) {
      const std::vector<Index> shape(entry.shape().begin(), entry.shape().end());
      const auto bytes = read.bytes(entry.name);
      tensors_.push_back({entry.name, std::string(name_of(entry.type)), shape,
                          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
    }
    for (const auto& [name, text] : read.metadata()) notes_.emplace_back(name, text);
  }

  void change(Mutation& mutation) {
    switch (mutation.pick(6)) {
      case 0:
        return mutation.order(tensors_);
      case 1:
        return mutation.order(notes_);
      case 2:
        if (notes_.empty()) notes_.emplace_back();
        mutation.bytes(mutation.pick(2) == 0 ? notes_.back().first : notes_.back().second);
        return;
      case 3:
      case 4:
        if (tensors_.empty()) tensors_.push_back({"a", "U8", {0}, ""});
        return change(mutation, tensors_[mutation.pick(tensors_.size())]);
      default:
        std::string json = header();  // any letter of it
        mutation.bytes(json);
        changed_header_ = json;
    }
  }

  std::string file() const {
    const std::string json = changed_header_.empty() ? header() : changed_header_;
    std::string text = raw<std::uint64_t>(json.size()) + json;
    for (const Tensor& tensor : tensors_) text += tensor.bytes;
    return text;
  }

 private:
  struct Tensor {
    std::string name, type;
    std::vector<Index> shape;
    std::string bytes;
  };

  std::string header() const {
    std::string json = "{";
    if (!notes_.empty()) {
      json += "\"__metadata__\":{";
      for (const auto& [name, text] : notes_) json += quoted(name) + ":" + quoted(text) + ",";
      json.back() = '}';
      json += ',';
    }
    std::size_t at = 0;
    for (const Tensor& tensor : tensors_) {
      json += quoted(tensor.name) + ":{\"dtype\":\"" + tensor.type + "\",\"shape\":[";
      for (const Index extent : tensor.shape) json += std::to_string(extent) + ",";
      if (!tensor.shape.empty()) json.pop_back();
      json += "],\"data_offsets\":[" + std::to_string(at) + ",";
      at += tensor.bytes.size();
      json += std::to_string(at) + "]},";
    }
    if (json.size() > 1) json.pop_back();
    return json + "}";
  }
  static std::string quoted(const std::string& text) {
    std::string json = "\"";
    for (const char letter : text) {
      if (letter == '\n') json += "\\u000a";
      if (letter == '"' || letter == '\\') json += '\\';
      if (letter != '\n') json += letter;
    }
    return json + "\"";
  }
  static void change(Mutation& mutation, Tensor& tensor) {
    constexpr const char* types[] = {"F64", "I64",  "F32", "I32",    "F16",
                                     "U8",  "BF16", "F8",  "BOOL\\n"};
    const std::size_t what = mutation.pick(5);
    if (what == 0) return mutation.bytes(tensor.name);
    if (what == 1) tensor.type = types[mutation.pick(std::size(types))];
    if (what == 2) mutation.order(tensor.shape);
    if (what == 3) return mutation.bytes(tensor.bytes);
    if (what == 4 && tensor.shape.empty()) tensor.shape.push_back(1);
    if (what == 4) {
      auto& extent = tensor.shape[mutation.pick(tensor.shape.size())];
      extent = static_cast<Index>(mutation.number(static_cast<std::uint64_t>(extent)));
    }
    if (mutation.pick(2) == 0) fit(tensor);
  }
  /// As many bytes as type and shape take, where they are few.
  static void fit(Tensor& tensor) {
    const auto type = element_type(tensor.type);
    double size = type ? static_cast<double>(width_of(*type)) : 0;
    for (const Index extent : tensor.shape) size *= static_cast<double>(extent);
    if (size >= 0 && size < 1000) tensor.bytes.resize(static_cast<std::size_t>(size));
  }

  std::vector<Tensor> tensors_;
  std::vector<std::pair<std::string, std::string>> notes_;
  std::string changed_header_;
};

}  // namespace heed::test
