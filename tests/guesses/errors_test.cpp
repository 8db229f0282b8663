// SPDX-License-Identifier: MIT
// Errors as a user would catch them: all as one, or each as the standard's own.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include <heed/heed.hpp>

#include "support/sanitizers.hpp"

using namespace heed;

namespace {

/// What one handler for everything of heed's is told.
std::string caught(const auto& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Errors, OneHandlerHasThemAll) {
  Tensor<float, 2> q({4, 8}), k({5, 8}), narrow({5, 6});
  EXPECT_EQ(caught([&] { attention(q, narrow, narrow); }),
            "attention: queries have head_dim 8, keys 6");
  EXPECT_EQ(caught([&] { attention(q, k, k, {.scale = NAN}); }),
            "attention: scale must be finite, not NaN");
  EXPECT_EQ(caught([&] { set_thread_count(0); }), "set_thread_count: 0 threads; at least 1");
  EXPECT_EQ(caught([] { load_safetensors("/nowhere/model"); }),
            "/nowhere/model: No such file or directory");
  KeyValueCache<float> cache(CacheShape{.head_dim = 8, .value_dim = 8, .pages = 0});
  const Tensor<float, 4> token({1, 1, 1, 8});
  EXPECT_EQ(
      caught([&] { cache.append(token, token); }),
      "KeyValueCache: 1 more pages wanted, 0 of 0 free: truncate or forget tokens, or make it of "
      "more pages");
}

TEST(Errors, EachIsTheStandardsToo) {
  Tensor<float, 2> q({4, 8}), narrow({5, 6});
  EXPECT_THROW(attention(q, narrow, narrow), ShapeError);
  EXPECT_THROW(attention(q, narrow, narrow), InvalidArgument);
  EXPECT_THROW(attention(q, narrow, narrow), std::invalid_argument);
  EXPECT_THROW(load_safetensors("/nowhere/model"), FileError);
  EXPECT_THROW(load_safetensors("/nowhere/model"), std::runtime_error);
  if (test::sanitized) return;  // whose allocators end the program
  const auto eight_tebibytes = [] { return Tensor<float, 4>({1 << 15, 1 << 15, 1 << 20, 8}); };
  EXPECT_THROW(eight_tebibytes(), OutOfMemory);
  EXPECT_THROW(eight_tebibytes(), std::bad_alloc);
}

TEST(Errors, AValueThatMakesNoSenseIsNoShape) {
  Tensor<float, 2> q({4, 8});
  try {
    attention(q, q, q, {.softcap = -1});
    FAIL();
  } catch (const ShapeError&) {
    FAIL() << "a shape";
  } catch (const InvalidArgument&) {
  }
}

}  // namespace
