// SPDX-License-Identifier: MIT
// Texts of unequal length in one batch: padded, grouped by length, packed one behind the other, and
// packed by someone who forgot the borders. The same texts train the same model four times.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "learn.hpp"

namespace {

using namespace heed;
using example::Batch;

struct Options {
  std::uint64_t seed = 1;
  Index steps = 1500;
};

// The task: 1 to 10 letters, a sign, the same letters again, an end. No letter comes twice, so the
// next one is the one that followed before; but whoever sees another text finds it there too.
constexpr Index letters = 26, sign = letters, end = sign + 1, vocabulary = end + 1;
constexpr Index most_letters = 10, longest = 2 * most_letters + 1, batch_size = 16;

using Texts = std::vector<std::vector<Index>>;

Texts some_texts(Index count, Random& random) {
  Texts texts;
  for (Index i = 0; i < count; ++i) {
    std::vector<Index> text(letters);
    for (Index letter = 0; letter < letters; ++letter)
      text[static_cast<std::size_t>(letter)] = letter;
    heed::detail::shuffle(text, random);
    const auto size = static_cast<std::size_t>(1 + random.integer(most_letters));
    text.resize(2 * size + 2);
    std::copy_n(text.begin(), size, text.end() - std::ssize(text) / 2);
    text[size] = sign;
    text.back() = end;
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Only what stands behind the sign can be known: no target before it.
void forget_letters(const Tokens& tokens, Tokens& targets) {
  for (Index row = 0; row < tokens.extent(0); ++row) {
    bool copying = false;
    for (Index i = 0; i < tokens.extent(1); ++i) {
      if (tokens(row, i) == sign) copying = true;
      if (!copying) targets(row, i) = -100;
      if (targets(row, i) == end) copying = false;
    }
  }
}

// [padded]
/// One text a row, filled up to the longest one of the batch.
Batch padded(const Texts& texts, const std::vector<Index>& chosen) {
  TokenBatch batch = next_token_batch(texts, chosen);
  forget_letters(batch.tokens, batch.targets);
  return {batch.tokens, batch.targets, masks::Causal{} & masks::Padding(batch.lengths)};
}
// [/padded]

// [packed]
/// All texts in one row: each sees itself alone, and its positions begin at 0.
Batch packed(const Texts& texts, const std::vector<Index>& chosen, bool borders) {
  std::vector<Index> offsets = {0}, tokens, targets;
  for (const Index i : chosen) {
    const auto& text = texts[static_cast<std::size_t>(i)];
    tokens.insert(tokens.end(), text.begin(), text.end() - 1);
    targets.insert(targets.end(), text.begin() + 1, text.end());
    offsets.push_back(std::ssize(tokens));
  }
  const Extents<2> extents = {1, std::ssize(tokens)};
  const masks::Segments segments(offsets);
  Batch batch{Tokens::copy_of(TensorView<const Index, 2>(tokens.data(), extents)),
              Tokens::copy_of(TensorView<const Index, 2>(targets.data(), extents)),
              masks::Causal{} & segments, positions_of(segments, extents)};
  forget_letters(batch.tokens, batch.targets);
  if (!borders) batch.mask = masks::Causal{};
  return batch;
}
// [/packed]

/// A way to make a batch of the chosen texts.
struct Way {
  const char* name;
  Index bucket_batches;  // above 0: like lengths together
  bool one_row, borders;
};
// [buckets]
constexpr Way ways[] = {{"padded", 0, false, true},
                        {"like lengths together", 16, false, true},
                        {"packed", 0, true, true},
                        {"packed, borders forgotten", 0, true, false}};
// [/buckets]

Batch batch_of(const Way& way, const Texts& texts, const std::vector<Index>& chosen) {
  return way.one_row ? packed(texts, chosen, way.borders) : padded(texts, chosen);
}

/// The batches of all epochs, one behind the other.
std::vector<std::vector<Index>> order_of(const Way& way, const Texts& texts, Index steps,
                                         std::uint64_t seed) {
  std::vector<Index> lengths;
  for (const auto& text : texts) lengths.push_back(std::ssize(text) - 1);
  std::vector<std::vector<Index>> order;
  for (Index epoch = 0; std::ssize(order) < steps; ++epoch) {
    const auto batches = make_batches(
        lengths, epoch,
        {.batch_size = batch_size, .seed = seed, .bucket_batches = way.bucket_batches});
    order.insert(order.end(), batches.begin(), batches.end());
  }
  return order;
}

/// The largest difference of any logit from that of its text alone.
double from_alone(const example::Model& model, const Way& way, const Texts& texts) {
  std::vector<Index> chosen;
  for (Index i = 0; i < batch_size; ++i) chosen.push_back(i);
  const Batch batch = batch_of(way, texts, chosen);
  const auto together = model.forward(batch.tokens, batch.mask, batch.positions);
  Index offset = 0;
  double largest = 0;
  for (const Index i : chosen) {
    const auto tokens = std::ssize(texts[static_cast<std::size_t>(i)]) - 1;
    const Batch one = padded(texts, {i});
    const auto alone = model.forward(one.tokens, one.mask);
    const double* row = way.one_row ? &together(0, offset, 0) : &together(i, 0, 0);
    for (Index j = 0; j < alone.size(); ++j) {
      largest = std::max(largest, std::abs(row[j] - alone.data()[j]));
    }
    offset += tokens;
  }
  return largest;
}

/// How many of some new texts are copied without a mistake, each written alone.
Index copied(const example::Model& model, const Texts& texts) {
  Index right = 0;
  for (const auto& text : texts) {
    const auto count = (std::ssize(text) - 2) / 2;
    const std::vector<std::vector<Index>> prompt = {{text.begin(), text.begin() + count + 1}};
    const auto written = example::written(model, masks::Causal{}, prompt, count + 1);
    right += std::equal(written[0].begin(), written[0].end(), text.begin() + count + 1);
  }
  return right;
}

void print_row(const Way& way, const Options& options, const Texts& texts, const Texts& fresh) {
  const auto order = order_of(way, texts, options.steps, options.seed);
  Index computed = 0, real = 0;
  std::size_t step = 0;
  const auto model = example::learned(example::small_model(vocabulary, longest),
                                      {way.name, options.steps, 5e-3, options.seed}, [&](Random&) {
                                        Batch batch = batch_of(way, texts, order[step]);
                                        for (const Index i : order[step])
                                          real +=
                                              std::ssize(texts[static_cast<std::size_t>(i)]) - 1;
                                        computed += batch.tokens.size();
                                        ++step;
                                        return batch;
                                      });
  const double difference = from_alone(model, way, texts);
  std::printf("%-26s %6td  %6.1f %%   %-8s   %3td of %td\n", way.name, computed,
              100 * static_cast<double>(computed - real) / static_cast<double>(computed),
              difference == 0      ? "none"
              : difference < 1e-12 ? "rounding"
                                   : "LARGE",
              copied(model, fresh), std::ssize(fresh));
}

void run(const Options& options) {
  Random random(options.seed, 2);
  const Texts texts = some_texts(2000, random), fresh = some_texts(200, random);
  std::printf(
      "%td steps of %td texts of 3 to %td tokens: letters to be copied.\n\n"
      "%-26s tokens   padding   differs    new texts\n"
      "%-26s computed           from alone copied\n",
      options.steps, batch_size, longest + 1, "", "");
  for (const Way& way : ways) print_row(way, options, texts, fresh);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Texts of unequal length: padded, grouped by length, packed; what each costs.");
  example::add_lessons(app, options.steps, options.seed, 1000);
  return app.run(argc, argv, [&] { run(options); });
}
