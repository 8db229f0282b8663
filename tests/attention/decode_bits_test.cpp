// SPDX-License-Identifier: MIT
// Decoding over bfloat16 keys and values that are widened as they are read, beside the same numbers
// as floats. Sets that multiply pairs of bfloat16 are left out: their bits are others.
#include <heed/attention/cached.hpp>
#include <heed/attention/forward.hpp>

#include <cstring>

#include <heed/masks.hpp>
#include <heed/tensor/copy.hpp>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

class DecodeBits : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// The numbers of a tensor in rows that are `gap` numbers apart, which are NaN.
struct Apart {
  Apart(const Tensor<bfloat16, 4>& from, Index gap) : columns(from.extent(3)) {
    Extents<4> extents = from.extents();
    extents[3] += gap;
    storage = Tensor<bfloat16, 4>(extents);
    std::fill(storage.begin(), storage.end(), bfloat16(std::numeric_limits<float>::quiet_NaN()));
    copy(from, storage.view().slice(3, 0, columns));
  }
  TensorView<const bfloat16, 4> view() const { return storage.view().slice(3, 0, columns); }
  Index columns;
  Tensor<bfloat16, 4> storage;
};

struct Wide {
  Tensor<float, 4> out;
  Tensor<float, 3> lse;
};
/// What floats give, many queries at a time.
template <class M>
Wide prefill(const Shape& shape, const NarrowInputs& in, const M& mask) {
  Wide result{Tensor<float, 4>({shape.batch, shape.heads, shape.queries, shape.value_dim}),
              Tensor<float, 3>({shape.batch, shape.heads, shape.queries})};
  attention(converted<float>(in.queries), converted<float>(in.keys), converted<float>(in.values),
            mask, result.out, {.log_sum_exp = result.lse});
  return result;
}

/// Bit equality of `part` with the last rows of `whole`.
bool last_rows_agree(const Wide& part, const Wide& whole) {
  const Index count = part.lse.extent(2), first = whole.lse.extent(2) - count;
  const auto bytes = static_cast<std::size_t>(part.out.extent(3)) * sizeof(float);
  for (Index b = 0; b < part.lse.extent(0); ++b) {
    for (Index h = 0; h < part.lse.extent(1); ++h) {
      for (Index q = 0; q < count; ++q) {
        const bool same =
            std::memcmp(&part.lse(b, h, q), &whole.lse(b, h, first + q), sizeof(float)) == 0 &&
            std::memcmp(&part.out(b, h, q, 0), &whole.out(b, h, first + q, 0), bytes) == 0;
        if (!same) return false;
      }
    }
  }
  return true;
}

/// The last `rows` queries of each head, by themselves; run(queries, out, options) attends.
template <class Run>
Wide decoded(const Shape& shape, const NarrowInputs& in, Index rows, const Run& run) {
  Wide result{Tensor<float, 4>({shape.batch, shape.heads, rows, shape.value_dim}),
              Tensor<float, 3>({shape.batch, shape.heads, rows})};
  AttentionOptions<float> options;
  options.log_sum_exp = result.lse;
  run(in.queries.view().slice(2, shape.queries - rows, shape.queries), result.out, options);
  return result;
}

TEST_P(DecodeBits, HasTheBitsOfFloats) {
  std::mt19937_64 bits(931);
  const auto upto = [&](Index n) { return static_cast<Index>(bits() % static_cast<unsigned>(n)); };
  for (int trial = 0; trial < 60; ++trial) {
    const Index kv_heads = 1 + upto(2), group = trial % 3 == 0 ? 1 : 1 + upto(9);
    const Index rows = trial % 3 == 0 ? 1 + upto(17) : 1 + upto(4), gap = 8 * upto(4);
    Shape shape{1 + upto(2),    kv_heads * group,    kv_heads,           rows + 17,
                40 + upto(700), 16 * (1 + upto(12)), 16 * (1 + upto(12))};
    if (trial % 10 == 9) shape.head_dim += 1 + upto(15);  // rows that are widened first
    if (trial % 10 == 4) shape.value_dim += 1 + upto(15);
    const auto seed = bits() % 1000;
    SCOPED_TRACE(shape.text() + " rows " + std::to_string(rows) + " gap " + std::to_string(gap) +
                 " seed " + std::to_string(seed));
    set_thread_count(1 + upto(3));
    const NarrowInputs in(shape, seed, trial % 4 == 0 ? 6.f : 1.f);
    const Apart keys(in.keys, gap), values(in.values, gap);
    const auto check = [&](const auto& mask) {
      const Wide few = decoded(shape, in, rows, [&](const auto& q, auto& out, const auto& options) {
        attention(q, keys.view(), values.view(), mask, out, options);
      });
      EXPECT_TRUE(last_rows_agree(few, prefill(shape, in, mask)));
    };
    check(masks::Full{});
    check(masks::Causal{});
    check(masks::SlidingWindow{.left = upto(300), .right = 0});
    check(masks::EveryNthKey{3});
  }
}

TEST_P(DecodeBits, OfEachNumberOfRowsAndOfLastKeys) {
  for (Index rows = 1; rows <= 20; ++rows) {
    const Shape shape{1, 2, 2, 40, 96 + rows, 32, 48};
    const NarrowInputs in(shape, 932 + static_cast<std::uint64_t>(rows));
    const Wide few = decoded(shape, in, rows, [&](const auto& q, auto& out, const auto& options) {
      attention(q, in.keys, in.values, masks::Full{}, out, options);
    });
    EXPECT_TRUE(last_rows_agree(few, prefill(shape, in, masks::Full{}))) << rows;
  }
}

TEST_P(DecodeBits, OverLongSequencesAndPages) {
  const Shape shape{1, 4, 2, 20, 3500, 64, 80};
  const NarrowInputs in(shape, 933);
  const Wide whole = prefill(shape, in, masks::Causal{});
  for (const Index page : {16, 48, 96, 112, 1536}) {
    const CacheShape sizes{1, 2, 64, 80, page, 3500 / page + 1};
    KeyValueCache<bfloat16> cache(sizes);
    KeyValueCache<float, bfloat16> of_float_queries(sizes);
    cache.append(in.keys, in.values);
    of_float_queries.append(converted<float>(in.keys), converted<float>(in.values));
    for (const Index rows : {1, 4}) {
      const Wide few = decoded(shape, in, rows, [&](const auto& q, auto& out, const auto& options) {
        attention(q, cache, masks::Causal{}, out, options);
      });
      EXPECT_TRUE(last_rows_agree(few, whole)) << "pages of " << page << ", rows " << rows;
      const Wide same =
          decoded(shape, in, rows, [&](const auto& q, auto& out, const auto& options) {
            attention(Tensor<float, 4>::copy_of(q), of_float_queries, masks::Causal{}, out,
                      options);
          });
      EXPECT_TRUE(last_rows_agree(same, whole)) << "pages of " << page << ", rows " << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DecodeBits, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
