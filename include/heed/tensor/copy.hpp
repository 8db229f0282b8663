// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Copies values between views of equal extents and any strides; scalars convert (float to double
/// or bfloat16 and back). Throws ShapeError, before the first write, if extents differ, if the two
/// views overlap, or if elements of `to` share memory.
template <Viewable From, Viewable To>
void copy(const From& from, To&& to) {
  const auto source = view_of(from);
  const auto target = view_of(to);
  static_assert(ViewOf<const From>::rank() == ViewOf<To>::rank(), "copy: ranks differ");
  static_assert(std::constructible_from<ValueOf<To>, ValueOf<const From>>, "copy: no conversion");
  static_assert(!std::is_const_v<typename decltype(target)::element_type>, "copy: `to` is const");
  if (source.extents() != target.extents()) {
    throw_shape_error("copy: from ", source.extents(), " to ", target.extents());
  }
  if (overlaps(source, target)) throw_shape_error("copy: the views overlap");
  if (has_internal_overlap(target)) throw_shape_error("copy: elements of the target share memory");
  detail::copy_values(source, target);
}

}  // namespace heed
