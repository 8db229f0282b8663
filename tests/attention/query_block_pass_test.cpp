// SPDX-License-Identifier: MIT
#include <heed/attention/detail/forward_pass.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

TEST(QueryBlockPass, AnyRunOfRowsGivesTheRowsOfTheWhole) {
  const Shape shape{1, 2, 2, 100, 120, 7, 9};
  const Inputs<float> in(shape, 81);
  const auto whole = fused(shape, in, masks::Causal{});
  Tensor<float, 4> out({1, 2, 100, 9});
  const masks::Causal causal;
  const MaskRef mask(causal);
  detail::AttentionArgs<float> args{view_of(in.queries),
                                    view_of(in.keys),
                                    view_of(in.values),
                                    out.view(),
                                    {},
                                    1 / std::sqrt(7.f),
                                    20,
                                    {},
                                    {}};
  for (Index row = 0; row < 100; row += 23) {
    const Index rows = std::min<Index>(23, 100 - row);
    detail::QueryBlockPass<float>(args, mask, nullptr, 0, 1, row, rows).run();
  }
  EXPECT_EQ(std::memcmp(&out(0, 1, 0, 0), &whole.out(0, 1, 0, 0), 900 * sizeof(float)), 0);
  for (Index i = 0; i < 900; ++i) EXPECT_EQ(out.data()[i], 0.f) << "the other head is untouched";
}

TEST(QueryBlockPass, KeysOutsideTheMaskAreNotRead) {
  // The last page of the keys can be read; to touch one of the pages before it is a fault.
  const Index page = sysconf(_SC_PAGESIZE), pages = 40;
  const auto bytes = static_cast<std::size_t>(page * pages);
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* last = static_cast<char*>(memory) + page * (pages - 1);
  ASSERT_EQ(mprotect(last, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE), 0);
  auto* floats = reinterpret_cast<float*>(last);
  std::fill(floats, floats + page / 4, 1.f);
  const Index keys = page * pages / (8 * 4);
  const TensorView<const float, 4> view(static_cast<float*>(memory), {1, 1, keys, 8});
  Tensor<float, 4> q({1, 1, 4, 8}), out({1, 1, 4, 8});
  attention(q, view, view, masks::last_n(13), out);
  munmap(memory, bytes);
  for (const float value : out) EXPECT_EQ(value, 1.f);
}

}  // namespace
}  // namespace heed::test
