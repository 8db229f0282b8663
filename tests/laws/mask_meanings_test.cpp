// SPDX-License-Identifier: MIT
// What every mask lets through, score by score, against its definition written a second time.
#include <heed/masks.hpp>

#include <cstdlib>
#include <vector>

#include "laws/mask_laws.hpp"

namespace heed::laws {
namespace {

using namespace masks;

constexpr Index length = 23;

/// `mask` allows exactly what `meaning(batch, head, query, key)` says, for queries before, inside
/// and after the sequence.
template <MaskPolicy M, class Meaning>
void expect_means(const M& mask, Meaning meaning) {
  for (Index batch = 0; batch < 2; ++batch) {
    for (Index head = 0; head < 2; ++head) {
      for (Index query = -9; query < length + 9; ++query) {
        for (Index key = 0; key < length; ++key) {
          ASSERT_EQ(allows(mask, {batch, head, query, key}), meaning(batch, head, query, key))
              << "batch " << batch << ", head " << head << ", query " << query << ", key " << key;
        }
      }
    }
  }
}
template <MaskPolicy M, class Meaning>
void expect_means_of_two(const M& mask, Meaning meaning) {
  expect_means(mask, [&](Index, Index, Index query, Index key) { return meaning(query, key); });
}

bool inside(Index position, Index end = length) { return position >= 0 && position < end; }

TEST(MaskMeanings, OfRelativePositions) {
  expect_means_of_two(Full{}, [](Index, Index) { return true; });
  expect_means_of_two(Causal{}, [](Index query, Index key) { return key <= query; });
  for (Index left = -1; left < 5; ++left) {
    for (Index right = -1; right < 5; ++right) {
      expect_means_of_two(SlidingWindow{left, right}, [&](Index query, Index key) {
        return (left < 0 || query - left <= key) && (right < 0 || key <= query + right);
      });
    }
  }
  for (Index count = 1; count < 6; ++count) {
    expect_means_of_two(last_n(count), [&](Index query, Index key) {
      Index seen = 0;  // keys from this one to the query, both counted
      for (Index position = key; position <= query; ++position) ++seen;
      return seen >= 1 && seen <= count;
    });
  }
  for (const Index count : {Index{0}, Index{1}, Index{4}, length, 2 * length}) {
    expect_means_of_two(first_n(count), [&](Index, Index key) { return key < count; });
  }
}

TEST(MaskMeanings, OfRegularPatterns) {
  for (Index step = 1; step < 8; ++step) {
    expect_means_of_two(Strided{step},
                        [&](Index query, Index key) { return std::abs(query - key) % step == 0; });
    expect_means_of_two(EveryNthKey{step}, [&](Index, Index key) { return key % step == 0; });
    expect_means_of_two(Chunked{step}, [&](Index query, Index key) {
      const Index begin = key - key % step;
      return begin <= query && query < begin + step;
    });
  }
}

TEST(MaskMeanings, OfPaddingAndPrefixes) {
  const std::vector<Index> begins = {2, 0}, ends = {17, 23};
  expect_means(Padding(begins, ends), [&](Index batch, Index, Index, Index key) {
    const auto item = static_cast<std::size_t>(batch);
    return begins[item] <= key && key < ends[item];
  });
  expect_means(Padding(ends), [&](Index batch, Index, Index, Index key) {
    return key < ends[static_cast<std::size_t>(batch)];
  });
  expect_means(Prefix(ends), [&](Index batch, Index, Index query, Index key) {
    return key < ends[static_cast<std::size_t>(batch)] || key <= query;
  });
  expect_means_of_two(Prefix(7), [](Index query, Index key) { return key < 7 || key <= query; });
  std::vector<int> tokens;
  for (int i = 0; i < 2 * length; ++i) tokens.push_back(i * i % 7);
  expect_means(padding_of_tokens(tokens, length, 2), [&](Index batch, Index, Index, Index key) {
    return tokens[static_cast<std::size_t>(batch * length + key)] != 2;
  });
}

TEST(MaskMeanings, OfGroupsAndSegments) {
  const std::vector<Index> ids = {3, 1, 1, 3, 0, 2, 2, 3, 1};
  expect_means_of_two(Groups(ids), [&](Index query, Index key) {
    const auto at = [&](Index i) { return ids[static_cast<std::size_t>(i)]; };
    return inside(query, 9) && inside(key, 9) && at(query) == at(key);
  });
  expect_means_of_two(Segments({0, 4, 4, 11, 19}), [](Index query, Index key) {
    const auto segment = [](Index i) { return i < 4 ? 0 : i < 11 ? 1 : 2; };
    return inside(query, 19) && inside(key, 19) && segment(query) == segment(key);
  });
  expect_means_of_two(consecutive_groups({4, 0, 7, 8}), [](Index query, Index key) {
    return Segments({0, 4, 4, 11, 19}).allows({0, 0, query, key});
  });
}

TEST(MaskMeanings, OfPositionLists) {
  const auto listed = [](Index position) {
    return position == 4 || position == 9 || position == 20;
  };
  expect_means_of_two(GlobalTokens({9, 4, 20, 4}),
                      [&](Index query, Index key) { return listed(query) || listed(key); });
  expect_means_of_two(MaskedToken({20, 9, 4}),
                      [&](Index query, Index key) { return !(query == key && listed(query)); });
}

TEST(MaskMeanings, OfLayouts) {
  const auto on = [](Index row, Index column) { return (row * 3 + column * 5) % 4 < 2; };
  expect_means_of_two(BlockSparse(5, 4, 4, on), [&](Index query, Index key) {
    return inside(query, 20) && inside(key, 16) && on(query / 4, key / 4);
  });
  expect_means(Dense({2, 2, 11, length}, [&](Index item, Index head, Index row,
                                             Index key) { return on(row + item, key + 2 * head); }),
               [&](Index batch, Index head, Index query, Index key) {
                 const Index row = query - (length - 11);
                 return inside(row, 11) && on(row + batch, key + 2 * head);
               });
  expect_means(PerHead({Causal{}, EveryNthKey{3}}), [](Index, Index head, Index query, Index key) {
    return head == 0 ? key <= query : key % 3 == 0;
  });
  expect_means(
      valid_cells(2, 4, 5,
                  [](Index item, Index row, Index column) { return row != column + item; }),
      [](Index batch, Index, Index, Index key) { return key < 20 && key / 5 != key % 5 + batch; });
}

TEST(MaskMeanings, OfTreesAndGrids) {
  const std::vector<Index> parents = {-1, 0, 0, 1, 1, 2, -1, 6, 3, 3, 9};
  for (const Index cached : {0, 1, 8}) {
    const Tree tree(cached, parents);
    const auto end = cached + static_cast<Index>(parents.size());
    expect_means_of_two(tree, [&](Index query, Index key) {
      if (!inside(query, end) || !inside(key, end)) return false;
      if (key < cached) return key <= query;
      Index at = query;
      while (at >= cached && at != key) {
        const Index parent = parents[static_cast<std::size_t>(at - cached)];
        at = parent < 0 ? cached - 1 : cached + parent;
      }
      return at == key;
    });
  }
  for (const Index radius : {0, 1, 2, 7}) {
    expect_means_of_two(GridNeighborhood{4, 5, radius}, [&](Index query, Index key) {
      return inside(query, 20) && inside(key, 20) && std::abs(query / 5 - key / 5) <= radius &&
             std::abs(query % 5 - key % 5) <= radius;
    });
  }
}

}  // namespace
}  // namespace heed::laws
