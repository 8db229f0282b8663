// SPDX-License-Identifier: MIT
// Masks that are learned, made of content, or of two dimensions, each inside a model that trains: a
// bias by distance that finds what matters, blocks of keys chosen by what they hold, and images of
// different sizes in one batch.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;

struct Options {
  std::uint64_t seed = 1;
  example::PictureFolder folder;
  bool quick = false;
};

/// Every token's target is the token three before it; positions are known by distance alone, a
/// number for each distance and head, learned from 0.
template <class T>
void learned_bias(const Options& options) {
  std::printf(
      "1. A bias that is learned: which distance matters? (The task: say the token three back.)\n");
  Random random(options.seed);
  // [bias]
  LanguageModelOptions shape;
  shape.vocab_size = 10;
  shape.block = {.model_dim = 32,
                 .heads = 2,
                 .positions = PositionKind::relative,  // a learned bias by distance
                 .relative_reach = 8};                 // keys farther away share the last number
  LanguageModel<T> model(shape, random);
  // [/bias]
  AdamW optimizer(model, {.learning_rate = 1e-2});
  auto gradients = zeros_like(model);
  const int steps = 150;
  example::Progress progress("bias", steps + 1);
  for (int step = 0; step <= steps && !example::stop_asked(); ++step) {
    Tokens tokens({16, 20}), targets({16, 20});
    for (Index& token : tokens) token = random.integer(10);
    for (Index row = 0; row < 16; ++row) {
      for (Index i = 0; i < 20; ++i) targets(row, i) = i < 3 ? -100 : tokens(row, i - 3);
    }
    typename LanguageModel<T>::Saved saved;
    const auto logits = model.forward(tokens, masks::Causal{}, saved);
    const auto [loss, grad_logits] = cross_entropy(logits, targets);
    set_zero(gradients);
    model.backward(grad_logits, saved, gradients);
    optimizer.step(model, gradients);
    progress.step();
    if (step % 50 != 0) continue;
    progress.clear();
    std::printf("  step %3d  loss %.3f\n", step, loss);
  }
  progress.clear();
  const auto& bias = *model.blocks[0].attention.score_bias.relative;
  std::printf("  distance");
  for (Index back = 0; back <= 8; ++back) std::printf("%6td", -back);
  Chart chart{.title = "What is added to a score", .x_title = "distance", .y_title = "bias"};
  for (Index head = 0; head < 2; ++head) {
    std::printf("\n  head %td  ", head);
    Series& line = chart.series.emplace_back(Series{"head " + std::to_string(head)});
    for (Index back = 0; back <= 8; ++back) {
      line.x.push_back(static_cast<double>(-back));
      line.y.push_back(static_cast<double>(bias(head, 8 - back)));
      std::printf(" %5.1f", line.y.back());
    }
  }
  std::printf("\n\n");
  options.folder.write("bias", chart);
}

// [content]
/// Attention to a few blocks of tokens: of those that a token may see, the ones whose keys fit its
/// query best. The mask is made anew for every batch; visible scores have gradients.
template <class T>
struct Retriever {
  struct Saved {
    typename Embedding<T>::Saved embedding;
    typename MultiHeadAttention<T>::Saved attention;
    typename Linear<T>::Saved head;
  };

  Mask mask_of(const Tensor<T, 3>& x) const {
    if (kept == 0) return masks::Causal{};
    const auto in = attention.inputs(x, x, x);
    return block_top_k(attention.heads_of(in.queries), attention.heads_of(in.keys), masks::Causal{},
                       block, kept);
  }
  Tensor<T, 3> forward(const Tokens& tokens, Saved& saved) const {
    auto x = embedding.forward(tokens, saved.embedding);
    const Mask mask = mask_of(x);
    x = attention.forward(std::move(x), mask, saved.attention);
    return head.forward(std::move(x), saved.head);
  }
  void backward(const Tensor<T, 3>& grad, const Saved& saved, Retriever& gradients) const {
    auto x = head.backward(grad, saved.head, gradients.head);
    x = attention.backward(x, saved.attention, gradients.attention);
    embedding.backward(x, saved.embedding, gradients.embedding);
  }
  static auto members(auto& model) {
    return Members{member("embedding", model.embedding), member("attention", model.attention),
                   member("head", model.head)};
  }

  Embedding<T> embedding;
  MultiHeadAttention<T> attention;
  Linear<T> head;
  Index block = 2;
  Index kept = 4;  // blocks that a token sees; 0: all
};
// [/content]

/// 32 names with one of four values each, in any order (token 4 · name + value), then eight names
/// (token 128 + name) to be answered by their values.
struct Questions {
  Tokens tokens{Extents<2>{8, 40}}, targets{Extents<2>{8, 40}};
};
Questions some_questions(Random& random) {
  Questions questions;
  std::fill(questions.targets.begin(), questions.targets.end(), -100);
  for (Index row = 0; row < 8; ++row) {
    std::vector<Index> names(32), values(32);
    for (Index i = 0; i < 32; ++i) names[static_cast<std::size_t>(i)] = i;
    for (Index& value : values) value = random.integer(4);
    heed::detail::shuffle(names, random);
    for (Index i = 0; i < 32; ++i) {
      const Index name = names[static_cast<std::size_t>(i)];
      questions.tokens(row, i) = 4 * name + values[static_cast<std::size_t>(name)];
    }
    for (Index i = 32; i < 40; ++i) {
      const Index name = random.integer(32);
      questions.tokens(row, i) = 128 + name;
      questions.targets(row, i) = values[static_cast<std::size_t>(name)];
    }
  }
  return questions;
}

/// The share of right answers to questions that no model was trained on.
template <class T>
double accuracy(const Retriever<T>& model, std::uint64_t seed) {
  Random random(seed);
  Index right = 0, asked = 0;
  for (int batch = 0; batch < 20; ++batch) {
    const Questions questions = some_questions(random);
    typename Retriever<T>::Saved saved;
    const auto logits = model.forward(questions.tokens, saved);
    for (Index i = 0; i < questions.targets.size(); ++i) {
      if (questions.targets.data()[i] < 0) continue;
      const T* answers = logits.data() + 4 * i;
      right += std::max_element(answers, answers + 4) - answers == questions.targets.data()[i];
      ++asked;
    }
  }
  return static_cast<double>(right) / static_cast<double>(asked);
}

/// A model that sees `kept` blocks, trained; the same weights and questions for any number. Adds
/// its losses to a chart.
template <class T>
Retriever<T> trained_retriever(const Options& options, Index kept, Chart& losses) {
  std::printf("  %s\n", kept == 0 ? "every token before it:" : "4 blocks of 20, chosen:");
  Random random(options.seed);
  Retriever<T> model{{{.vocab_size = 160, .dim = 64, .init_std = 1}, random},
                     {{.model_dim = 64, .heads = 4}, random},
                     {{.inputs = 64, .outputs = 4}, random}};
  model.kept = kept;
  Adam optimizer(model, {.learning_rate = 3e-3});
  auto gradients = zeros_like(model);
  const int steps = options.quick ? 210 : 390;
  Series& line = losses.series.emplace_back(Series{kept == 0 ? "all" : "chosen"});
  example::Progress progress("questions", steps + 1);
  for (int step = 0; step <= steps && !example::stop_asked(); ++step) {
    const Questions questions = some_questions(random);
    typename Retriever<T>::Saved saved;
    const auto logits = model.forward(questions.tokens, saved);
    const auto [loss, grad_logits] = cross_entropy(logits, questions.targets);
    line.x.push_back(step);
    line.y.push_back(loss);
    progress.step();
    if (step % (steps / 3) == 0) {
      progress.clear();
      std::printf("    step %3d  loss %.3f  right answers to new questions %5.1f %%\n", step, loss,
                  100 * accuracy(model, options.seed + 1));
    }
    set_zero(gradients);
    model.backward(grad_logits, saved, gradients);
    optimizer.step(model, gradients);
  }
  return model;
}

template <class T>
void content_mask(const Options& options) {
  std::printf(
      "2. A mask of content, beside the one it chooses from. (The task: look values up.)\n");
  Chart losses{.title = "Loss, of 20 blocks", .x_title = "step", .y_title = "loss"};
  trained_retriever<T>(options, 0, losses);
  const auto model = trained_retriever<T>(options, 4, losses);
  Random random(options.seed + 2);
  Tokens first = some_questions(random).tokens;
  first = Tokens::copy_of(std::as_const(first).slice(0, 0, 1));
  std::printf("  what head 0 lets through, of the last questions of one sequence:\n");
  const Mask mask = model.mask_of(model.embedding.forward(first));
  for (Index query = 33; query < 40; query += 2) {
    std::printf("  ");
    for (Index key = 0; key < 40; key += 2) {
      std::printf("%s", mask.allows({0, 0, query, key}) ? "\u2588\u2588" : "\u00b7 ");
    }
    std::printf("\n");
  }
  std::printf("\n");
  options.folder.write("content_loss", losses);
  options.folder.write("content_mask", heatmap_of(mask, 40, 40, "What head 0 lets through"));
}

/// Images in one batch, padded to one size: each holds a bar, lying (1) or standing (2). A cell is
/// dark (0), bright (1) or outside the image (2).
struct Images {
  static constexpr Index side = 6;
  Tokens cells, targets;
  std::vector<std::pair<Index, Index>> sizes;  // rows, columns
};
Images some_images(Index count, Random& random) {
  Images images{Tokens({count, 36}), Tokens({count, 36}), {}};
  std::fill(images.cells.begin(), images.cells.end(), 2);
  std::fill(images.targets.begin(), images.targets.end(), -100);
  for (Index item = 0; item < count; ++item) {
    const Index rows = 3 + random.integer(4), columns = 3 + random.integer(4);
    images.sizes.emplace_back(rows, columns);
    const bool standing = random.integer(2) == 1;
    const Index row = random.integer(standing ? rows - 2 : rows);
    const Index column = random.integer(standing ? columns : columns - 2);
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < columns; ++c) {
        const bool bright = standing ? c == column && r >= row && r < row + 3
                                     : r == row && c >= column && c < column + 3;
        images.cells(item, r * Images::side + c) = bright;
        images.targets(item, r * Images::side + c) = bright ? 1 + standing : 0;
      }
    }
  }
  return images;
}

// [grid]
/// A cell sees those of its neighbors that belong to its image.
Mask mask_of(const Images& images) {
  const auto inside = masks::valid_cells(std::ssize(images.sizes), Images::side, Images::side,
                                         [&](Index item, Index row, Index column) {
                                           const auto& [rows, columns] =
                                               images.sizes[static_cast<std::size_t>(item)];
                                           return row < rows && column < columns;
                                         });
  return masks::GridNeighborhood{Images::side, Images::side, 1} & inside;
}
// [/grid]

template <class T>
struct Painter {
  Encoder<T> encoder;
  Linear<T> head;
  static auto members(auto& model) {
    return Members{member("encoder", model.encoder), member("head", model.head)};
  }
};

template <class T>
bool padding_changes_no_bit(const Painter<T>& model, Images images) {
  const Mask mask = mask_of(images);
  const auto before = model.head.forward(model.encoder.forward(images.cells, mask));
  for (Index i = 0; i < images.cells.size(); ++i) {
    if (images.targets.data()[i] < 0) images.cells.data()[i] = i % 3;
  }
  const auto after = model.head.forward(model.encoder.forward(images.cells, mask));
  for (Index i = 0; i < images.cells.size(); ++i) {
    if (images.targets.data()[i] < 0) continue;
    if (std::memcmp(before.data() + 3 * i, after.data() + 3 * i, 3 * sizeof(T)) != 0) return false;
  }
  return true;
}

template <class T>
void image_grid(const Options& options) {
  std::printf(
      "3. Images of different sizes in one batch, cells that see their neighbors. (The task: "
      "which\n"
      "   cells belong to a bar that lies, which to one that stands?)\n");
  Random random(options.seed);
  Painter<T> model{Encoder<T>({.vocab_size = 3,
                               .layers = 2,
                               .max_length = 36,
                               .embedding_norm = true,
                               .init_std = 0.1,
                               .block = {.model_dim = 32,
                                         .heads = 2,
                                         .hidden_dim = 64,
                                         .activation = ActivationKind::gelu,
                                         .norm_epsilon = 1e-12,
                                         .norm_before = false}},
                              random),
                   Linear<T>(32, 3, random)};
  AdamW optimizer(model, {.learning_rate = 3e-3});
  auto gradients = zeros_like(model);
  const int steps = options.quick ? 210 : 300;
  example::Progress progress("images", steps + 1);
  for (int step = 0; step <= steps && !example::stop_asked(); ++step) {
    const Images images = some_images(16, random);
    typename Encoder<T>::Saved saved;
    typename Linear<T>::Saved saved_head;
    const auto x = model.encoder.forward(images.cells, mask_of(images), saved);
    const auto [loss, grad_logits] =
        cross_entropy(model.head.forward(x, saved_head), images.targets);
    set_zero(gradients);
    auto grad = model.head.backward(grad_logits, saved_head, gradients.head);
    model.encoder.backward(std::move(grad), saved, gradients.encoder);
    optimizer.step(model, gradients);
    progress.step();
    if (step % (steps / 3) != 0) continue;
    progress.clear();
    std::printf("  step %3d  loss %.3f\n", step, loss);
  }
  progress.clear();
  const Images images = some_images(6, random);
  const auto logits = model.head.forward(model.encoder.forward(images.cells, mask_of(images)));
  for (Index row = 0; row < Images::side; ++row) {
    std::printf("  ");
    for (Index item = 0; item < 6; ++item) {
      for (Index column = 0; column < Images::side; ++column) {
        const Index cell = row * Images::side + column;
        const T* classes = logits.data() + (item * 36 + cell) * 3;
        const auto best = std::max_element(classes, classes + 3) - classes;
        std::printf("%c", images.targets(item, cell) < 0 ? ' ' : ".-|"[best]);
      }
      std::printf("   ");
    }
    std::printf("\n");
  }
  std::printf("  what stands outside the images changes no bit of what is inside: %s\n",
              padding_changes_no_bit(model, images) ? "true" : "FALSE");
  const auto weights = attention_of(model.encoder, images.cells, mask_of(images), 0);
  options.folder.write(
      "images", heatmap_of(weights.select(0, 0).select(0, 0), {}, "The cells of an image, head 0"));
}

template <class T>
void run(const Options& options) {
  options.folder.check();
  example::catch_interrupts();
  for (const auto part : {learned_bias<T>, content_mask<T>, image_grid<T>}) {
    if (!example::stop_asked()) part(options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Masks that are learned, made of content, or of two dimensions, inside models that train.");
  app.add_option("--seed", options.seed, "of data and weights");
  example::add_threads(app);
  options.folder.add_options(app);
  app.add_flag("--quick", options.quick, "fewer steps; in double");
  return app.run(argc, argv, [&] { options.quick ? run<double>(options) : run<float>(options); });
}
