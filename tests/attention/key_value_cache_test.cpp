// SPDX-License-Identifier: MIT
#include <heed/attention/key_value_cache.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>

namespace heed {
namespace {

/// Tokens whose numbers all are `mark` + their position.
Tensor<float, 3> tokens(Index count, float mark) {
  Tensor<float, 3> result({2, count, 4});
  for (Index head = 0; head < 2; ++head) {
    for (Index token = 0; token < count; ++token) {
      for (Index d = 0; d < 4; ++d) result(head, token, d) = mark + static_cast<float>(token);
    }
  }
  return result;
}

/// The first number of every token of a sequence, in its keys or its values.
std::vector<float> contents(const KeyValueCache<float>& cache, Index item, bool of_keys = true) {
  Tensor<const Index*, 1> tables({cache.shape().batch});
  cache.find_pages(tables);
  const auto tokens = of_keys ? cache.keys<float>(tables, cache.length(item))
                              : cache.values<float>(tables, cache.length(item));
  std::vector<float> result;
  for (Index token = cache.starts()[static_cast<std::size_t>(item)]; token < cache.length(item);
       ++token) {
    result.push_back(tokens(item, 1, token, 0));
  }
  return result;
}

void append(KeyValueCache<float>& cache, Index item, Index count, float mark) {
  const auto t = tokens(count, mark);
  cache.append(item, t.view(), t.view());
}

std::vector<float> ascending(Index count, float mark) {
  std::vector<float> result;
  for (Index i = 0; i < count; ++i) result.push_back(mark + static_cast<float>(i));
  return result;
}

const CacheShape shape{2, 2, 4, 4, 16, 5};

TEST(KeyValueCache, AppendsOverPages) {
  KeyValueCache<float> cache(shape);
  append(cache, 0, 10, 100);
  append(cache, 1, 1, 500);
  append(cache, 0, 20, 110);
  EXPECT_EQ(contents(cache, 0), ascending(30, 100));
  EXPECT_EQ(contents(cache, 1), ascending(1, 500));
  EXPECT_EQ(cache.free_pages(), 2);
}

TEST(KeyValueCache, AFullCacheStaysAsItWas) {
  KeyValueCache<float> cache(shape);
  append(cache, 0, 70, 100);  // all five pages
  try {
    append(cache, 1, 1, 0);
    FAIL();
  } catch (const CacheFull& error) {
    EXPECT_STREQ(error.what(),
                 "KeyValueCache: 1 more pages wanted, 0 of 5 free: truncate or forget tokens, or "
                 "make it of more pages");
  }
  EXPECT_EQ(cache.length(1), 0);
  append(cache, 0, 10, 170);  // the rest of the last page
  EXPECT_THROW(append(cache, 0, 1, 0), CacheFull);
  EXPECT_EQ(contents(cache, 0), ascending(80, 100));
  // For a whole batch: all sequences or none.
  KeyValueCache<float> small({2, 2, 4, 4, 16, 3});
  Tensor<float, 4> both({2, 2, 17, 4});
  EXPECT_THROW(small.append(both, both), CacheFull);
  EXPECT_EQ(small.length(0), 0);
  EXPECT_EQ(small.free_pages(), 3);
}

TEST(KeyValueCache, ForksShareUntilOneIsWrittenTo) {
  KeyValueCache<float> cache(shape);
  append(cache, 0, 20, 100);
  cache.fork(0, 1);
  EXPECT_EQ(cache.free_pages(), 3);
  append(cache, 1, 1, 900);
  EXPECT_EQ(cache.free_pages(), 2);  // the second page is two now
  append(cache, 0, 1, 120);
  EXPECT_EQ(contents(cache, 0), ascending(21, 100));
  auto forked = ascending(20, 100);
  forked.push_back(900);
  EXPECT_EQ(contents(cache, 1), forked);
  cache.fork(1, 1);
  EXPECT_EQ(contents(cache, 1), forked);
}

TEST(KeyValueCache, AFullPoolCannotCopyASharedPage) {
  KeyValueCache<float> cache({2, 2, 4, 4, 16, 2});
  append(cache, 0, 20, 100);
  cache.fork(0, 1);
  EXPECT_THROW(append(cache, 1, 1, 900), CacheFull);
  EXPECT_EQ(contents(cache, 1), ascending(20, 100));
}

TEST(KeyValueCache, ValuesOfASharedPageAreCopiedToo) {
  KeyValueCache<float> cache(shape);
  const auto keys = tokens(5, 100), values = tokens(5, 300);
  cache.append(0, keys.view(), values.view());
  cache.fork(0, 1);
  const auto more_keys = tokens(1, 900), more_values = tokens(1, 950);
  cache.append(1, more_keys.view(), more_values.view());
  auto forked = ascending(5, 300);
  forked.push_back(950);
  EXPECT_EQ(contents(cache, 1, false), forked);
  EXPECT_EQ(contents(cache, 0, false), ascending(5, 300));
}

TEST(KeyValueCache, TheLastToWriteToASharedPageHasIt) {
  // Three sequences on one page that has room: two copies are enough for all.
  const Index parents[] = {0, 0, 0};
  Tensor<float, 4> next({3, 2, 1, 4});
  for (Index item = 0; item < 3; ++item) next(item, 1, 0, 0) = static_cast<float>(900 + item);
  for (const Index pages : {2, 3}) {
    KeyValueCache<float> cache({3, 2, 4, 4, 16, pages});
    append(cache, 0, 5, 100);
    cache.reorder(parents);
    if (pages == 2) {
      EXPECT_THROW(cache.append(next, next), CacheFull);
      EXPECT_EQ(contents(cache, 1), ascending(5, 100));
      EXPECT_EQ(cache.free_pages(), 1);
      continue;
    }
    cache.append(next, next);
    EXPECT_EQ(cache.free_pages(), 0);
    for (Index item = 0; item < 3; ++item) {
      auto expected = ascending(5, 100);
      expected.push_back(static_cast<float>(900 + item));
      EXPECT_EQ(contents(cache, item), expected) << item;
      EXPECT_EQ(contents(cache, item, false), expected) << item;
    }
  }
}

TEST(KeyValueCache, APageThatSomebodyReadsIsCopiedByEveryWriter) {
  // Sequence 0 goes on behind the page that 1 and 2 write to, so all of these copy it.
  KeyValueCache<float> cache({3, 2, 4, 4, 16, 4});
  append(cache, 0, 18, 100);
  cache.fork(0, 1);
  cache.fork(0, 2);
  cache.truncate(1, 10);
  cache.truncate(2, 10);
  EXPECT_EQ(cache.free_pages(), 2);
  const Tensor<float, 4> next({3, 2, 1, 4});
  cache.append(next, next);
  EXPECT_EQ(cache.free_pages(), 0);
  auto first = ascending(18, 100), others = ascending(10, 100);
  first.push_back(0);
  others.push_back(0);
  EXPECT_EQ(contents(cache, 0), first);
  EXPECT_EQ(contents(cache, 1), others);
  EXPECT_EQ(contents(cache, 2), others);
}

/// What can be seen of a cache: free pages, and of every sequence its room, its pages, its keys and
/// its values.
std::vector<std::vector<float>> seen_of(const KeyValueCache<float>& cache) {
  std::vector<std::vector<float>> all = {{static_cast<float>(cache.free_pages())}};
  Tensor<const Index*, 1> tables({cache.shape().batch});
  cache.find_pages(tables);
  for (Index item = 0; item < cache.shape().batch; ++item) {
    const Index pages = detail::parts_of(cache.length(item), cache.shape().page_size);
    all.push_back({static_cast<float>(cache.room(item))});
    all.emplace_back(tables[item], tables[item] + pages);
    all.push_back(contents(cache, item));
    all.push_back(contents(cache, item, false));
  }
  return all;
}

TEST(KeyValueCache, TakesBackWhatWasAppended) {
  Random random(5);
  Index copies = 0;
  for (int round = 0; round < 300; ++round) {
    KeyValueCache<float> cache({4, 2, 4, 4, 16, 30});
    append(cache, 0, random.integer(40), 100);
    append(cache, 1, random.integer(40), 200);
    for (const Index item : {1, 2, 3}) cache.fork(random.integer(4), item);
    for (const Index item : {0, 1, 2, 3}) {
      cache.truncate(item, cache.length(item) - random.integer(cache.length(item) + 1) / 3);
    }
    if (round % 3 == 0) cache.forget(0, cache.length(0), 3);
    const auto before = seen_of(cache);
    const auto ends = cache.ends();
    for (int i = 0; i < 8; ++i) append(cache, random.integer(4), random.integer(9), 300);
    Index pages = 0;
    for (const Index item : {0, 1, 2, 3}) {
      pages += detail::parts_of(cache.length(item), 16);
      pages -= detail::parts_of(ends.lengths[item], 16);
    }
    copies += before[0][0] - static_cast<float>(cache.free_pages()) > static_cast<float>(pages);
    cache.take_back(ends);
    ASSERT_EQ(seen_of(cache), before) << round;
  }
  EXPECT_GT(copies, 100) << "rounds in which a shared page was copied";
}

TEST(KeyValueCache, DimsMayBeZero) {
  for (const Index dim : {0, 4}) {
    KeyValueCache<float> cache({2, 2, dim, 4 - dim, 16, 6});
    const Tensor<float, 3> keys({2, 20, dim}), values({2, 20, 4 - dim});
    cache.append(0, keys.view(), values.view());
    cache.fork(0, 1);
    cache.append(1, keys.view(), values.view());  // copies a page
    EXPECT_EQ(cache.length(1), 40);
    EXPECT_EQ(cache.free_pages(), 2);
  }
}

TEST(KeyValueCache, ViewsOfMoreTokensThanThereCanBeAreTooMany) {
  constexpr Index most = std::numeric_limits<Index>::max();
  const float zero = 0;
  for (const Index tokens : {most, most - 7, most / 2, Index{81}}) {
    const TensorView<const float, 3> many(&zero, {1, tokens, 1}, {0, 0, 1});
    const TensorView<const float, 4> batch(&zero, {40, 1, tokens / 40, 1}, {0, 0, 0, 1});
    KeyValueCache<float> cache({40, 1, 1, 1, 16, 5});
    EXPECT_THROW(cache.append(0, many, many), CacheFull) << tokens;
    cache.append(0, many.slice(1, 0, 3), many.slice(1, 0, 3));
    EXPECT_THROW(cache.append(0, many, many), CacheFull) << tokens;
    EXPECT_THROW(cache.append(batch, batch), CacheFull) << tokens;
    EXPECT_EQ(cache.length(0), 3);
    EXPECT_EQ(cache.free_pages(), 4);
  }
}

TEST(KeyValueCache, TruncatesAndGoesOn) {
  KeyValueCache<float> cache(shape);
  append(cache, 0, 40, 100);
  cache.fork(0, 1);
  cache.truncate(1, 18);
  append(cache, 1, 2, 700);
  EXPECT_EQ(contents(cache, 0), ascending(40, 100));
  auto expected = ascending(18, 100);
  expected.push_back(700);
  expected.push_back(701);
  EXPECT_EQ(contents(cache, 1), expected);
  cache.truncate(0, 0);
  cache.truncate(1, 0);
  EXPECT_EQ(cache.free_pages(), 5);
  EXPECT_THROW(cache.truncate(0, 1), ShapeError);
}

TEST(KeyValueCache, ReordersBeams) {
  KeyValueCache<float> cache({3, 2, 4, 4, 16, 9});
  for (Index item = 0; item < 3; ++item) append(cache, item, 20, 100.f * static_cast<float>(item));
  const Index parents[] = {2, 2, 0};
  cache.reorder(parents);
  EXPECT_EQ(contents(cache, 0), ascending(20, 200));
  EXPECT_EQ(contents(cache, 1), ascending(20, 200));
  EXPECT_EQ(contents(cache, 2), ascending(20, 0));
  EXPECT_EQ(cache.free_pages(), 5);
  const Index wrong[] = {0, 3, 0};
  EXPECT_THROW(cache.reorder(wrong), ShapeError);
  EXPECT_EQ(contents(cache, 2), ascending(20, 0));
}

TEST(KeyValueCache, AForkGivesBackWhatStoodThereBefore) {
  KeyValueCache<float> cache({2, 2, 4, 4, 16, 5});
  append(cache, 0, 20, 0);
  for (int round = 0; round < 10; ++round) {
    append(cache, 1, 30, 50);
    EXPECT_EQ(cache.free_pages(), 1) << round;
    cache.fork(0, 1);
    EXPECT_EQ(cache.free_pages(), 3) << round;
    cache.truncate(1, 0);
  }
  EXPECT_EQ(contents(cache, 0), ascending(20, 0));
}

TEST(KeyValueCache, ARingForgetsPages) {
  // A window of 20 tokens needs three pages of 16, however long the sequence grows.
  KeyValueCache<float> cache({1, 2, 4, 4, 16, 3});
  for (Index token = 0; token < 500; ++token) {
    cache.forget(0, token - 20);
    append(cache, 0, 1, static_cast<float>(token));
  }
  EXPECT_EQ(cache.length(0), 500);
  const Index start = cache.starts()[0];
  EXPECT_EQ(contents(cache, 0), ascending(500 - start, static_cast<float>(start)));
  EXPECT_THROW(cache.truncate(0, start - 1), ShapeError);
}

TEST(KeyValueCache, WhatIsForgottenStaysForgotten) {
  KeyValueCache<float> cache({2, 2, 4, 4, 16, 6});
  append(cache, 0, 40, 100);
  cache.forget(0, 32);
  cache.forget(0, 5);
  cache.forget(0, -3);
  EXPECT_THROW(cache.forget(0, 41), ShapeError) << "beyond the last token";
  EXPECT_EQ(cache.starts()[0], 32);
  EXPECT_EQ(contents(cache, 0), ascending(8, 132));
  cache.fork(0, 1);
  EXPECT_EQ(cache.starts()[1], 32);
  EXPECT_EQ(cache.length(1), 40);
  EXPECT_EQ(contents(cache, 1), ascending(8, 132));
  append(cache, 1, 20, 140);
  EXPECT_EQ(contents(cache, 1), ascending(28, 132));
  EXPECT_EQ(contents(cache, 0), ascending(8, 132));
  cache.truncate(0, 32);
  cache.truncate(1, 32);
  EXPECT_EQ(cache.free_pages(), 6);
}

TEST(KeyValueCache, IsMadeForSoManyTokens) {
  auto cache = KeyValueCache<float>::for_tokens({.batch = 2, .kv_heads = 2, .head_dim = 4}, 100);
  EXPECT_EQ(cache.shape().value_dim, 4);
  const Tensor<float, 4> most({2, 2, 100, 4}), more({2, 2, 93, 4});
  cache.append(most, most);
  EXPECT_EQ(cache.free_pages(), 0);
  EXPECT_EQ(cache.length(1), 100);
  EXPECT_THROW(cache.append(more, more), CacheFull);
  EXPECT_THROW(KeyValueCache<float>::for_tokens({.batch = 2}, -1), ShapeError);
}

TEST(KeyValueCache, SaysWhatDoesNotFit) {
  EXPECT_THROW(KeyValueCache<float>({1, 1, 4, 4, 24, 1}), ShapeError);
  EXPECT_THROW(KeyValueCache<float>({1, 1, 4, 4, 16, -1}), ShapeError);
  EXPECT_EQ(KeyValueCache<float>({1, 1, 4, 4, 16, 0}).free_pages(), 0);
  KeyValueCache<float> cache(shape);
  const auto right = tokens(3, 0);
  const Tensor<float, 3> heads({3, 3, 4}), dims({2, 3, 5}), count({2, 4, 4});
  EXPECT_THROW(cache.append(0, heads.view(), right.view()), ShapeError);
  EXPECT_THROW(cache.append(0, right.view(), dims.view()), ShapeError);
  EXPECT_THROW(cache.append(0, right.view(), count.view()), ShapeError);
  EXPECT_THROW(cache.append(2, right.view(), right.view()), ShapeError);
  EXPECT_THROW(cache.fork(0, -1), ShapeError);
  EXPECT_EQ(cache.free_pages(), 5);
}

TEST(KeyValueCache, RoomIsWhatCanBeAppended) {
  KeyValueCache<float> cache(
      {.batch = 2, .kv_heads = 2, .head_dim = 4, .page_size = 16, .pages = 3});
  const auto all = tokens(20, 0);
  const auto append = [&](Index count) {
    const auto some = all.view().slice(1, 0, count);
    cache.append(0, some, some);
  };
  EXPECT_EQ(cache.room(0), 48);
  append(20);
  EXPECT_EQ(cache.room(0), 28);
  EXPECT_EQ(cache.room(1), 16);
  cache.reorder(std::vector<Index>{0, 0});  // they share two pages; the second is partly free
  EXPECT_EQ(cache.room(0), 12) << "the free page becomes the copy of the shared one";
  EXPECT_THROW(append(13), CacheFull);
  append(12);
  EXPECT_EQ(cache.room(0), 0);
}

TEST(KeyValueCache, RoomIsAskedForAllSequencesTogether) {
  using Counts = std::vector<Index>;
  KeyValueCache<float> cache({3, 2, 4, 4, 16, 3});
  append(cache, 0, 5, 100);
  cache.reorder({0, 0, 0});  // one page of three is taken
  EXPECT_NO_THROW(cache.check_room(Counts{1, 1, 1})) << "the last one needs no copy";
  EXPECT_NO_THROW(cache.check_room(Counts{0, 1, 0}));
  EXPECT_NO_THROW(cache.check_room(Counts{12, 0, 0})) << "a copy and a page";
  EXPECT_THROW(cache.check_room(Counts{28, 0, 0}), CacheFull);
  EXPECT_THROW(cache.check_room(Counts{12, 1, 0}), CacheFull) << "both copy, the third one stays";
  EXPECT_THROW(cache.check_room(Counts{1, 1, 12}), CacheFull);
  EXPECT_THROW(cache.check_room(Counts{1, 1}), ShapeError);
  EXPECT_THROW(cache.check_room(Counts{1, -1, 1}), ShapeError);
}

TEST(KeyValueCache, MovedFromHasNoSequences) {
  KeyValueCache<float> cache(
      {.batch = 2, .kv_heads = 2, .head_dim = 4, .page_size = 16, .pages = 4});
  const Tensor<float, 4> token({2, 2, 1, 4});
  cache.append(token, token);
  KeyValueCache<float> moved = std::move(cache);
  EXPECT_EQ(moved.length(1), 1);
  // NOLINTBEGIN(bugprone-use-after-move): the moved-from state is promised
  EXPECT_EQ(cache.shape().batch, 0);
  EXPECT_THROW(cache.append(token, token), ShapeError);
  EXPECT_THROW(cache.append(0, token.view().select(0, 0), token.view().select(0, 0)), ShapeError);
  cache = std::move(moved);
  EXPECT_EQ(moved.shape().batch, 0);
  // NOLINTEND(bugprone-use-after-move)
  cache.append(token, token);
  EXPECT_EQ(cache.length(0), 2);
}

}  // namespace
}  // namespace heed
