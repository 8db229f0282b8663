// SPDX-License-Identifier: MIT
// Errors as a user would catch them: all as one, or each as the standard's own.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

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

TEST(Errors, EachSaysWhatWasGivenAndExpected) {
  const Tensor<float, 2> q(4, 8);
  Random random(1);
  const LanguageModel<float> model({.vocab_size = 5, .block = {.model_dim = 8, .heads = 2}},
                                   random);
  Session<float> session(model);
  EXPECT_EQ(caught([&] { beam_search(session, {1}, {.width = 4}); }),
            "beam_search: a prompt of 1 tokens, expected 1 or more; a session of 1 sequences, "
            "expected the width, 4, or more, as of Session<float> session(model, {.batch = 4})");
  EXPECT_EQ(caught([] { alibi_slopes(-1); }), "alibi_slopes: -1 heads, expected 0 or more");
  EXPECT_EQ(caught([&] { attention(q, q, q, masks::GridNeighborhood{.rows = 0}); }),
            "GridNeighborhood: 0 × 1 cells, radius 1; expected 1 × 1 or more, radius 0 or more");
  EXPECT_EQ(caught([] {
              masks::Dense(std::vector<bool>(5), {1, 1, 2, 3});
            }),
            "Dense: 5 values for (batch, heads, queries, keys) (1, 1, 2, 3), expected 6");
}

TEST(Errors, EachNamesTheRemedy) {
  const Tensor<float, 2> x(4, 8);
  EXPECT_EQ(caught([&] {
              attention(x, x, x, masks::Segments({0, 3}));
            }),
            "Segments: describes 3 tokens, the call has 4; expected all of them, or partial(mask) "
            "where the others see nothing on purpose; masks::Groups takes a number per token");
  EXPECT_EQ(caught([] {
              masks::Segments({1, 1, 2});
            }),
            "Segments: offsets begin with 1; expected 0, the end of each document, …, total; "
            "masks::Groups takes a number per token");
  EXPECT_EQ(
      caught([&] {
        masks::Dense(Tensor<float, 2>({2, 2}, 1));
      }),
      "Dense: 1 in row 0, key 0; an additive mask holds 0 and -inf; other numbers are a bias, "
      "AttentionOptions::bias");
  EXPECT_EQ(caught([] {
              Sampler{samplers::Temperature{0}}.distribution(std::vector<float>{1, 2});
            }),
            "Temperature: 0; expected a number above it, or samplers::Greedy");
  const Tensor<float, 3> tokens(6, 2, 8);
  EXPECT_EQ(caught([&] {
              packed_attention(tokens, tokens, tokens, {0, 6});
            }),
            "packed_attention: query offsets end with 6; expected 0, then the end of each "
            "sequence, up to the 2 tokens of a buffer (heads, tokens, head_dim)");
  EXPECT_EQ(caught([&] { x + Tensor<float, 2>(8, 4); }),
            "sum of tensors: (4, 8) and (8, 4); expected the same extents");
  EXPECT_EQ(caught([&] {
              heatmap_of(x, {"a", "b"});
            }),
            "heatmap_of: 2 row labels for a matrix (rows, columns) of (4, 8)");
}

TEST(Errors, ADrawingOfLessThanNothing) {
  EXPECT_EQ(caught([] { describe(masks::Causal{}, -1, 5); }),
            "statistics: -1 queries and 5 keys in tiles of 64 × 96; expected 0 or more in tiles of "
            "1 or more");
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

TEST(Errors, AMaskWithoutAFunctionIsRefusedBeforeAnythingIsWritten) {
  Tensor<float, 2> q({4, 8}, 1.f), out({4, 8}, 7.f);
  const std::function<bool(Index, Index)> none;
  bool (*const null)(Index, Index) = nullptr;
  EXPECT_THROW(attention(q, q, q, none, out), InvalidArgument);
  EXPECT_THROW(attention(q, q, q, null, out), InvalidArgument);
  EXPECT_THROW(attention(q, q, q, Mask(none), out), InvalidArgument);
  EXPECT_THROW(attention(q, q, q, masks::Causal{} & none, out), InvalidArgument);
  EXPECT_EQ(out, (Tensor<float, 2>({4, 8}, 7.f)));
}

TEST(Errors, AScoreFunctionThatIsEmptyIsRefusedBeforeTheCall) {
  AttentionOptions<float> options;
  float (*const null)(float, Position) = nullptr;
  EXPECT_THROW(options.score_function = null, InvalidArgument);
  EXPECT_EQ(caught([&] { options.score_function = std::function<float(float, Position)>(); }),
            "a score function is empty; expected one to call");
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
