// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/gguf.hpp>

#include "support/file_bytes.hpp"
#include "support/mutation.hpp"

namespace heed::test {

/// A GGUF file taken apart, so that one piece of it can be changed and the rest still fits.
class GgufPieces {
 public:
  /// Throws FileError for a file that heed does not read.
  explicit GgufPieces(const std::string& file) {
    const Gguf gguf(SharedBytes(bytes_of(file)), "x");
    std::memcpy(&version_, file.data() + 4, sizeof(version_));
    std::size_t at = 24;
    for (std::size_t i = 0; i < gguf.fields().size(); ++i) {
      Field& piece = fields_.emplace_back();
      piece.key = take_text(file, at);
      piece.type = take<std::uint32_t>(file, at);
      const std::size_t begin = at;
      at = end_of_value(file, at, piece.type);
      piece.value = file.substr(begin, at - begin);
      std::size_t element = begin;
      if (piece.type == 9 && take<std::uint32_t>(file, element) == 8) {
        element += 8;
        while (element < at) piece.texts.push_back(take_text(file, element));
      }
    }
    for (std::size_t i = 0; i < gguf.entries().size(); ++i) {
      Tensor& piece = tensors_.emplace_back();
      piece.name = take_text(file, at);
      piece.extents.resize(take<std::uint32_t>(file, at));
      for (auto& extent : piece.extents) extent = take<std::uint64_t>(file, at);
      piece.type = take<std::uint32_t>(file, at);
      piece.offset = take<std::uint64_t>(file, at);
    }
    at = (at + 31) / 32 * 32;
    if (at < file.size()) data_ = file.substr(at);
  }

  /// Whether heed's reader found the same: this one is a second and simple parser.
  bool is_of(const Gguf& gguf) const {
    bool same = gguf.fields().size() == fields_.size() && gguf.entries().size() == tensors_.size();
    for (std::size_t i = 0; same && i < fields_.size(); ++i) {
      const GgufField& field = gguf.fields()[i];
      same = field.key == fields_[i].key && field.is_array == (fields_[i].type == 9);
      if (!field.is_array) same = same && static_cast<std::uint32_t>(field.type) == fields_[i].type;
      if (field.is_array && field.type == GgufValueType::text) {
        const auto texts = field.values<std::string_view>();
        same = same && std::equal(texts.begin(), texts.end(), fields_[i].texts.begin(),
                                  fields_[i].texts.end());
      }
    }
    for (std::size_t i = 0; same && i < tensors_.size(); ++i) {
      const GgufTensor& tensor = gguf.entries()[i];
      same = tensor.name == tensors_[i].name && tensor.type->id == tensors_[i].type &&
             std::equal(tensor.shape().rbegin(), tensor.shape().rend(), tensors_[i].extents.begin(),
                        tensors_[i].extents.end(), [](Index a, std::uint64_t b) {
                          return static_cast<std::uint64_t>(a) == b;
                        });
    }
    return same;
  }

  void change(Mutation& mutation) {
    switch (mutation.pick(6)) {
      case 0:
        return mutation.order(fields_);
      case 1:
        return mutation.order(tensors_);
      case 2:
      case 3:
        if (!fields_.empty()) change(mutation, fields_[mutation.pick(fields_.size())]);
        return;
      case 4:
        if (!tensors_.empty()) change(mutation, tensors_[mutation.pick(tensors_.size())]);
        return;
      default:
        if (mutation.pick(4) == 0) lie_ = mutation.number(fields_.size());
        return mutation.bytes(data_);
    }
  }

  std::string file() const {
    std::string text = "GGUF" + raw(version_) + raw<std::uint64_t>(tensors_.size()) +
                       raw<std::uint64_t>(lie_ == 0 ? fields_.size() : lie_);
    for (const Field& field : fields_) {
      text += with_size(field.key) + raw(field.type);
      if (field.texts.empty()) {
        text += field.value;
        continue;
      }
      text += raw(8u) + raw<std::uint64_t>(field.texts.size());
      for (const std::string& element : field.texts) text += with_size(element);
    }
    for (const Tensor& tensor : tensors_) {
      text += with_size(tensor.name) + raw(static_cast<std::uint32_t>(tensor.extents.size()));
      for (const std::uint64_t extent : tensor.extents) text += raw(extent);
      text += raw(tensor.type) + raw(tensor.offset);
    }
    if (!data_.empty()) text.resize((text.size() + 31) / 32 * 32);
    return text + data_;
  }

 private:
  struct Field {
    std::string key;
    std::uint32_t type = 0;
    std::string value;               // as it stands in the file
    std::vector<std::string> texts;  // of an array of texts, instead of `value`
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> extents;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
  };

  template <class T>
  static T take(const std::string& file, std::size_t& at) {
    T value{};
    std::memcpy(&value, file.data() + at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  static std::string take_text(const std::string& file, std::size_t& at) {
    const auto size = static_cast<std::size_t>(take<std::uint64_t>(file, at));
    at += size;
    return file.substr(at - size, size);
  }
  static std::string with_size(const std::string& text) {
    return raw<std::uint64_t>(text.size()) + text;
  }
  static std::size_t end_of_value(const std::string& file, std::size_t at, std::uint32_t type) {
    constexpr std::uint32_t text = 8, array = 9;
    if (type == text) return take_text(file, at), at;
    if (type != array) return at + width_of(static_cast<GgufValueType>(type));
    const auto element = take<std::uint32_t>(file, at);
    for (auto count = take<std::uint64_t>(file, at); count > 0; --count) {
      at = end_of_value(file, at, element);
    }
    return at;
  }

  static void change(Mutation& mutation, Field& field) {
    const std::size_t what = mutation.pick(8);
    if (what == 0) return mutation.bytes(field.key);
    if (what == 1) {
      field.type = static_cast<std::uint32_t>(mutation.pick(14));
      return;
    }
    if (field.texts.empty()) return mutation.bytes(field.value);
    if (what < 5) return mutation.order(field.texts);
    mutation.bytes(field.texts[mutation.pick(field.texts.size())]);
  }
  static void change(Mutation& mutation, Tensor& tensor) {
    const std::size_t what = mutation.pick(5);
    if (what == 0) return mutation.bytes(tensor.name);
    if (what == 1) tensor.type = static_cast<std::uint32_t>(mutation.pick(45));
    if (what == 2) tensor.offset = mutation.pick(2) == 0 ? tensor.offset + 32 : mutation.number(0);
    if (what == 3) mutation.order(tensor.extents);
    if (what == 4 && tensor.extents.empty()) tensor.extents.push_back(1);
    if (what == 4) {
      auto& extent = tensor.extents[mutation.pick(tensor.extents.size())];
      extent = mutation.number(extent);
    }
  }

  std::uint32_t version_ = 3;
  std::vector<Field> fields_;
  std::vector<Tensor> tensors_;
  std::string data_;
  std::uint64_t lie_ = 0;  // the number of fields that the file says, unless 0
};

}  // namespace heed::test
