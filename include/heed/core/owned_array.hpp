// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

namespace detail {

template <class T, class Number>
concept Fits = std::convertible_to<Number*, const T*> ||
    (std::same_as<T, Index>&& std::integral<Number> && !std::same_as<Number, bool>);

template <class Values>
concept HasData = requires(const Values& values) {
  values.data();
};
template <class Values>
concept ViewOfOneAxis = !HasData<Values> && requires(const Values& values) {
  values.data_handle();
  requires(Values::rank() == 1);
};
auto begin_of_list(const HasData auto& values) { return values.data(); }
auto begin_of_list(const ViewOfOneAxis auto& values) { return values.data_handle(); }

/// A source for a list of T: a std::vector, a std::span, anything with data() and size(), or a view
/// of one axis. A list of Index may hold numbers of another integer type, such as int.
template <class Values, class T>
concept ListOf = requires(const Values& values) {
  { values.size() } -> std::convertible_to<std::size_t>;
  requires Fits<T, std::remove_reference_t<decltype(*begin_of_list(values))>>;
};

/// Several such lists one behind the other.
template <class Lists, class T>
concept ListsOf = requires(const Lists& lists) {
  { lists.size() } -> std::convertible_to<std::size_t>;
  requires ListOf<std::remove_cvref_t<decltype(lists[0])>, T>;
};
/// The number of lists: of a matrix, whose size() counts its elements, that of its rows.
template <class Lists>
std::size_t count_of_lists(const Lists& lists) {
  if constexpr (requires { lists.extent(0); }) {
    return static_cast<std::size_t>(lists.extent(0));
  } else {
    return static_cast<std::size_t>(lists.size());
  }
}
template <class Lists>
decltype(auto) list_at(const Lists& lists, std::size_t place) {
  if constexpr (requires { lists.extent(0); }) {
    return lists[static_cast<Index>(place)];
  } else {
    return lists[place];
  }
}

/// Throws ShapeError for a tensor with several rows and columns, which would be read as one list.
template <class Values>
void expect_list(const Values& values) {
  if constexpr (requires { values.extent(Values::rank() - 1); }) {
    Index longest = 1;
    for (std::size_t axis = 0; axis < Values::rank(); ++axis) {
      longest = larger(longest, static_cast<Index>(values.extent(axis)));
    }
    if (static_cast<Index>(values.size()) > longest) {
      throw_shape_error("expected a list of numbers, not a tensor of several rows: its longest ",
                        "axis has ", longest, " of its ", values.size(), " numbers");
    }
  }
}

/// An element of a list. Views, and Eigen's rows and columns of matrices, have strides.
template <class T, class Values>
T listed_value(const Values& values, Index at) {
  if constexpr (ViewOfOneAxis<Values>) {
    return static_cast<T>(values.data_handle()[at * values.stride(0)]);
  } else if constexpr (requires { values.innerStride(); }) {
    return static_cast<T>(values[at]);
  } else {
    return static_cast<T>(values.data()[at]);
  }
}

/// An immutable array shared by its copies. Masks take lists in it, and store lengths, bits and
/// layouts. It has its own storage, since <vector> is a sixth of the compile time of
/// <heed/attention.hpp>.
template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::initializer_list<T> values)  // NOLINT(google-explicit-constructor)
      : SharedArray(values.begin(), values.end()) {}
  template <class Iterator>
  requires requires(Iterator i) {
    { *i } -> std::convertible_to<T>;
    { i - i } -> std::convertible_to<Index>;
  }
  SharedArray(Iterator first, Iterator last)
      : SharedArray(made(last - first, [&](Index i) { return static_cast<T>(first[i]); })) {}
  template <ListOf<T> Values>
  SharedArray(const Values& values)  // NOLINT(google-explicit-constructor)
      : SharedArray(made(static_cast<Index>(values.size()),
                         [&](Index i) { return listed_value<T>(values, i); })) {
    expect_list(values);
  }

  /// The array of `make(i)` for every i < count, called in order.
  template <class Make>
  static SharedArray made(Index count, const Make& make) {
    SharedArray array(count);
    for (Index i = 0; i < count; ++i) array.block_->add(make(i));
    return array;
  }
  /// `count` zeros as modified by `fill`.
  template <class Fill>
  static SharedArray filled(Index count, const Fill& fill) {
    SharedArray zeros = made(count, [](Index) { return T{}; });
    fill(zeros.block_->values);
    return zeros;
  }

  Index size() const { return size_; }
  /// Whether `at` is an index of the array; a single comparison, also for negative numbers.
  bool has(Index at) const {
    return static_cast<std::size_t>(at) < static_cast<std::size_t>(size_);
  }
  const T& operator[](Index at) const { return data_[at]; }
  const T* data() const { return data_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  struct Block {
    explicit Block(std::size_t count) : values(static_cast<T*>(::operator new(bytes_of(count)))) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
      while (size > 0) values[--size].~T();
      ::operator delete(values);
    }
    void add(T value) const {
      ::new (static_cast<void*>(values + size)) T(std::move(value));
      ++size;
    }

    T* values;
    mutable std::size_t size = 0;  // grows during construction, while there is a single owner
  };

  explicit SharedArray(Index count)
      : block_(new Block(static_cast<std::size_t>(count))), data_(block_->values), size_(count) {}

  static std::size_t bytes_of(std::size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) raise(std::bad_alloc());
    return count * sizeof(T);
  }

  Shared<Block> block_;
  const T* data_ = nullptr;
  Index size_ = 0;
};

/// Values of T one behind the other: a container, an array or a std::initializer_list. Not every
/// range that converts to a span: every program would pay for that question in compile time.
template <class Values, class T>
concept RunOf = requires(const Values& values) {
  { std::data(values) } -> std::convertible_to<const T*>;
  { std::size(values) } -> std::convertible_to<std::size_t>;
}
&&!requires(const Values& values) { values.rows(); };

template <class Values, class T>
concept ListOfOtherNumbers = !ListOf<Values, T> && requires(const Values& values) {
  values.size();
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*values.data())>>;
};

/// A text, perhaps meant as its tokens.
template <class Text>
concept TextForList = std::is_convertible_v<const Text&, const char*> ||
    requires(const Text& text) {
  text.substr(0);
};

}  // namespace detail

/// A few numbers owned by options, one per head or per batch item, or token numbers for a function.
/// Converts from any container with data() and size(), from an array and from a view of one axis,
/// and copies it, so the source need not outlive it. Copies share the numbers. Empty: not given.
template <class T>
class OwnedArray {
 public:
  OwnedArray() = default;
  OwnedArray(std::initializer_list<T> values)  // NOLINT(google-explicit-constructor)
      : OwnedArray(values.begin(), values.size()) {}
  OwnedArray(const T* values, std::size_t size) : size_(size) {
    if (size == 0) return;
    owned_ = detail::SharedArray<T>(values, values + size);
    data_ = owned_.data();
  }
  template <detail::RunOf<T> Values>
  requires(!std::same_as<Values, OwnedArray>)
      OwnedArray(const Values& values)  // NOLINT(google-explicit-constructor): a list converts
      : OwnedArray(std::data(values), static_cast<std::size_t>(std::size(values))) {
    detail::expect_list(values);
  }
  template <detail::ListOf<T> Values>
  requires(!detail::RunOf<Values, T> && !detail::TextForList<Values>)
      OwnedArray(const Values& values)  // NOLINT(google-explicit-constructor): Eigen's, or of int
      : owned_(values), data_(owned_.data()), size_(static_cast<std::size_t>(values.size())) {}
  template <class Values, class Number = std::remove_extent_t<Values>>
  requires(std::is_array_v<Values>&& detail::Fits<T, Number> && !detail::RunOf<Values, T> &&
           !detail::TextForList<Values>)
      OwnedArray(const Values& values)  // NOLINT(google-explicit-constructor): an array of int
      : OwnedArray(std::span<const Number>(values)) {}

  template <detail::ListOfOtherNumbers<T> Values>
  OwnedArray(const Values&) {  // NOLINT(google-explicit-constructor): meant as such numbers
    static_assert(!std::is_integral_v<T>, "this takes a list of whole numbers");
    static_assert(std::is_integral_v<T>,
                  "options take numbers of their own type, as tensors have it: "
                  "std::vector<float> where tensors are float");
  }

  template <detail::TextForList Text>
  OwnedArray(const Text&) {  // NOLINT(google-explicit-constructor): meant as its tokens
    static_assert(detail::never<Text>,
                  "a text is no list of numbers: tokenizer.encode(text) gives its tokens");
  }

  /// Refers to `values`, which must outlive it and its copies: no copy, no allocation.
  static OwnedArray borrowed(std::span<const T> values) {
    OwnedArray array;
    array.data_ = values.data();
    array.size_ = values.size();
    return array;
  }

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](std::size_t at) const { return data_[at]; }

 private:
  detail::SharedArray<T> owned_;
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace heed
