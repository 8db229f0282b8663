// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>

#include <heed/core/error.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Which elements of a rank-`Rank` tensor a row function looks at: true counts. Made from a bool
/// view or tensor of that rank or less; axes line up at the last one, and a missing axis or one of
/// extent 1 holds for all indices. Empty: all count.
template <std::size_t Rank>
class RowMask {
 public:
  RowMask() = default;
  template <class X>
  requires(!std::same_as<X, RowMask> && Viewable<const X>)
      RowMask(const X& mask)  // NOLINT(google-explicit-constructor): a bool tensor is a mask
      : given_(true) {
    using View = ViewOf<const X>;
    static_assert(std::same_as<typename View::value_type, bool>, "a mask is made of bool");
    static_assert(View::rank() <= Rank, "the mask has more axes than the tensor it is for");
    const View view = view_of(mask);
    Extents<Rank> extents{}, strides{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      const bool missing = axis + View::rank() < Rank;
      extents[axis] = missing ? 1 : view.extent(axis + View::rank() - Rank);
      strides[axis] = missing ? 0 : view.stride(axis + View::rank() - Rank);
    }
    view_ = {view.data_handle(), extents, strides};
  }
  template <class X>
  requires(Viewable<const X>&& detail::OwnsValues<X>) RowMask(const X&&) {  // NOLINT
    static_assert(!Viewable<const X>, "a mask of temporary values dangles: give them a name first");
  }

  bool given() const { return given_; }

  /// The mask of every element of a tensor of these extents. Throws ShapeError if it does not fit.
  TensorView<const bool, Rank> fitted(const char* caller, const Extents<Rank>& extents) const {
    auto result = view_;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      if (view_.extent(axis) == extents[axis]) continue;
      if (view_.extent(axis) != 1) {
        throw_shape_error(caller, ": mask ", view_.extents(), " does not fit ", extents);
      }
      result = result.broadcast(axis, extents[axis]);
    }
    return result;
  }

 private:
  TensorView<const bool, Rank> view_;
  bool given_ = false;
};

}  // namespace heed
