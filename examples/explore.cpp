// SPDX-License-Identifier: MIT
// All attention of a real model over any sentence, or over a pair of them: one HTML page to explore
// in a browser, and the same as text.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <heed/heed.hpp>
#include <heed/pretrained.hpp>
#include <heed/text.hpp>

#include "common.hpp"
#include "pictures.hpp"
#include "real_models.hpp"

namespace {

using namespace heed;

struct Options {
  std::string model, head, html, color = "auto";
  std::vector<std::string> masks;
  example::Pictures large;
  std::vector<std::string> sentences;
};

/// The tokens of one text or a pair, and which of the two each belongs to.
struct Text {
  std::vector<Index> tokens, kinds;
  std::vector<std::string> labels;

  void add(std::vector<Index> more, Index kind) {
    for (const Index token : more) {
      tokens.push_back(token);
      kinds.push_back(kind);
    }
  }
  static Tokens row(const std::vector<Index>& values) {
    Tokens row({1, static_cast<Index>(values.size())});
    std::copy(values.begin(), values.end(), row.data());
    return row;
  }
};

/// The texts of byte-level tokens; the tokens of one character are numbered: 我1 我2.
std::vector<std::string> byte_labels(const ModelTokenizer& tokenizer,
                                     const std::vector<Index>& tokens) {
  std::vector<std::string> labels;
  for (std::size_t first = 0; first < tokens.size();) {
    std::string bytes = tokenizer.decode({&tokens[first], 1});
    std::size_t end = first + 1;
    while (complete_utf8(bytes) < bytes.size() && end < tokens.size()) {
      bytes += tokenizer.decode({&tokens[end++], 1});
    }
    for (std::size_t i = first; i < end; ++i) {
      const std::string number = end - first > 1 ? std::to_string(i - first + 1) : "";
      labels.push_back(example::label_of(bytes) + number);
    }
    first = end;
  }
  return labels;
}

/// [CLS] first [SEP] second [SEP] for a BERT; the texts one after the other for a language model.
Text text_of(const ModelTokenizer& tokenizer, const std::vector<std::string>& sentences) {
  Text text;
  const auto* words = std::get_if<WordPiece>(&tokenizer.kind);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const Index kind = i > 0 ? 1 : 0;
    if (words != nullptr) {
      auto tokens = words->encode_sentence(sentences[i]);
      if (i > 0) tokens.erase(tokens.begin());
      text.add(std::move(tokens), kind);
    } else {
      text.add(tokenizer.encode((i > 0 ? " " : "") + sentences[i]), kind);
    }
  }
  if (words == nullptr) {
    text.labels = byte_labels(tokenizer, text.tokens);
  } else {
    for (const Index token : text.tokens) text.labels.emplace_back(words->name(token));
  }
  return text;
}

/// The mask that --mask names: full, causal, window:N, chunk:N or prefix:N. A window or chunk of a
/// language model is also causal, as the model was trained.
Mask mask_of(const std::string& name, bool language_model) {
  if (name == "full") return masks::Full{};
  if (name == "causal") return masks::Causal{};
  const std::size_t colon = std::min(name.find(':'), name.size());
  const std::string kind = name.substr(0, colon);
  Index count = 0;
  int used = 0;
  if (colon < name.size() && std::sscanf(&name[colon], ":%td%n", &count, &used) == 1 &&
      colon + static_cast<std::size_t>(used) == name.size() && count > 0) {
    const auto of = [&](const Mask& mask) {
      return language_model ? Mask(mask & masks::Causal{}) : mask;
    };
    if (kind == "window") return of(masks::SlidingWindow{.left = count, .right = count});
    if (kind == "chunk") return of(masks::Chunked{count});
    if (kind == "prefix") return masks::Prefix(count);
  }
  throw std::invalid_argument("--mask " + name +
                              ": expected full, causal, window:N, chunk:N or prefix:N, N above 0");
}

/// (layers, heads, tokens, tokens): the model runs under this mask, in all layers.
Tensor<float, 4> weights_of(const LoadedModel<float>& loaded, const Text& text, const Mask& mask) {
  const Tokens tokens = Text::row(text.tokens);
  const auto of = [&](const auto& all) { return Tensor<float, 4>::copy_of(all.select(1, 0)); };
  if (const auto* encoder = std::get_if<Encoder<float>>(&loaded.model)) {
    return of(attention_of(*encoder, tokens, mask, Text::row(text.kinds)));
  }
  return of(attention_of(loaded.language_model(), tokens, mask));
}

/// What half of a head's weight, or more, goes to.
struct Habit {
  char letter;
  const char* meaning;
};
constexpr Habit habits[] = {{'s', "the token itself"},
                            {'p', "the token before"},
                            {'n', "the token after"},
                            {'f', "the first token"},
                            {'l', "the last token"}};

char habit_of(const TensorView<const float, 2>& weights) {
  const Index count = weights.extent(0), last = count - 1;
  double sums[5] = {};
  for (Index query = 0; query < count; ++query) {
    // The ends have no token before or after them, and tell nothing of the first and last.
    sums[0] += static_cast<double>(weights(query, query));
    if (query > 0) sums[1] += static_cast<double>(weights(query, query - 1));
    if (query < last) sums[2] += static_cast<double>(weights(query, query + 1));
    sums[3] += static_cast<double>(weights(query, 0));
    sums[4] += static_cast<double>(weights(query, last));
  }
  const auto* most = std::max_element(sums, sums + 5);
  return *most >= 0.5 * static_cast<double>(count) ? habits[most - sums].letter : '.';
}

/// A row per layer, a letter per head.
void show_habits(const Tensor<float, 4>& weights) {
  std::printf("What each head looks at (half of its weight or more):");
  for (const Habit& habit : habits) std::printf("  %c %s", habit.letter, habit.meaning);
  std::printf("  . many\n\nhead     ");
  for (Index head = 0; head < weights.extent(1); ++head) std::printf("%3td", head);
  for (Index layer = 0; layer < weights.extent(0); ++layer) {
    std::printf("\nlayer %2td ", layer);
    for (Index head = 0; head < weights.extent(1); ++head) {
      std::printf("  %c", habit_of(weights.select(0, layer).select(0, head)));
    }
  }
  std::printf("\n");
}

example::HeadName head_of(const Tensor<float, 4>& weights, const Options& options) {
  const auto name = example::head_name(options.head);
  const auto [layer, head] = name;
  if (layer < 0 || layer >= weights.extent(0) || head < 0 || head >= weights.extent(1)) {
    throw std::invalid_argument("--head " + options.head + ": the model has " +
                                std::to_string(weights.extent(0)) + " layers of " +
                                std::to_string(weights.extent(1)) + " heads");
  }
  return name;
}

/// The large head under each mask.
void show_head(const AttentionPage& page, const example::HeadName& name, const Options& options) {
  const std::string place =
      "layer " + std::to_string(name.layer) + ", head " + std::to_string(name.head);
  std::vector<Heatmap> panels;
  const auto add = [&](const Tensor<float, 4>& weights, const std::string& mask) {
    panels.push_back(heatmap_of(weights.select(0, name.layer).select(0, name.head), page.key_labels,
                                page.others.empty() ? place : mask + ": " + place));
    panels.back().by_root = true;  // as on the page
  };
  add(page.weights, page.mask);
  for (const AttentionUnder& other : page.others) add(other.weights, other.mask);
  std::printf("\n%s", to_terminal(panels, terminal_options(options.color)).c_str());
  options.large.write(panels);
}

void run(const Options& options) {
  example::check_can_write(options.html);
  options.large.check();
  for (const std::string& name : options.masks) static_cast<void>(mask_of(name, false));
  // [explore]
  const auto loaded = load_model(example::model_path(options.model, "minilm"));
  if (!loaded.tokenizer) throw std::invalid_argument("the model has no tokenizer beside it");
  const Text text = text_of(*loaded.tokenizer, options.sentences);
  if (text.tokens.empty()) throw std::invalid_argument("the sentence has no tokens");
  const bool language_model = !std::holds_alternative<Encoder<float>>(loaded.model);
  const std::string own = language_model ? "causal" : "full";
  AttentionPage page{.weights = weights_of(loaded, text, mask_of(own, language_model)),
                     .query_labels = text.labels,
                     .key_labels = text.labels,
                     .title = options.sentences[0],
                     .mask = own};
  for (const std::string& name : options.masks) {
    page.others.push_back({name, weights_of(loaded, text, mask_of(name, language_model))});
  }
  // [/explore]
  const auto large = head_of(page.weights, options);
  show_habits(page.weights);
  show_head(page, large, options);
  if (options.html.empty()) return;
  if (options.sentences.size() > 1) page.title += " / " + options.sentences[1];
  write_html(options.html, page);
  std::printf("wrote %s: open it in a browser\n", options.html.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.sentences = {"The cat sat on the mat because it was tired."};
  options.head = "0.0";
  bool quick = false;
  example::CommandLine app(
      "All attention of a real model over any sentence, or over a pair: one HTML page to explore "
      "in a browser, and the same as text.");
  app.add_option("sentences", options.sentences, "one or two").expected(1, 2);
  app.add_option("--model", options.model,
                 "a folder as Hugging Face publishes it, or a .gguf file; default: minilm in "
                 "$HEED_MODELS");
  app.add_option("--head", options.head, "LAYER.HEAD, shown large");
  app.add_option("--mask", options.masks,
                 "run the model under this mask too, to switch to on the page: full, causal, "
                 "window:N (N tokens to either side), chunk:N or prefix:N; may be repeated")
      .one_each_time();
  app.add_option("--html", options.html, "write the page to this file");
  app.add_option("--svg", options.large.svg, "write the large head to this file as SVG");
  app.add_option("--png", options.large.png, "the same as PNG");
  example::add_color(app, options.color);
  example::add_threads(app);
  app.add_flag("--quick", quick, "taken for uniformity: one sentence is quick");
  return app.run(argc, argv, [&] { run(options); });
}
