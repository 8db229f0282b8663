// SPDX-License-Identifier: MIT
// One token at a time with a cache, and the promise that goes with it: the numbers are those of the
// whole sequence at once, to the last bit.
#include <cstdio>
#include <cstring>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/random.hpp>

#include "help.hpp"

using namespace heed;

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments, "Attention token by token, with a cache.", status))
    return status;
  const Index length = 300, heads = 8, kv_heads = 2, dim = 32;
  Random random(1);
  // [inputs]
  Tensor<float, 4> queries({1, heads, length, dim}), keys({1, kv_heads, length, dim}),
      values({1, kv_heads, length, dim});  // four heads of queries share one of keys
  // [/inputs]
  for (auto* tensor : {&queries, &keys, &values}) {
    for (float& x : *tensor) x = random.normal<float>();
  }
  // [whole]
  const auto mask = masks::last_n(100);
  const auto whole = attention(queries, keys, values, mask);
  // [/whole]

  Index same = 0;
  // [decode]
  KeyValueCache<float> cache({.kv_heads = kv_heads, .head_dim = dim, .pages = 3});
  for (Index token = 0; token < length; ++token) {
    const auto at = [&](const auto& tensor) { return tensor.slice(2, token, token + 1); };
    cache.forget(0, token - 99);  // three pages of 96 tokens are enough for a window of 100
    const auto out = decode(at(queries), at(keys), at(values), cache, mask);
    // [/decode]
    bool equal = true;
    for (Index head = 0; head < heads; ++head) {
      equal = equal && std::memcmp(&out(0, head, 0, 0), &whole(0, head, token, 0), dim * 4) == 0;
    }
    same += equal;
  }
  std::printf("%td of %td tokens, decoded one by one, have the bits of the whole sequence\n", same,
              length);

  // Two texts one behind the other in one buffer, nothing padded: the bits of each alone.
  // [packed]
  const std::vector<Index> offsets = {0, 180, 300};
  const auto of_batch = [](const auto& tensor) { return tensor.select(0, 0); };
  const auto together =
      packed_attention(of_batch(queries), of_batch(keys), of_batch(values), offsets, mask);
  // [/packed]
  bool alone = true;
  for (std::size_t text = 0; text < 2; ++text) {
    const auto part = [&](const auto& tensor) {
      return tensor.slice(2, offsets[text], offsets[text + 1]);
    };
    const auto one = attention(part(queries), part(keys), part(values), mask);
    for (Index head = 0; head < heads; ++head) {
      const auto bytes = static_cast<std::size_t>(one.extent(2) * dim) * sizeof(float);
      alone =
          alone && std::memcmp(&one(0, head, 0, 0), &together(head, offsets[text], 0), bytes) == 0;
    }
  }
  std::printf("two packed texts have the bits of each alone: %d\n", alone);

  // Half the memory: keys and values stored as bfloat16.
  KeyValueCache<float, bfloat16> small(CacheShape::contiguous(1, kv_heads, dim, dim, length));
  small.append(keys, values);
  Tensor<float, 4> rough({1, heads, length, dim});
  attention(queries, small, mask, rough);
  double worst = 0;
  for (Index i = 0; i < rough.size(); ++i) {
    const double error =
        static_cast<double>(rough.data()[i]) - static_cast<double>(whole.data()[i]);
    worst = error > worst ? error : -error > worst ? -error : worst;
  }
  std::printf("with the cache in bfloat16 the largest difference is below %s\n",
              worst < 0.02 ? "0.02" : "nothing one would want");
}
