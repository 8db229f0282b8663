// SPDX-License-Identifier: MIT
// A session without end takes no more memory.
#include <gtest/gtest.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fstream>

#include <heed/attention.hpp>
#include <heed/generation.hpp>
#include <heed/masks.hpp>
#include <heed/models.hpp>

#include "faults/failing_memory.hpp"
#include "support/sanitizers.hpp"

namespace heed::test {
namespace {

/// Bytes in use by the allocator, as far as it tells.
std::size_t bytes_in_use() {
#ifdef __GLIBC__
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}
std::size_t resident_pages() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages;
}

/// Takes note of the memory after a tenth of the steps, and of what it is in the end.
class Flat {
 public:
  explicit Flat(std::size_t allowed = 40000) : allowed_(allowed) {}
  void after(Index step, Index steps) {
    if (step == steps / 10) {
      blocks_ = live_blocks;
      bytes_ = bytes_in_use();
      pages_ = resident_pages();
    }
    if (step != steps) return;
    EXPECT_LE(live_blocks, blocks_ + 20);
    EXPECT_LE(bytes_in_use(), bytes_ + allowed_);
    if (test::sanitized) return;  // what was freed stays resident a while
    EXPECT_LE(resident_pages(), pages_ + 200);
  }

 private:
  Index blocks_ = 0;
  std::size_t allowed_, bytes_ = 0, pages_ = 0;
};

TEST(Soak, ASessionReadsAHundredThousandTokens) {
  LanguageModelOptions options;
  options.vocab_size = 7;
  options.block.model_dim = 4;
  options.block.heads = 1;
  options.layers = 1;
  options.block.hidden_dim = 4;
  options.max_length = 64;
  options.block.positions = PositionKind::rotary;
  Random random(1);
  const LanguageModel<float> model(options, random);
  Session<float> session(model, {.batch = 2, .page_size = 16});
  Flat flat;
  constexpr Index steps = 50000;
  for (Index step = 1; step <= steps; ++step) {
    session.step(std::vector<Index>{step % 7, step % 5});
    if (step % 11 == 0) session.reorder(std::vector<Index>{step % 2, step % 3 == 0});
    for (const Index item : {0, 1}) {
      if (session.length(item) >= 60) session.truncate(item, step % 50);
    }
    flat.after(step, steps);
  }
}

TEST(Soak, ASlidingWindowGoesOnForAHundredThousandTokens) {
  KeyValueCache<float> cache({1, 1, 4, 4, 16, 5});
  const Tensor<float, 4> token({1, 1, 1, 4});
  Tensor<float, 4> out({1, 1, 1, 4});
  // The list of pages, forgotten ones included, is all that grows: 8 bytes for 16 tokens. It
  // doubles at times, and the thread keeps what it leaves.
  constexpr Index steps = 100000;
  Flat flat(8 * steps / 16 * 4);
  for (Index step = 1; step <= steps; ++step) {
    cache.forget(0, step - 50);
    cache.append(token, token);
    attention(token, cache, masks::last_n(40), out);
    flat.after(step, steps);
  }
}

}  // namespace
}  // namespace heed::test
