// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/text.hpp>
#include <heed/io/file.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

/// The numbers 0 to count − 1, sorted by `less`. One function for everything that files list:
/// sorting is slow to compile.
std::vector<std::size_t> sorted_order(std::size_t count,
                                      FunctionRef<bool(std::size_t, std::size_t)> less);
/// The place of the first number of `order` that is not less than what is looked for.
std::size_t lower_place(const std::vector<std::size_t>& order, FunctionRef<bool(std::size_t)> less);

/// Finds entries by name in O(log n), without hashing names that a file may choose. `name` is the
/// member of the entries that holds it, e.g. &GgufTensor::name.
template <auto name>
class NameIndex {
 public:
  NameIndex() = default;
  template <class Entry>
  explicit NameIndex(const std::vector<Entry>& entries)
      : order_(sorted_order(entries.size(), [&](std::size_t a, std::size_t b) {
          return entries[a].*name < entries[b].*name;
        })) {}

  /// An entry with the same name as another one, or null.
  template <class Entry>
  const Entry* twice(const std::vector<Entry>& entries) const {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const Entry& entry = entries[order_[i]];
      if (entry.*name == entries[order_[i - 1]].*name) return &entry;
    }
    return nullptr;
  }

  /// The entry with that name, or null.
  template <class Entry>
  const Entry* find(const std::vector<Entry>& entries, std::string_view wanted) const {
    const std::size_t place =
        lower_place(order_, [&](std::size_t i) { return entries[i].*name < wanted; });
    const bool there = place < order_.size() && entries[order_[place]].*name == wanted;
    return there ? &entries[order_[place]] : nullptr;
  }

 private:
  std::vector<std::size_t> order_;
};

/// Tensors by name in the bytes of a file: the common part of Safetensors and Gguf. `Header` reads
/// everything but the tensors' data; its `entries` have name, rank, extents, begin and end.
template <class Header>
class TensorFile {
 public:
  using Entry = typename decltype(Header::entries)::value_type;

  /// The file's name in error messages, usually its path.
  const std::string& name() const { return name_; }
  /// All tensors, in the order of the file; of a temporary file, a copy.
  std::span<const Entry> entries() const& { return header_->entries; }
  std::vector<Entry> entries() && { return header_->entries; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws FileError if there is no tensor with that name.
  const Entry& entry(std::string_view name) const {
    const Entry* found = find(name);
    if (found == nullptr) throw_file_error(name_, ": no tensor ", quote(name));
    return *found;
  }
  /// The data of a tensor as stored: row-major, little-endian, at any alignment.
  std::span<const std::byte> bytes(std::string_view name) const& {
    const Entry& found = entry(name);
    return bytes_.get().subspan(found.begin, found.end - found.begin);
  }
  template <class File = TensorFile>
  std::span<const std::byte> bytes(std::string_view) && {
    static_assert(never<File>, "the bytes of a temporary file dangle: give the file a name first");
    return {};
  }

 protected:
  TensorFile(SharedBytes bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)), header_(new Contents(bytes_, name_)) {}

  const Header& header() const { return *header_; }
  const std::byte* data() const { return bytes_.get().data(); }
  /// A tensor with the same name as another one, or null.
  const Entry* twice() const { return header_->by_name.twice(header_->entries); }
  /// The shape of a tensor. Throws FileError if its rank is another one.
  template <std::size_t Rank>
  Extents<Rank> extents_of(const Entry& entry) const {
    if (entry.rank != Rank) {
      throw_file_error(name_, ": tensor ", quote(entry.name), ": shape ", entry.shape(),
                       " has rank ", entry.shape().size(), ", expected ", Rank);
    }
    Extents<Rank> extents{};
    for (std::size_t axis = 0; axis < Rank; ++axis) extents[axis] = entry.extents[axis];
    return extents;
  }

 private:
  struct Contents : Header {
    Contents(const SharedBytes& bytes, const std::string& name)
        : Header(bytes.get(), name), by_name(Header::entries) {}
    NameIndex<&Entry::name> by_name;
  };

  const Entry* find(std::string_view name) const {
    return header_->by_name.find(header_->entries, name);
  }

  SharedBytes bytes_;
  std::string name_;
  Shared<Contents> header_;
};

/// Problems for one error message: the first 50 of them, and the number of the others.
class ProblemList {
 public:
  /// `separator` is written between two problems.
  explicit ProblemList(const char* separator) : separator_(separator) {}

  template <class... Parts>
  void add(const Parts&... parts) {
    if (++count_ > listed) return;
    if (count_ > 1) text_ += separator_;
    text_ += message(parts...);
  }

  Index count() const { return count_; }
  std::string text() const;

 private:
  static constexpr Index listed = 50;

  const char* separator_;
  std::string text_;
  Index count_ = 0;
};

}  // namespace heed::detail

#if HEED_DEFINITIONS
#include <heed/io/detail/tensor_file.inl>
#endif
