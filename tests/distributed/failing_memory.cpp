// SPDX-License-Identifier: MIT
// On one rank: every allocation of ShardedCache::append fails once, and the second time that a
// tensor asks. Ends with 0 if all failures leave the cache as it was.
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

#include <heed/distributed.hpp>

namespace {

using namespace heed;

/// How many calls of operator new go well before two fail.
Index calls_that_go_well = std::numeric_limits<Index>::max();

void* taken(std::size_t bytes, std::size_t alignment) {
  const Index left = __atomic_fetch_sub(&calls_that_go_well, 1, __ATOMIC_SEQ_CST);
  if (left == 0 || left == -1) throw std::bad_alloc();
  return std::aligned_alloc(alignment, bytes / alignment * alignment + alignment);
}

/// Not inline: g++ warns of free where it sees operator new in the same function.
[[gnu::noinline]] void given(void* memory) { std::free(memory); }

bool as_it_was(const ShardedCache<float>& cache, Index free_pages) {
  bool same = cache.local().free_pages() == free_pages;
  for (const Index length : cache.lengths()) same = same && length == 0;
  for (const Index length : cache.local().lengths()) same = same && length == 0;
  return same;
}

}  // namespace

void* operator new(std::size_t bytes) { return taken(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return taken(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { given(memory); }
void operator delete(void* memory, std::size_t) noexcept { given(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { given(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { given(memory); }

int main(int argc, char** argv) {
  return run_ranks(argc, argv, [&](const Communicator& ranks) -> int {
    const auto shards = TokenShards::even(3 * simd::key_chunk, ranks.size(), simd::key_chunk);
    const Tensor<float, 4> tokens({3, 1, simd::key_chunk + 64, 4});
    Index failures = 0;
    for (bool failed = true; failed; failures += failed ? 1 : 0) {
      ShardedCache<float> cache(ranks, shards, {.batch = 3, .head_dim = 4});
      const Index free_pages = cache.local().free_pages();
      failed = false;
      __atomic_store_n(&calls_that_go_well, failures, __ATOMIC_SEQ_CST);
      try {
        cache.append(tokens, tokens);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      calls_that_go_well = std::numeric_limits<Index>::max();
      if (!failed || as_it_was(cache, free_pages)) continue;
      std::printf("changed by the failure of allocation %td\n", failures);
      return 1;
    }
    return failures >= 4 ? 0 : 2;
  });
}
