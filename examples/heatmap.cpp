// SPDX-License-Identifier: MIT
// The attention of a real pretrained layer over a real sentence, under four masks.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
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
  Index layer = 5;
  Index head = 11;
  Index sentence = 1;
  std::string text;
  std::string mask = "all";
  example::Pictures pictures;
  std::string color = "auto";
  std::string data = HEED_EXAMPLE_DATA;
  bool quick = false;
};

/// The words of each line of a text file.
std::vector<std::vector<std::string>> read_words(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw FileError(path + ": cannot be read");
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  return lines;
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw FileError(path + ": cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Where in the captured tensors the model's head stands. heads.txt: layer, then its heads.
Index captured_head(const Options& options) {
  std::string choices;
  for (const auto& line : read_words(options.data + "/heads.txt")) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[0] == std::to_string(options.layer) && line[i] == std::to_string(options.head)) {
        return static_cast<Index>(i) - 1;
      }
      choices += (i == 1 ? (choices.empty() ? "layer " : "; layer ") + line[0] + ", head " : ", ") +
                 line[i];
    }
  }
  throw std::invalid_argument("layer " + std::to_string(options.layer) + ", head " +
                              std::to_string(options.head) +
                              " was not captured from the model, but " + choices);
}

std::string lower(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

/// The sentence by --text, any part of it in any case, or by --sentence; none when the text is in
/// no captured sentence.
std::optional<std::size_t> chosen_sentence(const Options& options,
                                           const std::vector<std::string>& sentences) {
  std::string choices;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const bool matches = lower(sentences[i]).find(lower(options.text)) != std::string::npos;
    if (!options.text.empty() && matches) return i;
    choices += "; " + std::to_string(i + 1) + ": " + sentences[i];
  }
  if (!options.text.empty()) return std::nullopt;
  if (options.sentence < 1 || options.sentence > static_cast<Index>(sentences.size())) {
    throw std::invalid_argument("there is no sentence " + std::to_string(options.sentence) +
                                choices);
  }
  return static_cast<std::size_t>(options.sentence - 1);
}

struct NamedMask {
  std::string name;
  std::string title;
  Mask mask;
};

/// The masks asked for, of sequences of these lengths.
std::vector<NamedMask> chosen_masks(const std::string& name, const std::vector<Index>& lengths) {
  const masks::Causal causal;
  const masks::Padding padding(lengths);
  std::vector<NamedMask> chosen = {
      {"none", "no mask: every word looks at every word", masks::Full{}},
      {"causal", "causal: a word looks at itself and what came before", causal},
      {"padding", "padding: nobody looks at [PAD]", padding},
      {"combined", "combined: causal & padding", causal & padding}};
  if (name != "all") std::erase_if(chosen, [&](const auto& mask) { return mask.name != name; });
  return chosen;
}

/// A heatmap per mask, weights by heed's kernels.
std::vector<Heatmap> draw(const Options& options, std::size_t sentence) {
  const auto pieces = read_words(options.data + "/word_pieces.txt");
  std::vector<Index> lengths;
  for (const auto& words : pieces) {
    lengths.push_back(static_cast<Index>(words.size()) -
                      std::count(words.begin(), words.end(), "[PAD]"));
  }
  const std::string layer = options.data + "/layer" + std::to_string(options.layer);
  const Index head = captured_head(options);
  const auto queries = load_npy<float, 4>(layer + "_queries.npy");
  const auto keys = load_npy<float, 4>(layer + "_keys.npy");
  std::vector<Heatmap> heatmaps;
  for (const auto& [name, title, mask] : chosen_masks(options.mask, lengths)) {
    const auto weights = attention_weights(
        queries, keys, mask, WeightRows{.batch = static_cast<Index>(sentence), .head = head});
    heatmaps.push_back(heatmap_of(weights, pieces.at(sentence), title));
    heatmaps.back().numbers = true;
  }
  return heatmaps;
}

/// The same for any text, read by the model itself: only the layer that is shown is masked.
std::vector<Heatmap> draw_text(const Options& options) {
  const auto encoder = SentenceEncoder<float>::read(example::model_path("", "minilm"));
  const auto& blocks = encoder.model().blocks;
  const auto batch = encoder.tokens(std::vector{options.text});
  std::vector<std::string> pieces;
  for (const Index token : batch.tokens) pieces.push_back(encoder.tokenizer().name(token));
  if (options.layer < 0 || options.layer >= std::ssize(blocks) || options.head < 0 ||
      options.head >= encoder.model().options.block.heads) {
    throw std::invalid_argument("there are layers 0 to " + std::to_string(blocks.size() - 1) +
                                " and heads 0 to " +
                                std::to_string(encoder.model().options.block.heads - 1));
  }
  const auto layer = static_cast<std::size_t>(options.layer);
  auto x = encoder.model().embedded(batch.tokens);
  for (std::size_t i = 0; i < layer; ++i) x = blocks[i].forward(std::move(x), masks::Full{});
  std::vector<Heatmap> heatmaps;
  blocks[layer].forward_around(std::move(x), [&](const Tensor<float, 3>& in) {
    for (const auto& [name, title, mask] : chosen_masks(options.mask, batch.lengths)) {
      const auto weights = blocks[layer].attention.weights(in, in, mask);
      heatmaps.push_back(heatmap_of(weights.select(0, 0).select(0, options.head), pieces, title));
      heatmaps.back().numbers = true;
    }
    return in;
  });
  return heatmaps;
}

void run(const Options& options) {
  options.pictures.check();
  const auto terminal = terminal_options(options.color);
  const auto sentences = read_lines(options.data + "/sentences.txt");
  const auto sentence = chosen_sentence(options, sentences);
  const auto heatmaps = sentence ? draw(options, *sentence) : draw_text(options);
  std::printf("\"%s\", read by all-MiniLM-L6-v2, layer %td, head %td.\n",
              sentence ? sentences[*sentence].c_str() : options.text.c_str(), options.layer,
              options.head);
  std::printf("A row is a word that looks, a column a word looked at; a row adds up to 1.\n\n");
  std::fputs(to_terminal(heatmaps, terminal).c_str(), stdout);
  std::printf(
      "\nTry --layer 0 --head 2 (looks one word back), --layer 2 --head 8 (one ahead), "
      "--sentence 2,\n--mask causal, --svg heatmap.svg; --help says more.\n");
  if (options.pictures.any()) std::printf("\n");
  options.pictures.write(heatmaps);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Attention of a real pretrained layer over a real sentence, under four masks.\n"
      "Queries and keys were captured from all-MiniLM-L6-v2; the weights are computed here.");
  app.add_option("--layer", options.layer, "layer of the model: 0, 2 or 5; with other text 0 to 5");
  app.add_option(
      "--head", options.head,
      "head of the layer: 2, 1, 5, 8 of layer 0; 8, 0, 11, 10 of 2; 11, 4, 9, 3 of 5; with "
      "other text 0 to 11");
  app.add_option("--sentence", options.sentence, "1 (the shorter one, padded) or 2");
  app.add_option("--text", options.text,
                 "choose the sentence by a part of it, or give any other text: that is read by the "
                 "model, where HEED_MODELS names the folder that tools/models.sh filled");
  app.add_option("--mask", options.mask, "all, none, causal, padding or combined")
      .one_of({"all", "none", "causal", "padding", "combined"});
  options.pictures.add_options(app);
  example::add_color(app, options.color);
  app.add_option("--data", options.data, "folder of the captured tensors");
  example::add_threads(app);
  app.add_flag("--quick", options.quick, "every example takes it; this one is quick as it is");
  return app.run(argc, argv, [&] { run(options); });
}
