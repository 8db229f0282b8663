// SPDX-License-Identifier: MIT
// Calls of caches and sessions as a user would guess them: each compiles as it is written, and does
// what it says.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heed/heed.hpp>
#include <heed/text.hpp>

using namespace heed;

namespace {

TEST(Generation, ACacheCopiesTemporariesIntoOneSequence) {
  const Tensor<float, 4> keys({1, 2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor<float, 4> values({1, 2, 1, 4}, {8, 7, 6, 5, 4, 3, 2, 1});
  KeyValueCache<float> cache(CacheShape::contiguous(1, 2, 4, 4, 7)), same = cache;
  cache.append(keys, values);
  same.append(0, Tensor<float, 3>(keys[0]), Tensor<float, 3>(values[0]));
  EXPECT_EQ(attention(keys, same), attention(keys, cache));
  same.append(0, keys[0], Tensor<float, 3>(values[0]));
  EXPECT_EQ(same.length(0), 2);
  KeyValueCache<float> one(CacheShape::contiguous(1, 1, 2, 2, 7));
  const Tensor<float, 2> rows{{1, 2}, {3, 4}};
  one.append(0, rows, rows);
  EXPECT_EQ(one.length(0), 2);
  EXPECT_THROW(one.append(0, keys[0], values[0]), ShapeError);
}

TEST(Generation, AListenerNeedsNoSampler) {
  const auto step = [](std::span<const Index> tokens) {
    Tensor<float, 1> logits(10);
    logits[tokens.back() % 9 + 1] = 1;
    return logits;
  };
  std::vector<Index> heard;
  const auto listen = [&](Index token) { heard.push_back(token); };
  EXPECT_EQ(generate(step, {1}, {.max_tokens = 3}, listen).tokens, (std::vector<Index>{2, 3, 4}));
  EXPECT_EQ(heard, (std::vector<Index>{2, 3, 4}));
  std::vector<Index> read;
  for (const Index token : generate(step, {1}, {.max_tokens = 3})) read.push_back(token);
  EXPECT_EQ(read, heard);
  const auto stop = [](Index token) { return token < 3; };
  EXPECT_EQ(generate(step, {1}, {.max_tokens = 5}, stop).reason, StopReason::caller);
  EXPECT_EQ(generate(step, {1}, {}, {.max_tokens = 2}).tokens, (std::vector<Index>{2, 3}));
}

LanguageModel<float> small_model() {
  Random random(1);
  return {{.vocab_size = 11, .layers = 1, .block = {.model_dim = 8, .heads = 2}}, random};
}

TEST(Generation, AModelTakesPositionsWithoutAMask) {
  const auto model = small_model();
  const Tokens tokens({1, 3}, {3, 1, 4});
  const Positions positions(Tensor<Index, 2>({1, 3}, {4, 5, 9}));
  EXPECT_EQ(model.forward(tokens, positions), model.forward(tokens, masks::Causal{}, positions));
  EXPECT_EQ(model.forward(tokens, Positions()), model.forward(tokens));
}

TEST(Generation, LocalAndGlobalLayersAlternate) {
  Random random(1);
  LanguageModel<float> model(
      {.vocab_size = 11,
       .layers = 4,
       .block = {.model_dim = 8, .heads = 2, .softcap = 50, .sinks = true, .window = 2}},
      random);
  for (std::size_t i = 1; i < 4; i += 2) model.blocks[i].attention.options.window = 0;
  const auto logits = model.forward({{3, 1, 4, 1, 5}});
  Session<float> session(model);
  session.prefill({3, 1, 4});
  EXPECT_EQ(session.logits({1, 5}), logits.slice(1, 3, 5));
}

TEST(Generation, ASessionVerifiesATreeOfDrafts) {
  const auto model = small_model();
  Session<float> session(model);
  session.prefill({3, 1, 4});
  const auto logits = session.logits({1, 5, 9}, masks::Tree(session.length(), {-1, -1, 0}));
  session.truncate(3);
  EXPECT_THROW(session.logits({1, 5}, masks::Tree(4, {-1, -1})), InvalidArgument);
  EXPECT_EQ(session.length(), 3);
  const auto branch = session.logits({1, 9});
  EXPECT_NEAR(logits(0, 2, 7), branch(0, 1, 7), 1e-5);
}

TEST(Generation, ASessionTakesListsOfTokens) {
  const auto model = small_model();
  const auto expected = model.forward(Tokens({1, 3}, {3, 1, 4}));
  const std::vector<int> ints = {3, 1, 4};
  EXPECT_EQ(Session<float>(model).logits({3, 1, 4}), expected);
  EXPECT_EQ(Session<float>(model).logits(ints), expected);
  EXPECT_EQ(Session<float>(model).logits({{3, 1, 4}}), expected);
  Session<float> session(model, {.batch = 2});
  session.prefill({{3, 1}, {3}});
  EXPECT_EQ(session.step({4, 1})(0, 5), expected(0, 2, 5));
  const std::vector<int> next = {1, 4};
  EXPECT_EQ(session.step(next)(1, 5), expected(0, 2, 5));
  EXPECT_THROW(session.logits({3, 1, 4}), ShapeError);
}

TEST(Generation, ASessionOfOneSequenceTakesAList) {
  const auto model = small_model();
  const auto session = [&] { return Session<float>(model); };
  const auto expected = session().prefill({{1, 2, 3}});
  const std::vector<Index> list = {1, 2, 3};
  EXPECT_EQ(session().prefill(list), expected);
  EXPECT_EQ(session().prefill(std::span<const Index>(list)), expected);
  EXPECT_EQ(session().prefill(std::vector<int>{1, 2, 3}), expected);
  EXPECT_EQ(session().prefill({1, 2, 3}), expected);
  auto steps = session();
  steps.prefill({1});
  steps.step({2});
  EXPECT_EQ(steps.step(3), expected);
  EXPECT_THROW(steps.step({}), ShapeError);
  Session<float> two(model, {.batch = 2});
  EXPECT_THROW(two.prefill(list), ShapeError);
  EXPECT_THROW(two.step(3), ShapeError);
}

TEST(Generation, ListsOfTokensHoldAnyIntegers) {
  const auto model = small_model();
  const std::vector<std::vector<int>> ints = {{1, 2, 3, 4}, {5, 6}};
  const std::vector<std::vector<Index>> same = {{1, 2, 3, 4}, {5, 6}};
  const std::array<std::array<std::size_t, 2>, 2> sizes = {{{1, 2}, {5, 6}}};
  Session<float> session(model, {.batch = 2}), other = session, third = session;
  EXPECT_EQ(session.prefill(ints), other.prefill(same));
  EXPECT_EQ(third.prefill(sizes).extents(), (Extents<2>{2, 11}));
  const Tokens rows_of_two{{1, 2}, {5, 6}};
  Session<float> fourth(model, {.batch = 2}), fifth = fourth, sixth = fourth;
  EXPECT_EQ(fourth.prefill(rows_of_two), fifth.prefill(sizes));
  EXPECT_EQ(sixth.prefill(rows_of_two.view()),
            Session<float>(model, {.batch = 2}).prefill(rows_of_two));
  EXPECT_EQ(Session<float>(model).prefill(Tokens{{1, 2, 3}}),
            Session<float>(model).prefill({1, 2, 3}));
  const std::vector<int> chosen = {1, 0};
  const auto batch = next_token_batch(ints, chosen);
  EXPECT_EQ(batch.tokens, next_token_batch(same, chosen).tokens);
  EXPECT_EQ(batch.targets, next_token_batch(same, {1, 0}).targets);
  EXPECT_EQ(next_token_batch(rows_of_two, {1}).targets, Tokens{{6}});
  EXPECT_THROW(next_token_batch(rows_of_two, {2}), InvalidArgument);
  EXPECT_THROW(next_token_batch(ints, {2}), InvalidArgument);
  EXPECT_THROW(next_token_batch(ints, {-1}), InvalidArgument);
  EXPECT_EQ(make_batches(std::vector<int>{4, 2}, 0), make_batches({4, 2}, 0));
  const std::vector<Index> text = {3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<int> text_of_ints(text.begin(), text.end());
  Random random(1), other_random(1), third_random(1);
  const auto windows = random_windows(text, 3, 4, random);
  EXPECT_EQ(random_windows(text_of_ints, 3, 4, other_random).targets, windows.targets);
  const Tensor<std::int32_t, 1> loaded({8}, text_of_ints);  // as load_npy gives it
  EXPECT_EQ(random_windows(loaded, 3, 4, third_random).tokens, windows.tokens);
  EXPECT_THROW(random_windows(loaded, 3, 8, random), InvalidArgument);
  EXPECT_THROW(random_windows(rows_of_two, 1, 1, random), ShapeError) << "several rows";
  const ByteTokenizer tokenizer;
  const std::vector<int> letters = {104, 105};
  EXPECT_EQ(tokenizer.decode(letters), "hi");
  EXPECT_EQ(tokenizer.decode({104, 105}), "hi");
  const Index array[] = {104, 105};
  EXPECT_EQ(tokenizer.decode(array), "hi");
  EXPECT_EQ(tokenizer.decode({array, 2}), "hi");
  const int numbers[] = {104, 105};
  EXPECT_EQ(tokenizer.decode(numbers), "hi");
  const Tokens rows{{104, 105}};
  EXPECT_EQ(tokenizer.decode(rows[0]), "hi");
}

}  // namespace
