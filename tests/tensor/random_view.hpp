// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::test {

/// A view that went through random operations, beside what it must hold: the same operations
/// carried out element by element on plain lists.
template <std::size_t Rank>
class RandomView {
 public:
  RandomView(Random& random, bool broadcasts) {
    Extents<Rank> extents{};
    for (Index& extent : extents) extent = 1 + random.integer(6);
    memory_ = Tensor<float, Rank>(extents);
    expected_ = Tensor<float, Rank>(extents);
    float next = 0;
    for (float& value : memory_) value = next++;
    expected_ = memory_;
    view_ = memory_.view();
    for (int operation = 0; operation < 6; ++operation) apply_any(random, broadcasts);
  }

  const TensorView<float, Rank>& view() const { return view_; }
  const Tensor<float, Rank>& expected() const { return expected_; }

 private:
  void apply_any(Random& random, bool broadcasts) {
    const auto axis = static_cast<std::size_t>(random.integer(Rank));
    switch (random.integer(4)) {
      case 0:
        return permute(random);
      case 1:
        return reverse(axis);
      case 2:
        return slice(axis, random);
      default:
        if (broadcasts) repeat(axis, random);
    }
  }
  /// Element `at` of the new list is element `source(at)` of the old one.
  template <class Source>
  void remap(const Extents<Rank>& extents, const Source& source) {
    Tensor<float, Rank> result(extents);
    Extents<Rank> at{};
    for (float& value : result) {
      Index from = 0;
      const Extents<Rank> index = source(at);
      for (std::size_t axis = 0; axis < Rank; ++axis) {
        from = from * expected_.extent(axis) + index[axis];
      }
      value = expected_.data()[from];
      for (std::size_t axis = Rank; axis-- > 0 && ++at[axis] == extents[axis];) at[axis] = 0;
    }
    expected_ = std::move(result);
  }
  void permute(Random& random) {
    Extents<Rank> order{}, extents{};
    for (std::size_t axis = 0; axis < Rank; ++axis) order[axis] = static_cast<Index>(axis);
    for (std::size_t axis = Rank; axis > 1; --axis) {
      const auto other = static_cast<std::size_t>(random.integer(static_cast<Index>(axis)));
      std::swap(order[axis - 1], order[other]);
    }
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      extents[axis] = expected_.extent(static_cast<std::size_t>(order[axis]));
    }
    view_ = view_.permute(order);
    remap(extents, [&](const Extents<Rank>& at) {
      Extents<Rank> from{};
      for (std::size_t axis = 0; axis < Rank; ++axis) {
        from[static_cast<std::size_t>(order[axis])] = at[axis];
      }
      return from;
    });
  }
  void reverse(std::size_t axis) {
    view_ = view_.reverse(axis);
    remap(expected_.extents(), [&](Extents<Rank> at) {
      at[axis] = expected_.extent(axis) - 1 - at[axis];
      return at;
    });
  }
  void slice(std::size_t axis, Random& random) {
    const Index begin = random.integer(expected_.extent(axis) + 1);
    const Index end = begin + random.integer(expected_.extent(axis) - begin + 1);
    const Index step = 1 + random.integer(3);
    view_ = view_.slice(axis, begin, end, step);
    Extents<Rank> extents = expected_.extents();
    extents[axis] = 0;
    for (Index i = begin; i < end; i += step) ++extents[axis];
    remap(extents, [&](Extents<Rank> at) {
      at[axis] = begin + at[axis] * step;
      return at;
    });
  }
  void repeat(std::size_t axis, Random& random) {
    if (expected_.extent(axis) == 0) return;
    const Index kept = random.integer(expected_.extent(axis));
    const Index times = random.integer(5);
    view_ = view_.slice(axis, kept, kept + 1).broadcast(axis, times);
    Extents<Rank> extents = expected_.extents();
    extents[axis] = times;
    remap(extents, [&](Extents<Rank> at) {
      at[axis] = kept;
      return at;
    });
  }

  Tensor<float, Rank> memory_;
  Tensor<float, Rank> expected_;
  TensorView<float, Rank> view_;
};

}  // namespace heed::test
