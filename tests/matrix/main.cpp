// SPDX-License-Identifier: MIT
// Prints a hash of the bits of many calls, one line each, on the instruction set that HEED_ISA
// names: attention and its gradients by views, caches and bfloat16, products and blocks of layers.
// However this file is built, header-only or with heed::compiled, by g++ or clang++, it prints the
// same. HEED_EVERY_TYPE adds double and bfloat16, which take most of the time of compiling it.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <heed/heed.hpp>

using namespace heed;

namespace {

/// Prints what was computed as an FNV-1a hash.
template <class T, std::size_t Rank>
void print(const std::string& name, const Tensor<T, Rank>& tensor) {
  std::uint64_t hash = 14695981039346656037u;
  for (const T value : tensor) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  }
  std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(hash));
}

template <class T>
void draw(Tensor<T, 4>& tensor, Random& random) {
  for (T& value : tensor) value = static_cast<T>(random.normal<float>());
}

struct Shape {
  const char* name;
  Index batch, heads, kv_heads, queries, keys, head_dim, value_dim;
};

/// Queries, keys and values, and what is made of them in the type T (float for bfloat16).
template <class From, class T>
struct Call {
  explicit Call(const Shape& s, Random& random)
      : queries({s.batch, s.heads, s.queries, s.head_dim}),
        keys({s.batch, s.kv_heads, s.keys, s.head_dim}),
        values({s.batch, s.kv_heads, s.keys, s.value_dim}),
        out({s.batch, s.heads, s.queries, s.value_dim}),
        grad_out(out.extents()),
        lse({s.batch, s.heads, s.queries}) {
    for (auto* tensor : {&queries, &keys, &values, &grad_out}) draw(*tensor, random);
  }

  template <class M>
  void run(const std::string& name, const M& mask, AttentionOptions<T> options) {
    const T softcap = options.softcap;
    options.log_sum_exp = lse;
    attention(queries, keys, values, mask, out, options);
    print(name + " out", out);
    print(name + " lse", lse);
    Tensor<T, 4> grad_queries(queries.extents()), grad_keys(keys.extents()),
        grad_values(values.extents());
    attention_backward(queries, keys, values, mask, out, lse, grad_out, grad_queries, grad_keys,
                       grad_values, {.scale = options.scale, .softcap = softcap});
    print(name + " dq", grad_queries);
    print(name + " dk", grad_keys);
    print(name + " dv", grad_values);
  }

  Tensor<From, 4> queries, keys, values, out, grad_out;
  Tensor<T, 3> lse;
};

/// Every mask under plain scores, and changed scores under one.
template <class From, class T>
void attend(const std::string& type, const Shape& shape) {
  Random random(7);
  Call<From, T> call(shape, random);
  const std::string name = type + " " + shape.name + " ";
  call.run(name + "full", masks::Full{}, {});
  call.run(name + "causal", masks::Causal{}, {});
  call.run(name + "window", masks::SlidingWindow{.left = 17, .right = 3}, {});
  call.run(name + "or", masks::Causal{} | masks::last_n(5), {});
  call.run(name + "predicate",
           masks::predicate([](Index query, Index key) { return key % 3 != query % 2; }), {});
  call.run(name + "changed", masks::Causal{}, {.scale = T(0.37), .softcap = T(2.5)});
}

/// A cache filled in two steps, attended by the last tokens: what generation does.
template <class T, class Stored>
void decode(const std::string& type, const Shape& shape) {
  Random random(11);
  Call<T, T> call(shape, random);
  KeyValueCache<T, Stored> cache(CacheShape::contiguous(shape.batch, shape.kv_heads, shape.head_dim,
                                                        shape.value_dim, shape.keys));
  const Index first = shape.keys / 3;
  cache.append(call.keys.view().slice(2, 0, first), call.values.view().slice(2, 0, first));
  cache.append(call.keys.view().slice(2, first, shape.keys),
               call.values.view().slice(2, first, shape.keys));
  attention(call.queries, cache, masks::Causal{}, call.out, {.log_sum_exp = call.lse});
  print(type + " " + shape.name + " out", call.out);
  print(type + " " + shape.name + " lse", call.lse);
}

/// A block of layers there and back: products, norms, activations, rotary positions, attention.
template <class T>
void block(const std::string& name, const BlockOptions& options) {
  Random random(5);
  const SelfAttentionBlock<T> layer(options, random);
  Tensor<T, 3> x({2, 21, options.model_dim});
  for (T& value : x) value = random.normal<T>();
  print(name + " forward", layer.forward(x, masks::Causal{}));
  typename SelfAttentionBlock<T>::Saved saved;
  const auto y = layer.forward(x, masks::Causal{}, saved);
  auto gradients = zeros_like(layer);
  print(name + " backward", layer.backward(y, saved, gradients));
  for_each_parameter(
      [&](std::string_view parameter, const auto& gradient) {
        print(name + " " + std::string(parameter), gradient);
      },
      gradients);
}

template <class T>
void blocks(const std::string& type) {
  block<T>(type + " gpt2", {.model_dim = 48, .heads = 3});
  block<T>(type + " llama", {.model_dim = 40,
                             .heads = 4,
                             .kv_heads = 2,
                             .hidden_dim = 72,
                             .activation = ActivationKind::silu,
                             .gated = true,
                             .norm = NormKind::rms,
                             .bias = false,
                             .positions = PositionKind::rotary});
}

}  // namespace

int main() {
  const Shape shapes[] = {
      {"tiny", 1, 1, 1, 1, 1, 1, 1},       {"short", 2, 4, 2, 7, 9, 16, 16},
      {"odd", 2, 3, 1, 37, 61, 23, 19},    {"blocks", 1, 2, 2, 150, 210, 64, 64},
      {"decode", 2, 4, 1, 1, 300, 32, 32}, {"few", 1, 6, 2, 5, 2100, 64, 40}};
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const Shape& shape : shapes) {
      attend<float, float>("float", shape);
      decode<float, float>("cache", shape);
#ifdef HEED_EVERY_TYPE
      attend<double, double>("double", shape);
      attend<bfloat16, float>("bfloat16", shape);
      decode<float, bfloat16>("narrow cache", shape);
      decode<double, double>("double cache", shape);
#endif
    }
    blocks<float>("float");
#ifdef HEED_EVERY_TYPE
    blocks<double>("double");
#endif
  }
}
