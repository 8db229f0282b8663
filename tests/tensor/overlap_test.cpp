// SPDX-License-Identifier: MIT
#include <heed/tensor/overlap.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

#include <tensor/random_view.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {
namespace {

/// Every element's address, one by one; duplicates counted once.
template <std::size_t Rank>
std::set<const float*> addresses(const TensorView<float, Rank>& view) {
  std::set<const float*> all;
  detail::for_each_row(view.extents(), [&](const Extents<Rank>& at) {
    const auto row = detail::row_at(view, at);
    for (Index i = 0; i < row.extent(0); ++i) all.insert(&row[i]);
  });
  return all;
}

TEST(Overlap, NeverMissesASharedElement) {
  int shared_pairs = 0, apart_pairs = 0;
  for (std::uint64_t stream = 0; stream < 3000; ++stream) {
    Random random(21, stream);
    Tensor<float, 1> memory({40});
    const auto any_view = [&] {
      const Index rows = random.integer(4), columns = random.integer(4);
      const Index row_step = random.integer(9) - 4, column_step = random.integer(5) - 2;
      return TensorView<float, 2>(memory.data() + 18 + random.integer(5), {rows, columns},
                                  {row_step, column_step});
    };
    const auto a = any_view(), b = any_view();
    const auto of_a = addresses(a), of_b = addresses(b);
    bool shared = false;
    for (const float* address : of_a) shared = shared || of_b.count(address) > 0;
    if (shared) {
      ASSERT_TRUE(overlaps(a, b)) << "stream " << stream;
    }
    ASSERT_EQ(overlaps(a, b), overlaps(b, a));
    const bool apart = of_a.empty() || of_b.empty() || *of_a.rbegin() < *of_b.begin() ||
                       *of_b.rbegin() < *of_a.begin();
    if (apart) {
      ASSERT_FALSE(overlaps(a, b)) << "stream " << stream;
    }
    shared_pairs += shared;
    apart_pairs += apart;
  }
  EXPECT_GT(shared_pairs, 300);
  EXPECT_GT(apart_pairs, 300);
}

TEST(Overlap, NeighborsTouchAndStayApart) {
  Tensor<float, 2> tensor({4, 4});
  const auto view = tensor.view();
  EXPECT_FALSE(overlaps(view.slice(0, 0, 2), view.slice(0, 2, 4)));
  EXPECT_FALSE(overlaps(view.slice(0, 0, 2).reverse(0), view.slice(0, 2, 4).reverse(1)));
  EXPECT_TRUE(overlaps(view.slice(0, 0, 3), view.slice(0, 2, 4)));
  EXPECT_FALSE(overlaps(view.slice(1, 0, 2), view.slice(1, 2, 4)));
  EXPECT_FALSE(overlaps(view.slice(1, 2, 4).reverse(0), view.slice(0, 1, 3).slice(1, 0, 2)));
  EXPECT_TRUE(overlaps(view.slice(1, 0, 3), view.slice(1, 2, 4)));
  Tensor<double, 1> other({4});
  EXPECT_FALSE(overlaps(view, other.view()));
  const TensorView<const std::uint8_t, 1> last_byte(
      reinterpret_cast<const std::uint8_t*>(tensor.end()) - 1, {1});
  EXPECT_TRUE(overlaps(view, last_byte));
}

TEST(Overlap, ColumnsOfAMatrixAreToldApart) {
  int apart = 0;
  for (std::uint64_t stream = 0; stream < 2000; ++stream) {
    Random random(24, stream);
    Tensor<float, 3> tensor({1 + random.integer(3), 2 + random.integer(3), 8});
    const auto columns = [&] {
      const Index first = random.integer(8), last = first + 1 + random.integer(8 - first);
      auto view = tensor.view().slice(2, first, last);
      if (random.integer(2) != 0) view = view.reverse(static_cast<std::size_t>(random.integer(3)));
      return random.integer(2) != 0 ? view.permute({1, 2, 0}) : view;
    };
    const auto a = columns(), b = columns();
    const auto of_a = addresses(a);
    bool shared = false;
    for (const float* address : addresses(b)) shared = shared || of_a.count(address) > 0;
    ASSERT_EQ(overlaps(a, b), shared) << "stream " << stream;
    apart += !shared;
  }
  EXPECT_GT(apart, 300);
}

TEST(Overlap, NothingOverlapsNothing) {
  Tensor<float, 2> tensor({4, 4});
  EXPECT_FALSE(overlaps(tensor.view(), tensor.view().slice(1, 2, 2)));
  EXPECT_FALSE(overlaps(TensorView<float, 1>(), TensorView<float, 1>()));
}

TEST(Overlap, InternalIsNeverMissed) {
  int overlapping = 0, distinct = 0;
  for (std::uint64_t stream = 0; stream < 3000; ++stream) {
    Random random(22, stream);
    Tensor<float, 1> memory({200});
    Extents<3> extents{}, strides{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      extents[axis] = random.integer(4);
      strides[axis] = random.integer(25) - 12;
    }
    const TensorView<float, 3> view(memory.data() + 100, extents, strides);
    const bool unique = static_cast<Index>(addresses(view).size()) == view.size();
    if (!unique) {
      ASSERT_TRUE(has_internal_overlap(view)) << "stream " << stream;
    }
    overlapping += !unique;
    distinct += unique;
  }
  EXPECT_GT(overlapping, 300);
  EXPECT_GT(distinct, 300);
}

TEST(Overlap, InternalIsExactForViewsOfTensors) {
  for (std::uint64_t stream = 0; stream < 1000; ++stream) {
    Random random(23, stream);
    const test::RandomView<3> plain(random, false);
    ASSERT_FALSE(has_internal_overlap(plain.view())) << "stream " << stream;
    const test::RandomView<3> repeated(random, true);
    const bool unique =
        static_cast<Index>(addresses(repeated.view()).size()) == repeated.view().size();
    ASSERT_EQ(has_internal_overlap(repeated.view()), !unique) << "stream " << stream;
  }
}

TEST(Overlap, ExtremeStridesWithoutOverflow) {
  char byte = 0;
  constexpr Index least = std::numeric_limits<Index>::min();
  const TensorView<char, 2> one(&byte, {1, 1}, {least, least});
  EXPECT_FALSE(has_internal_overlap(one));
  EXPECT_TRUE(overlaps(one, one));
}

}  // namespace
}  // namespace heed
