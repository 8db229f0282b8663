// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/tensor/copy.hpp>

#include "support/attention_cases.hpp"
#include "support/mask_catalogue.hpp"
#include "support/score_mods.hpp"

namespace heed::test {
namespace {

/// Computes the rows [row, end) of a call whose keys come a chunk at a time; only the chunk that is
/// there can be read.
template <class T, class M>
void run_in_parts(const Inputs<T>& in, const M& mask, const AttentionOptions<T>& options, Index row,
                  Index end, Result<T>& result) {
  const Index keys = in.keys.extent(2), page = simd::key_chunk, batch = in.keys.extent(0);
  const Index pages = detail::parts_of(keys, page);
  const auto page_of = [&](const Tensor<T, 4>& from, Index first) {
    Tensor<T, 4> some({batch, from.extent(1), page, from.extent(3)});
    some.fill(std::numeric_limits<T>::quiet_NaN());
    const Index last = std::min(first + page, keys);
    copy(from.view().slice(2, first, last), some.view().slice(2, 0, last - first));
    return some;
  };
  Tensor<Index, 2> lists({batch, pages});
  std::vector<const Index*> tables;
  for (Index item = 0; item < batch; ++item) tables.push_back(lists[item].data_handle());
  const auto operand = [&](const Tensor<T, 4>& there, const Tensor<T, 4>& all) {
    return detail::Operand<T>(there.data(), page, tables.data(), all.extents());
  };
  auto some = options;
  if (!some.first_query) some.first_query = keys - in.queries.extent(2);
  if (options.bias.given()) some.bias = options.bias.view().slice(2, row, end);
  const auto lse = result.lse.view().slice(2, row, end);
  some.log_sum_exp = lse;
  const auto queries = in.queries.view().slice(2, row, end);
  const auto out = result.out.view().slice(2, row, end);
  const auto args_with = [&](const Tensor<T, 4>& k, const Tensor<T, 4>& v) {
    auto args = detail::checked_args<T>(queries, operand(k, in.keys), operand(v, in.values),
                                        detail::Result<T>(out), some);
    args.query_offset = row;
    return args;
  };
  const MaskRef ref(mask);
  detail::PausedRows<T> rows(args_with(in.keys, in.values));
  Index calls = 0;
  for (Index first = 0; first < keys; first += page) {
    for (Index& entry : lists) entry = -1'000'000;
    for (Index item = 0; item < batch; ++item) lists(item, first / page) = item;
    const Tensor<T, 4> k = page_of(in.keys, first), v = page_of(in.values, first);
    const auto args = args_with(k, v);
    if (!detail::may_see(args, ref, first, first + page)) continue;
    detail::take_keys<T>(args, ref, first, first + page, rows, [&] { ++calls; });
  }
  detail::write_rows<T>(args_with(in.keys, in.values), ref, rows);
  if (thread_count() == 1 && queries.extent(2) > 0 && keys > 0) {
    EXPECT_GT(calls, 0);
  }
}

template <class M>
void expect_same_in_parts(const Shape& shape, const M& mask, AttentionOptions<float> options = {}) {
  const Inputs<float> in(shape, 5);
  const auto whole = fused(shape, in, mask, options);
  Result<float> parts(shape);
  parts.out.fill(std::numeric_limits<float>::quiet_NaN());
  const Index cut = shape.queries / 3;
  run_in_parts(in, mask, options, 0, cut, parts);
  run_in_parts(in, mask, options, cut, shape.queries, parts);
  EXPECT_TRUE(same_bits(parts.out, whole.out));
  EXPECT_TRUE(same_bits(parts.lse, whole.lse));
}

TEST(PausedRows, KeysThatComeInPartsGiveTheBitsOfTheWhole) {
  const RestoreSettings restore;
  set_thread_count(2);  // with one, masks that show little make no task that waits
  const Shape shape{2, 2, 1, 1700, 1700, 5, 3};
  for_each_mask(1700, [&](const auto& named) {
    SCOPED_TRACE(named.name);
    expect_same_in_parts(shape, named.mask);
  });
}

TEST(PausedRows, ChangesOfScoresSeeTheWholeSequence) {
  const RestoreSettings restore;
  const Shape shape{1, 4, 2, 150, 1700, 8, 8};
  const Changes<float> changes(shape, 3);
  for (const Index threads : {1, 2}) {
    set_thread_count(threads);
    for (unsigned which = 1; which <= Changes<float>::all; which *= 2) {
      SCOPED_TRACE(which);
      expect_same_in_parts(shape, masks::Causal{}, changes.options(which));
    }
    expect_same_in_parts(shape, masks::last_n(40), changes.options(Changes<float>::all));
  }
}

TEST(PausedRows, NoKeysAtAllGiveZeros) {
  expect_same_in_parts({1, 1, 1, 70, 0, 4, 4}, masks::Full{});
}

/// Two processes with every other chunk each: both compute theirs, and the total goes to and fro.
template <class T, class M>
void expect_same_in_chunks(const Shape& shape, const M& mask, AttentionOptions<T> options = {}) {
  const Inputs<T> in(shape, 5);
  const auto whole = fused(shape, in, mask, options);
  Result<T> result(shape);
  result.out.fill(std::numeric_limits<T>::quiet_NaN());
  options.log_sum_exp = result.lse;
  const auto args = detail::checked_args<T>(in.queries.view(), in.keys.view(), in.values.view(),
                                            detail::Result<T>(result.out.view()), options);
  const MaskRef ref(mask);
  std::vector<Index> lists[2];
  const Index chunks = detail::parts_of(shape.keys, simd::key_chunk);
  for (Index chunk = 0; chunk < chunks; ++chunk) lists[chunk % 2].push_back(chunk);
  const Index rows = shape.batch * shape.heads * shape.queries;
  detail::ChunkRows<T> of[] = {{rows, shape.value_dim, lists[0]},
                               {rows, shape.value_dim, lists[1]}};
  for (auto& each : of) detail::take_chunks<T>(args, ref, each);
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    auto& mine = of[chunk % 2];
    if (chunk > 0) copy(of[1 - chunk % 2].total(), mine.total());
    detail::add_chunks<T>(args, ref, chunk / 2, chunk / 2 + 1, chunk > 0, mine);
  }
  auto& last = of[(chunks + 1) % 2];
  if (chunks == 0) detail::add_chunks<T>(args, ref, 0, 0, false, last);
  detail::write_total<T>(args, ref, last);
  EXPECT_TRUE(same_bits(result.out, whole.out));
  EXPECT_TRUE(same_bits(result.lse, whole.lse));
}

TEST(ChunkRows, ChunksOfSeveralProcessesGiveTheBitsOfOne) {
  const RestoreSettings restore;
  Index calls = 0, refused = 0;
  for_each_mask(4000, [&](const auto& named) {
    for (const Index queries : {1, 7, 40}) {
      SCOPED_TRACE(named.name + " " + std::to_string(queries));
      set_thread_count(1 + calls++ % 2);
      try {
        expect_same_in_chunks<float>({2, 2, 1, queries, 4000, 5, 3}, named.mask);
      } catch (const ShapeError&) {  // a Dense mask has a row for each of 4,000 queries
        ++refused;
      }
    }
  });
  EXPECT_LE(refused, 6);
  EXPECT_GT(calls, 90);
}

TEST(ChunkRows, ChangesOfScoresSeeTheWholeSequence) {
  for (const Index queries : {3, 30}) {
    const Shape shape{2, 4, 2, queries, 3300, 6, 8};
    const Changes<double> changes(shape, 3);
    for (unsigned which = 1; which <= Changes<double>::all; which = 2 * which + which / 64) {
      SCOPED_TRACE(which);
      auto options = changes.options(which);
      if (which == 16) options.key_counts = {3300, 1000};
      expect_same_in_chunks<double>(shape, masks::Causal{}, options);
    }
  }
  expect_same_in_chunks<float>({2, 1, 1, 3, 0, 4, 4}, masks::Full{});
}

}  // namespace
}  // namespace heed::test
