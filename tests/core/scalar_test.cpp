// SPDX-License-Identifier: MIT
#include <heed/core/scalar.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

template <class T>
const char* computed_by(T) {
  if constexpr (Scalar<T>) {
    return "kernels";
  } else if constexpr (ReferenceScalar<T>) {
    return "reference";
  } else {
    return "nobody";
  }
}

TEST(Scalar, KernelsTakeFloatAndDoubleTheReferenceLongDoubleToo) {
  EXPECT_STREQ(computed_by(1.0f), "kernels");
  EXPECT_STREQ(computed_by(1.0), "kernels");
  EXPECT_STREQ(computed_by(1.0L), "reference");
  EXPECT_STREQ(computed_by(1), "nobody");
  static_assert(!Scalar<const float>, "a scalar is a plain value type");
}

}  // namespace
}  // namespace heed
