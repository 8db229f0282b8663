// SPDX-License-Identifier: MIT
// Every allocation of attention, backward passes and caches fails once.
#include "faults/failing_memory.hpp"

#include <cstdlib>
#include <limits>

#include <heed/attention.hpp>
#include <heed/masks.hpp>

#include "support/sanitizers.hpp"

namespace heed::test {

Index live_blocks = 0, most_live_blocks = std::numeric_limits<Index>::max();
Index calls_that_go_well = all_go_well;

namespace {

/// Null where it is to fail.
void* taken(std::size_t bytes, std::size_t alignment) {
  if (__atomic_load_n(&calls_that_go_well, __ATOMIC_SEQ_CST) > all_go_well) {
    const Index left = __atomic_fetch_sub(&calls_that_go_well, 1, __ATOMIC_SEQ_CST);
    if (left == 0 || left == -1) return nullptr;
  }
  if (__atomic_load_n(&live_blocks, __ATOMIC_SEQ_CST) >=
      __atomic_load_n(&most_live_blocks, __ATOMIC_SEQ_CST)) {
    return nullptr;
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment > 16 ? std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)
                                : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory != nullptr) __atomic_fetch_add(&live_blocks, 1, __ATOMIC_SEQ_CST);
  return memory;
}
void* taken_or_thrown(std::size_t bytes, std::size_t alignment) {
  void* memory = taken(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void given(void* memory) {
  if (memory != nullptr) __atomic_fetch_sub(&live_blocks, 1, __ATOMIC_SEQ_CST);
  std::free(memory);
}

}  // namespace
}  // namespace heed::test

void* operator new(std::size_t bytes) { return heed::test::taken_or_thrown(bytes, 16); }
void* operator new[](std::size_t bytes) { return heed::test::taken_or_thrown(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return heed::test::taken_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return heed::test::taken_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return heed::test::taken(bytes, 16);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return heed::test::taken(bytes, 16);
}
void operator delete(void* memory) noexcept { heed::test::given(memory); }
void operator delete[](void* memory) noexcept { heed::test::given(memory); }
void operator delete(void* memory, std::size_t) noexcept { heed::test::given(memory); }
void operator delete[](void* memory, std::size_t) noexcept { heed::test::given(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { heed::test::given(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { heed::test::given(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  heed::test::given(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  heed::test::given(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { heed::test::given(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { heed::test::given(memory); }

namespace heed::test {
namespace {

using masks::Causal;

template <class T, std::size_t Rank>
Tensor<T, Rank> filled(const Extents<Rank>& extents, Index seed = 1) {
  Tensor<T, Rank> tensor(extents);
  for (Index i = 0; i < tensor.size(); ++i) {
    tensor.data()[i] = T(static_cast<float>((i + seed) * 37 % 101) / 50 - 1);
  }
  return tensor;
}

/// Inputs and outputs of a call and of its backward pass.
template <class T>
struct Call {
  Tensor<T, 3> q, k, v, out, dq, dk, dv;
  Tensor<T, 2> lse;

  Call(Index heads, Index kv_heads, Index queries, Index keys, Index dim)
      : q(filled<T, 3>({heads, queries, dim})),
        k(filled<T, 3>({kv_heads, keys, dim}, 2)),
        v(filled<T, 3>({kv_heads, keys, dim}, 3)),
        out(q.extents()),
        dq(q.extents()),
        dk(k.extents()),
        dv(v.extents()),
        lse({heads, queries}) {}
};

/// Attention and its backward pass; gradients have the forward pass before them.
template <class T, class M>
void fail_forward_and_backward(Index queries, Index keys, const M& mask,
                               const AttentionOptions<T>& given = {}) {
  const auto make = [&] { return Call<T>(4, 2, queries, keys, 9); };
  const auto forward = [&](Call<T>& call) {
    auto options = given;
    options.log_sum_exp = call.lse;
    attention(call.q, call.k, call.v, mask, call.out, options);
  };
  fail_every_allocation(make, forward,
                        [](const Call<T>& call) { return bytes(call.out) + bytes(call.lse); });
  fail_every_allocation(
      [&] {
        auto call = make();
        forward(call);
        return call;
      },
      [&](Call<T>& call) {
        attention_backward(call.q, call.k, call.v, mask, call.out, call.lse, call.out, call.dq,
                           call.dk, call.dv, given);
      },
      [](const Call<T>& call) { return bytes(call.dq) + bytes(call.dk) + bytes(call.dv); },
      Failed::may_have_begun);
}

TEST(FaultyMemory, WhatAThreadKeepsIsFreedBeforeATensorIsOutOfMemory) {
  if (test::sanitized && !test::threads_sanitized) GTEST_SKIP() << "nothing is kept";
  std::thread([] {
    { const Tensor<float, 1> large({200000}), larger({300000}), small({20}); }
    const auto limit = [](Index more) {
      const Index most = live_blocks + more;
      __atomic_store_n(&most_live_blocks, most, __ATOMIC_SEQ_CST);
    };
    const std::size_t kept = detail::TensorMemory::kept_bytes();
    limit(-2);
    const Tensor<float, 1> largest({400000});
    const std::size_t kept_then = detail::TensorMemory::kept_bytes();
    limit(0);
    EXPECT_THROW((Tensor<float, 1>({500000})), OutOfMemory);
    limit(std::numeric_limits<Index>::max() / 2);
    EXPECT_GE(kept, 2000000u);
    EXPECT_EQ(kept_then, 0u);
  }).join();
}

TEST_P(FailingMemory, Attention) {
  const auto some = predicate([](Index q, Index k) { return (q + k) % 3 != 0; });
  for (const Index queries : {1, 7, 150}) {
    fail_forward_and_backward<float>(queries, 170, Causal{});
    fail_forward_and_backward<float>(queries, 170, some & masks::last_n(60));
    fail_forward_and_backward<double>(queries, 33, masks::Full{});
  }
  fail_forward_and_backward<float>(2, 3500, Causal{});
  fail_forward_and_backward<float>(20, 20, Causal{});
}

TEST_P(FailingMemory, AttentionWithChangedScores) {
  const std::vector<float> slopes = {.5f, .25f, .125f, .1f}, sinks = {0, 1, -1, 2};
  const auto relative = filled<float, 2>({4, 41});
  const struct {
    float value(float score, Position) const { return score * 2; }
    float derivative(float, Position) const { return 2; }
  } function;
  for (const Index queries : {1, 60}) {
    const auto bias = filled<float, 3>({4, queries, 100});
    const Mask mask = masks::Segments({0, 30, 100}) & Causal{};
    fail_forward_and_backward<float>(queries, 100, mask,
                                     {.softcap = 3.f,
                                      .alibi_slopes = slopes,
                                      .relative_bias = relative,
                                      .bias = bias,
                                      .sinks = sinks,
                                      .dropout = {.probability = .1f, .seed = 1}});
    fail_forward_and_backward<float>(queries, 100, Causal{}, {.score_function = function});
  }
}

TEST_P(FailingMemory, Bfloat16) {
  for (const Index queries : {1, 70}) {
    struct Narrow {
      Tensor<bfloat16, 3> q, k, out;
    };
    fail_every_allocation(
        [&] {
          return Narrow{filled<bfloat16, 3>({4, queries, 9}), filled<bfloat16, 3>({2, 130, 9}),
                        Tensor<bfloat16, 3>({4, queries, 9})};
        },
        [](Narrow& call) { attention(call.q, call.k, call.k, Causal{}, call.out); },
        [](const Narrow& call) { return bytes(call.out); }, Failed::may_have_begun);
  }
}

TEST_P(FailingMemory, PackedAndWeights) {
  const std::vector<Index> offsets = {0, 5, 5, 120};
  const auto make = [] { return Call<float>(2, 2, 120, 120, 9); };
  fail_every_allocation(
      make,
      [&](Call<float>& call) {
        packed_attention(call.q, call.k, call.v, offsets, Causal{}, call.out,
                         {.log_sum_exp = call.lse});
        packed_attention_backward(call.q, call.k, call.v, offsets, Causal{}, call.out, call.lse,
                                  call.out, call.dq, call.dk, call.dv);
      },
      [](const Call<float>& call) { return bytes(call.out) + bytes(call.dq) + bytes(call.dv); },
      Failed::may_have_begun);
  struct Looked {
    Call<float> call;
    Tensor<float, 3> weights;
  };
  fail_every_allocation(
      [&] {
        return Looked{make(), {}};
      },
      [](Looked& looked) {
        looked.weights = attention_weights(looked.call.q, looked.call.k, Causal{});
      },
      [](const Looked& looked) { return bytes(looked.weights); });
}

TEST_P(FailingMemory, Masks) {
  const auto make = [] { return std::vector<Mask>(); };
  const auto digest = [](const std::vector<Mask>& all) {
    std::string seen;
    for (const Mask& mask : all) {
      const auto dense =
          attention_weights(Tensor<float, 2>({9, 4}), Tensor<float, 2>({9, 4}), mask);
      seen += bytes(dense);
    }
    return seen;
  };
  fail_every_allocation(
      make,
      [](std::vector<Mask>& all) {
        std::vector<Mask> made;
        made.push_back(masks::Padding({9}) & Causal{});
        made.push_back(masks::Segments({0, 3, 5, 9}) | masks::last_n(2));
        made.push_back(~(masks::Tree(0, {-1, 0, 0, 1, 1, 2, 2, 3, 3}) & masks::Full{}));
        made.push_back(masks::MaskedToken({2, 5}));
        all = made;
      },
      digest);
}

/// What a cache holds, read by attention, and how many pages are free.
std::string contents(const KeyValueCache<float>& cache) {
  const CacheShape& shape = cache.shape();
  const auto queries = filled<float, 4>({shape.batch, shape.kv_heads, 1, shape.head_dim});
  Tensor<float, 4> out({shape.batch, shape.kv_heads, 1, shape.value_dim});
  attention(queries, cache, masks::Full{}, out);
  const auto lengths = cache.lengths(), starts = cache.starts();
  return bytes(out) + bytes(lengths.data(), shape.batch) + bytes(starts.data(), shape.batch) +
         std::to_string(cache.free_pages());
}

TEST_P(FailingMemory, Caches) {
  const CacheShape shape{3, 2, 4, 4, 16, 60};
  const auto tokens = filled<float, 3>({2, 300, 4});
  const auto empty = [&] { return KeyValueCache<float>(shape); };
  const auto two = [&] {
    KeyValueCache<float> cache(shape);
    cache.append(0, tokens.view(), tokens.view());
    cache.append(1, tokens.view().slice(1, 0, 5), tokens.view().slice(1, 0, 5));
    cache.forget(0, 100);
    cache.fork(1, 2);
    return cache;
  };
  fail_every_allocation(
      empty, [&](auto& cache) { cache.append(0, tokens.view(), tokens.view()); }, contents);
  const auto batch = filled<float, 4>({3, 2, 140, 4});
  fail_every_allocation(
      two, [&](auto& cache) { cache.append(batch, batch); }, contents);
  const std::vector<Index> parents = {1, 0, 0};
  fail_every_allocation(
      two, [&](auto& cache) { cache.reorder(parents); }, contents);
  fail_every_allocation(
      two,
      [&](auto& cache) {
        KeyValueCache<float> other = cache;
        other.append(2, tokens.view(), tokens.view());
        cache = other;
      },
      contents);
  struct Read {
    KeyValueCache<float> cache;
    Tensor<float, 4> queries, out;
  };
  fail_every_allocation(
      [&] {
        return Read{two(), filled<float, 4>({3, 4, 3, 4}), Tensor<float, 4>({3, 4, 3, 4})};
      },
      [](Read& read) { attention(read.queries, read.cache, masks::last_n(70), read.out); },
      [](const Read& read) { return bytes(read.out); }, Failed::may_have_begun);
}

INSTANTIATE_TEST_SUITE_P(Threads, FailingMemory, ::testing::Values(1, 2),
                         [](const auto& threads) { return std::to_string(threads.param); });

}  // namespace
}  // namespace heed::test
