// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <heed/attention.hpp>

using namespace heed;
using Floats = Tensor<float, 2>;
using Doubles = Tensor<double, 2>;

#ifdef ALLOWS_OF_TWO_INTS  // a mask's function is `bool allows(heed::Position at) const`
struct Mine {
  bool allows(int query, int key) const { return key <= query; }
};
Floats misuse(Floats& x) { return attention(x, x, x, Mine{}); }
#endif
#ifdef KEYS_OF_AN_INDEX  // a mask's key ranges are `heed::KeyRange keys(heed::Position at) const`
struct Mine {
  KeyRange keys(Index query) const { return {0, query + 1}; }
};
Floats misuse(Floats& x) { return attention(x, x, x, Mine{}); }
#endif
#ifdef ALLOWS_NOT_CONST  // a mask's function is `bool allows(heed::Position at) const`
struct Mine {
  bool allows(Position at) { return at.key <= at.query; }
};
Floats misuse(Floats& x) { return attention(x, x, x, Mine{}); }
#endif
#ifdef ALLOWS_ANSWERS_INT  // a mask's function is `bool allows(heed::Position at) const`
struct Mine {
  int allows(Position at) const { return at.key <= at.query; }
};
void misuse(Floats& x, Floats& out) { attention(x, x, x, Mine{}, out); }
#endif
#ifdef LAMBDA_ANSWERS_INDEX  // a lambda is a mask if it takes (heed::Index query, heed::Index key)
Floats misuse(Floats& x) {
  return attention(x, x, x, [](Index query, Index key) { return query - key; });
}
#endif
#ifdef LAMBDA_OF_THREE  // a lambda is a mask if it takes (heed::Index query, heed::Index key)
Floats misuse(Floats& x) {
  return attention(x, x, x, [](Index, Index, Index) { return true; });
}
#endif
#ifdef MUTABLE_LAMBDA  // answers with a bool and is not mutable
Floats misuse(Floats& x) {
  return attention(x, x, x, [n = 0](Index, Index) mutable { return ++n % 2 == 0; });
}
#endif
#ifdef NO_MASK  // this is no mask: a mask is a lambda
struct NoMask {
  bool visible(Position) const { return true; }
};
Floats misuse(Floats& x) { return attention(x, x, x, NoMask{}); }
#endif
#ifdef MASK_BY_NAME  // this is no mask: a mask is a lambda
void misuse(Floats& x, Floats& out) { attention(x, x, x, "causal", out); }
#endif
#ifdef MASKS_BY_TWO_AMPERSANDS  // masks combine by a & b, not by a && b
auto misuse() { return masks::Causal{} && masks::last_n(3); }
#endif
#ifdef MASKS_BY_TWO_BARS  // masks combine by a | b, not by a || b
auto misuse() { return masks::GlobalTokens({0}) || masks::last_n(3); }
#endif
#ifdef MASKS_BY_A_PLUS  // masks combine by a & b (both) and a | b (one or both), not a + b
auto misuse() { return masks::Causal{} + masks::last_n(3); }
#endif
#ifdef MASKS_BY_A_MINUS  // what one mask shows and another does not is a & ~b, not a - b
auto misuse() { return masks::Causal{} - masks::last_n(3); }
#endif
#ifdef MASKS_BY_A_CARET  // what one of two masks shows is (a | b) & ~(a & b), not a ^ b
auto misuse() { return masks::Causal{} ^ masks::last_n(3); }
#endif
#ifdef MASK_BEHIND_AN_EXCLAMATION_MARK  // the opposite of a mask is ~mask, not !mask
auto misuse() { return !masks::Causal{}; }
#endif
struct Own {
  bool allows(Position at) const { return at.key <= at.query; }
};
#ifdef OWN_MASKS_BY_TWO_AMPERSANDS  // masks combine by a & b, not by a && b
auto misuse() { return Own{} && Own{}; }
#endif
#ifdef LAMBDAS_BY_TWO_BARS  // masks combine by a | b, not by a || b
auto misuse() {
  return [](Index query, Index key) { return key <= query; } || Own{};
}
#endif
#ifdef OWN_MASK_BEHIND_AN_EXCLAMATION_MARK  // the opposite of a mask is ~mask, not !mask
auto misuse() { return !Own{}; }
#endif
#ifdef LAMBDA_BEHIND_AN_EXCLAMATION_MARK  // the opposite of a mask is ~mask, not !mask
auto misuse() {
  return !([](Index query, Index key) { return key <= query; });
}
#endif
#ifdef MASK_OF_NESTED_VECTORS  // a vector of vectors is no matrix: flatten it
auto misuse(const std::vector<std::vector<bool>>& rows) { return masks::Dense(rows); }
#endif
#ifdef MASK_THAT_IS_NOT_COPIED  // a mask must be copyable
struct Mine {
  Mine() = default;
  Mine(const Mine&) = delete;
  bool allows(Position) const { return true; }
};
void misuse(Floats& x, Floats& out) { attention(x, x, x, Mine{}, out); }
#endif
#ifdef MASK_MATRIX  // a tensor is no mask by itself: heed::masks::Dense(tensor) makes one of bool
void misuse(Floats& x, Floats& bias, Floats& out) { attention(x, x, x, bias, out); }
#endif
#ifdef MASK_AND_A_MATRIX  // a tensor of bool is no mask by itself: wrap it, heed::masks::Dense
auto misuse(const Tensor<bool, 2>& seen) { return masks::Causal{} & seen; }
#endif
#ifdef SINKS_OF_DOUBLES  // options take numbers of their own type, as tensors have it
Floats misuse(Floats& x, std::vector<double>& sinks) {
  return attention(x, x, x, {.sinks = sinks});
}
#endif
#ifdef MASK_MATRIX_OF_BOOL  // a tensor is no mask by itself: heed::masks::Dense(tensor)
void misuse(Floats& x, Tensor<bool, 2>& visible) { attention(x, x, x, visible); }
#endif
#ifdef CONST_BIAS_FOR_A_MASK  // what is added to scores is AttentionOptions::bias
void misuse(Floats& x, const Floats& bias) { auto out = attention(x, x, x, bias); }
#endif
#ifdef TEMPORARY_BIAS_FOR_A_MASK  // what is added to scores is AttentionOptions::bias
void misuse(Floats& x) { auto out = attention(x, x, x, Floats({5, 5})); }
#endif
#ifdef TEMPORARY_RESULT_OF_A_CACHE  // the result cannot be written
void misuse(Floats& x, KeyValueCache<float>& cache) { decode(x, x, x, cache, Floats({5, 5})); }
#endif
#ifdef DECODE_WITHOUT_A_CACHE  // decode has a cache behind the values
void misuse(Floats& x) { auto out = decode(x, x, x, masks::Causal{}); }
#endif
#ifdef DECODE_WITH_THE_CACHE_BEHIND  // decode has a cache behind the values
void misuse(Floats& x, KeyValueCache<float>& cache) {
  auto out = decode(x, x, x, masks::Causal{}, cache);
}
#endif
#ifdef CACHE_OF_BFLOAT16  // KeyValueCache<float, bfloat16> stores float ones as bfloat16
void misuse(Floats& x, KeyValueCache<bfloat16>& cache) { auto out = decode(x, x, x, cache); }
#endif
#ifdef FLOATS_TO_A_CACHE_OF_BFLOAT16  // KeyValueCache<float, bfloat16> stores bfloat16 for float
void misuse(Floats& x, KeyValueCache<bfloat16>& cache) { auto out = attention(x, cache); }
#endif
#ifdef CACHE_BEFORE_QUERIES  // the cache comes behind the queries: attention(queries, cache, mask)
void misuse(Floats& x, KeyValueCache<float>& cache) { auto out = attention(cache, x); }
#endif
#ifdef CACHE_AND_MASK_BEFORE_QUERIES  // the cache comes behind the queries: attention(queries
void misuse(Floats& x, KeyValueCache<float>& cache) {
  auto out = attention(cache, x, masks::Causal{});
}
#endif
#ifdef CACHE_BEHIND_THE_MASK  // the cache comes behind the queries: attention(queries, cache, mask)
void misuse(Floats& x, const KeyValueCache<float>& cache) {
  auto out = attention(x, masks::Causal{}, cache);
}
#endif
#ifdef EXECUTOR_OF_A_LAMBDA  // an executor is a function pointer and its context
void misuse() {
  set_executor([](Index tasks, auto task) {
    for (Index i = 0; i < tasks; ++i) task(i);
  });
}
#endif
#ifdef CAUSAL_AS_AN_OPTION  // the mask is no option but an argument: attention(queries, keys,
                            // values
void misuse(Floats& x) { auto out = attention(x, x, x, {.is_causal = true}); }
#endif
#ifdef MASK_AS_AN_OPTION  // the mask is no option but an argument: attention(queries, keys, values
void misuse(Floats& x) { auto out = attention(x, x, x, {.scale = 0.5f, .mask = masks::Causal{}}); }
#endif
#ifdef OUT_BEFORE_MASK  // the mask comes before the tensor of the result
void misuse(Floats& x, Floats& out) { attention(x, x, x, out, masks::Causal{}); }
#endif
#ifdef NUMBER_BEHIND_THE_MASK  // a number is no result: options are in braces, {.scale = 0.5f}
void misuse(Floats& x) { auto out = attention(x, x, x, masks::Causal{}, 0.5f); }
#endif
#ifdef TWO_MASKS  // a call takes one mask: combine two by a & b, or by a | b
void misuse(Floats& x) { auto out = attention(x, x, x, masks::Causal{}, masks::last_n(3)); }
#endif
#ifdef TWO_MASKS_OF_A_CACHE  // a call takes one mask: combine two by a & b, or by a | b
void misuse(Floats& x, KeyValueCache<float>& cache) {
  auto out = decode(x, x, x, cache, masks::Causal{}, masks::last_n(3));
}
#endif
#ifdef POINTERS_AND_EXTENTS  // this is no tensor: attention takes heed::Tensor
void misuse(float* x) { auto out = attention(x, x, x, 5, 8); }
#endif
#ifdef ATTENTION_WITHOUT_VALUES  // attention takes values too: attention(queries, keys, values)
void misuse(Floats& x) { auto out = attention(x, x); }
#endif
#ifdef ATTENTION_WITHOUT_KEYS  // attention takes values too: attention(queries, keys, values)
void misuse(Floats& x) { auto out = attention(x, masks::Causal{}); }
#endif
#ifdef MASK_FOR_VALUES  // a mask is no tensor: masks come behind queries, keys and values
void misuse(Floats& x) { auto out = attention(x, x, masks::Causal{}); }
#endif
#ifdef WEIGHTS_WITHOUT_KEYS  // weights are of queries and keys: attention_weights(queries,
void misuse(Floats& x) { auto weights = attention_weights(x); }
#endif
#ifdef WEIGHTS_OF_A_MASK  // a mask is no tensor: masks come behind queries, keys and values
void misuse(Floats& x) { auto weights = attention_weights(x, masks::Causal{}); }
#endif
#ifdef PLAN_WITHOUT_KEYS  // a mask is no tensor: masks come behind queries, keys and values
void misuse(Floats& x) { auto chosen = plan(x, masks::Causal{}); }
#endif
#ifdef PACKED_WITHOUT_OFFSETS  // the borders of the sequences come behind the values
void misuse(Floats& x) { auto out = packed_attention(x, x, x); }
#endif
#ifdef PACKED_MASK_WITHOUT_OFFSETS  // the borders of the sequences come behind the values
void misuse(Floats& x) { auto out = packed_attention(x, x, x, masks::Causal{}); }
#endif
#ifdef PACKED_MASK_BEFORE_OFFSETS  // the borders of the sequences come behind the values
void misuse(Floats& x, const std::vector<int>& offsets) {
  packed_attention(x, x, x, masks::Causal{}, offsets, x);
}
#endif
#ifdef DECODE_WITHOUT_KEYS  // decode appends keys and values: decode(queries, keys, values,
void misuse(Floats& x, KeyValueCache<float>& cache) {
  auto out = decode(x, cache, masks::Causal{});
}
#endif
#ifdef DECODE_TO_A_CONST_CACHE  // decode appends to the cache, which is const here
void misuse(Floats& x, const KeyValueCache<float>& cache) {
  auto out = decode(x, x, x, cache, masks::Causal{});
}
#endif
#ifdef CONST_OUT  // the result cannot be written: out is const
void misuse(Floats& x, const Floats& out) { attention(x, x, x, masks::Causal{}, out); }
#endif
#ifdef NESTED_VECTORS  // a vector of vectors is no tensor: flatten it
Floats misuse(std::vector<std::vector<float>>& x) { return attention(x, x, x); }
#endif
#ifdef NESTED_VECTORS_OUT  // a vector of vectors is no tensor: flatten it
void misuse(Floats& x, std::vector<std::vector<float>>& out) {
  attention(x, x, x, masks::Causal{}, out);
}
#endif
#ifdef FLAT_VECTORS  // give flat values a shape, heed::TensorView(data, {length, dim})
auto misuse(std::vector<float>& x) { return attention(x, x, x, masks::Causal{}); }
#endif
#ifdef RANK_FIVE  // attention takes (batch, heads, length, dim)
void misuse(Tensor<float, 5>& x) { attention(x, x, x, masks::Full{}, x); }
#endif
#ifdef NO_TENSOR  // this is no tensor: attention takes heed::Tensor
void misuse(Floats& x) { attention(std::string("queries"), x, x); }
#endif
#ifdef NO_TENSOR_BEFORE_OUT  // this is no tensor: attention takes heed::Tensor
void misuse(Floats& x) { attention(std::string("queries"), x, x, masks::Causal{}, x); }
#endif
#ifdef FLOAT_AND_DOUBLE  // convert all of them to double, their common type
Floats misuse(Floats& x, Doubles& keys) { return attention(x, keys, x, masks::Causal{}); }
#endif
#ifdef BFLOAT16_AND_FLOAT  // convert all of them to float, their common type
void misuse(Tensor<bfloat16, 2>& x, Floats& values) { attention(x, x, values); }
#endif
#ifdef INTEGERS  // attention computes in float or double
Tensor<int, 2> misuse(Tensor<int, 2>& x) { return attention(x, x, x); }
#endif
#ifdef OPTIONS_OF_FLOAT  // the options are of another scalar type than the call
Doubles misuse(Doubles& x, const AttentionOptions<float>& options) {
  return attention(x, x, x, masks::Causal{}, options);
}
#endif
#ifdef FUNCTION_BY_NAME  // a function is a mask by its address: &function
bool before(Index query, Index key);
Floats misuse(Floats& x) { return attention(x, x, x, before); }
#endif
#ifdef LAYER_MASK_OF_TWO_INTS  // a mask's function is `bool allows(heed::Position at) const`
struct Mine {
  bool allows(int query, int key) const { return key <= query; }
};
Mask misuse() { return Mine{}; }
#endif
#ifdef MASK_OF_NOTHING  // a mask without rules is heed::masks::Full{}, which shows all
bool misuse() {
  Mask mask;
  return mask.allows({});
}
#endif
#ifdef MASKS_BY_NAME  // a mask without rules is heed::masks::Full{}, which shows all
#include <map>
void misuse(std::map<std::string, Mask>& masks) { masks["causal"] = masks::Causal{}; }
#endif
#ifdef COMBINED_LAMBDA_ANSWERS_INDEX  // answers with a bool and is not mutable
Floats misuse(Floats& x) {
  return attention(
      x, x, x, masks::Causal{} & [](Index query, Index key) { return query - key; });
}
#endif
#ifdef DESCRIBED_NO_MASK  // this is no mask: a mask is a lambda
std::string misuse() { return describe(3, 8, 8); }
#endif
#ifdef CACHE_MASK  // a mask's function is `bool allows(heed::Position at) const`
struct Mine {
  bool allows(int query, int key) const { return key <= query; }
};
void misuse(Floats& x, KeyValueCache<float>& cache) { attention(x, cache, Mine{}, x); }
#endif
#ifdef CACHE_OF_DOUBLE  // the cache holds another scalar type than the queries have
void misuse(Floats& x, KeyValueCache<double>& cache) { attention(x, cache, masks::Causal{}, x); }
#endif
#ifdef PACKED_MASK  // this is no mask: a mask is a lambda
void misuse(Floats& x, const PackedOffsets& offsets) { packed_attention(x, x, x, offsets, 3, x); }
#endif
#ifdef BACKWARD_MASK  // this is no mask: a mask is a lambda
void misuse(Floats& x, Tensor<float, 1>& lse) {
  attention_backward(x, x, x, "causal", x, lse, x, x, x, x);
}
#endif
#ifdef BACKWARD_OF_DOUBLE  // convert all of them to double, their common type
void misuse(Floats& x, Tensor<float, 1>& lse, Doubles& grad) {
  attention_backward(x, x, x, masks::Causal{}, x, lse, grad, x, x, x);
}
#endif
#ifdef BACKWARD_WITHOUT_OUTPUT  // output and log_sum_exp are the results of attention(
void misuse(Floats& x) { attention_backward(x, x, x, masks::Causal{}, x, x, x, x); }
#endif
#ifdef BACKWARD_WITHOUT_LOG_SUM_EXP  // output and log_sum_exp are the results of attention(
void misuse(Floats& x) { attention_backward(x, x, x, masks::Causal{}, x, x, x, x, x); }
#endif
#ifdef BACKWARD_WITHOUT_OUTPUT_AND_MASK  // output and log_sum_exp are the results of attention(
void misuse(Floats& x) { attention_backward(x, x, x, x.view(), x.view(), x.view(), x.view()); }
#endif
#ifdef BFLOAT16_GRADIENTS  // the gradients of bfloat16 tensors are float
void misuse(Tensor<bfloat16, 2>& x, Tensor<float, 1>& lse, Tensor<bfloat16, 2>& gradient) {
  attention_backward(x, x, x, masks::Causal{}, x, lse, x, gradient, gradient, gradient);
}
#endif
#ifdef BACKWARD_OF_BFLOAT16_AND_DOUBLE  // output and grad_output are bfloat16 or float
void misuse(Tensor<bfloat16, 2>& x, Tensor<float, 1>& lse, Doubles& output, Floats& gradient) {
  attention_backward(x, x, x, masks::Causal{}, output, lse, x, gradient, gradient, gradient);
}
#endif
#ifdef PACKED_BACKWARD_OF_BFLOAT16  // packed_attention_backward computes in float or double
void misuse(Tensor<bfloat16, 3>& x, const PackedOffsets& offsets, Tensor<float, 2>& lse,
            Tensor<float, 3>& gradient) {
  packed_attention_backward(x, x, x, offsets, masks::Causal{}, x, lse, x, gradient, gradient,
                            gradient);
}
#endif
#ifdef OPTIONS_OF_BFLOAT16  // options are float where tensors are bfloat16
AttentionOptions<bfloat16> misuse() { return {}; }
#endif
#ifdef WEIGHTS_OF_NESTED_VECTORS  // a vector of vectors is no tensor: flatten it
Floats misuse(std::vector<std::vector<float>>& x) {
  return attention_weights(x, x, masks::Causal{});
}
#endif
#ifdef WEIGHTS_OF_VALUES  // weights need no values: attention_weights(queries, keys, mask)
Floats misuse(Floats& x) { return attention_weights(x, x, x); }
#endif
#ifdef WEIGHTS_OF_VALUES_AND_MASK  // weights need no values: attention_weights(queries, keys, mask)
void misuse(Floats& x) { attention_weights(x, x, x, masks::Causal{}); }
#endif
#ifdef BIAS_OF_INT  // heed::Tensor<float, 2>(bias) converts to float
Floats misuse(Floats& x, Tensor<int, 2>& bias) {
  return attention(x, x, x, masks::Causal{}, {.bias = bias});
}
#endif
#ifdef BIAS_OF_DOUBLE  // heed::Tensor<float, 2>(bias) converts to float
void misuse(AttentionOptions<float>& options, Doubles& bias) { options.bias = bias; }
#endif
#ifdef DROPOUT_WITHOUT_A_SEED  // dropout is {.probability = 0.1f, .seed = step}
void misuse(AttentionOptions<float>& options) { options.dropout = 0.1f; }
#endif
#ifdef DROPOUT_IN_BRACES  // dropout is {.probability = 0.1f, .seed = step}
AttentionOptions<float> misuse() { return {.dropout = 0.1f}; }  // clang says so here, not in a call
#endif
#ifdef CONST_LOG_SUM_EXP  // one that is written is not const
void misuse(AttentionOptions<float>& options, const Floats& lse) { options.log_sum_exp = lse; }
#endif
#ifdef LOG_SUM_EXP_OF_CONST_IN_BRACES  // this option, as log_sum_exp, is written
void misuse(Floats& x, const Floats& lse) { attention(x, x, x, {.log_sum_exp = lse}); }
#endif
#ifdef LOG_SUM_EXP_OF_FOUR_AXES  // log_sum_exp is (batch, heads, queries)
void misuse(Tensor<float, 4>& x) { attention(x, x, x, {.log_sum_exp = x}); }
#endif
#ifdef WEIGHTS_AS_AN_OPTION  // attention_weights(queries, keys, mask) returns them
void misuse(Floats& x) { attention(x, x, x, masks::Causal{}, {.weights = x}); }
#endif
#ifdef WINDOW_AS_AN_OPTION  // a window is heed::masks::last_n(size)
void misuse(Floats& x) { auto out = attention(x, x, x, {.window_size = 3}); }
#endif
#ifdef DROPOUT_BY_ITS_NAME_IN_PYTORCH  // dropout is {.probability = 0.1f, .seed = step}
void misuse(Floats& x) { auto out = attention(x, x, x, {.dropout_p = 0.1f}); }
#endif
#ifdef SCORE_FUNCTION_THAT_HIDES  // what a query sees, by true and false, is a mask
auto misuse(const Floats& x) {
  return attention(x, x, x, {.score_function = [](float, Position at) { return at.key < 3; }});
}
#endif
#ifdef SCORE_FUNCTION_OF_TWO_POSITIONS  // a score function takes (float score, heed::Position at)
Floats misuse(Floats& x) {
  return attention(x, x, x, {.score_function = [](float score, Index, Index) { return score; }});
}
#endif
#ifdef MASK_OF_A_LIST_OF_BOOL  // heed::masks::Dense(list, {1, 1, queries, keys})
auto misuse(const std::vector<bool>& seen) { return masks::Dense(seen); }
#endif
#ifdef MASK_OF_A_LIST  // heed::masks::Dense(list, {1, 1, queries, keys})
auto misuse(const std::vector<float>& seen) { return masks::Dense(seen); }
#endif
#ifdef RESULT_OF_A_TENSOR_OF_BOOL  // a tensor is no mask by itself: heed::masks::Dense(tensor)
float misuse(const Floats& x, const Tensor<bool, 2>& seen) {
  auto out = attention(x, x, x, seen);
  return *out.data();
}
#endif
#ifdef GRADIENTS_WITHOUT_THE_FORWARD_RESULTS  // output and log_sum_exp are the results of
void misuse(const Floats& x) { auto [q, k, v] = attention_backward(x, x, x, masks::Causal{}, x); }
#endif
#ifdef PADDING_OF_TOKENS  // Padding takes a length for each item
auto misuse(const Tensor<Index, 2>& tokens) { return masks::Padding(tokens); }
#endif
#ifdef PADDING_OF_ZEROS_AND_ONES  // of a matrix (batch, keys) of what is valid, ValidKeys(matrix)
auto misuse(const std::vector<float>& valid) { return masks::Padding(valid); }
#endif
#ifdef PADDING_OF_A_LENGTH  // Padding takes a length for each item: Padding({5})
auto misuse() { return masks::Padding(5); }
#endif
#ifdef BACKWARD_WITH_THE_MASK_BEHIND  // the mask comes behind the values: attention_backward(
void misuse(Floats& x, Tensor<float, 1>& lse) {
  attention_backward(x, x, x, x, lse, x, masks::Causal{}, x, x, x);
}
#endif
#ifdef CACHE_OF_HEADS  // a cache holds the heads of keys: {.kv_heads = 2}
KeyValueCache<float> cache({.batch = 1, .heads = 2, .head_dim = 8});
#endif
#ifdef CACHE_OF_HEADS_FOR_TOKENS  // a cache holds the heads of keys: {.kv_heads = 2}
auto cache = KeyValueCache<float>::for_tokens({.heads = 2, .head_dim = 8}, 100);
#endif
#ifdef CACHE_WITHOUT_SIZES  // a cache is made with its sizes: KeyValueCache<float>::for_tokens(
Index misuse() {
  KeyValueCache<float> cache;
  return cache.length(0);
}
#endif
