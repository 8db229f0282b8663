// SPDX-License-Identifier: MIT
// Masks of images, texts and videos in one model each, trained: images that are read in all
// directions between texts that are written in one, and a video whose cells see their neighbors in
// space and time. Beside each the masks that lack one half of it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "learn.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;
using example::Batch;

struct Options {
  std::uint64_t seed = 1;
  Index steps = 1000;
  example::Pictures pictures;
};

// Images of 4 × 4 cells, which are dark or bright. In each lies or stands a bar of three cells, and
// somewhere apart from it a grain of dust. Behind an image its text: ": standing row2 column0".
constexpr Index side = 4, cells = side * side, spoken = 3, item_length = cells + 1 + spoken;
constexpr Index dark = 0, bright = 1, sign = 2, dust = 3, lying = 4, first_row = 6;
constexpr Index first_column = first_row + side, vocabulary = first_column + side;

std::string word(Index token) {
  if (token >= first_column) return "column" + std::to_string(token - first_column);
  if (token >= first_row) return "row" + std::to_string(token - first_row);
  return std::array{".", "#", ":", "dust", "lying", "standing"}[static_cast<std::size_t>(token)];
}

/// An image and its text, and what the model is to say at each of these tokens: what a bright cell
/// belongs to, and the next word.
struct Item {
  std::array<Index, item_length> tokens{}, targets{};
};
Item some_item(Random& random) {
  Item item;
  item.targets.fill(-100);
  const Index standing = random.integer(2);
  const Index row = random.integer(side - 2 * standing);
  const Index column = random.integer(side - 2 * (1 - standing));
  const auto put = [&](Index r, Index c, Index what) {
    const auto at = static_cast<std::size_t>(r * side + c);
    item.tokens[at] = bright;
    item.targets[at] = what;
  };
  for (Index i = 0; i < 3; ++i) {
    put(row + standing * i, column + (1 - standing) * i, lying + standing);
  }
  for (;;) {  // until the grain is no neighbor of the bar
    const Index r = random.integer(side), c = random.integer(side);
    const Index below = r - row - 2 * standing, right = c - column - 2 * (1 - standing);
    if (r >= row - 1 && below <= 1 && c >= column - 1 && right <= 1) continue;
    put(r, c, dust);
    break;
  }
  const std::array said = {sign, lying + standing, first_row + row, first_column + column};
  for (std::size_t i = 0; i < said.size(); ++i) {
    item.tokens[cells + i] = said[i];
    if (i + 1 < said.size()) item.targets[cells + i] = said[i + 1];
  }
  return item;
}

// [mixed]
/// An image's cells see all of it; what is written sees what stands before it, images too.
Mask images_and_text() {
  std::vector<Index> parts;
  for (Index i = 0; i < 2 * item_length; ++i) {
    const Index item = i / item_length, at = i % item_length;
    parts.push_back(at < cells ? item
                               : i + 2);  // an image is one part, a word is a part of its own
  }
  return masks::Causal{} | masks::Groups(parts);
}
// [/mixed]

/// Documents of two images, each with its text.
Batch documents(Index count, const Mask& mask, Random& random) {
  Batch batch{Tokens({count, 2 * item_length}), Tokens({count, 2 * item_length}), mask};
  for (Index i = 0; i < 2 * count; ++i) {
    const Item item = some_item(random);
    std::copy(item.tokens.begin(), item.tokens.end(), batch.tokens.data() + i * item_length);
    std::copy(item.targets.begin(), item.targets.end(), batch.targets.data() + i * item_length);
  }
  return batch;
}

/// The cells of first images, before anything is written about them.
Batch images_of(const Batch& documents) {
  const Index count = documents.tokens.extent(0);
  Batch images{Tokens({count, cells}), Tokens({count, cells}), documents.mask};
  copy(documents.tokens.slice(1, 0, cells), images.tokens);
  copy(documents.targets.slice(1, 0, cells), images.targets);
  return images;
}

struct Written {
  example::Score whole;  // texts without a wrong word
  std::string first;
};

/// Lets the model write the texts of second images.
Written write(const example::Model& model, const Batch& documents) {
  const Index prompt = item_length + cells + 1;
  std::vector<std::vector<Index>> prompts;
  for (Index i = 0; i < documents.tokens.extent(0); ++i) {
    const Index* document = documents.tokens.data() + i * 2 * item_length;
    prompts.emplace_back(document, document + prompt);
  }
  const auto texts = example::written(model, documents.mask, prompts, spoken);
  Written written;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Index* truth =
        documents.tokens.data() + std::ssize(prompts[i]) + static_cast<Index>(i) * 2 * item_length;
    written.whole += {std::equal(texts[i].begin(), texts[i].end(), truth), 1};
  }
  for (const Index token : texts[0]) written.first += ' ' + word(token);
  return written;
}

/// What the first of a batch looks at in a first block, under its mask.
Heatmap look(const char* name, const example::Model& model, const Batch& batch,
             const std::vector<std::string>& labels) {
  const Tokens first = Tokens::copy_of(batch.tokens.slice(0, 0, 1));
  const auto weights = attention_of(model, first, batch.mask, 0);
  return heatmap_of(weights.select(0, 0).select(0, 0), labels,
                    std::string(name) + ": first block, head 0");
}

/// The share of scores that a mask leaves to be computed.
double seen(const Mask& mask, Index length) {
  return 100 * statistics(mask, {.queries = length, .keys = length}).visible_share();
}

void mixed_text(const Options& options, std::vector<Heatmap>& pictures) {
  std::printf(
      "1. Image, text, image, text. Cells say what they belong to, then the image is described.\n\n"
      "mask                            scores seen   right: cells   texts   first text\n");
  Random fresh(options.seed, 2);
  const Batch held_out = documents(300, masks::Full{}, fresh);
  std::vector<std::string> labels;
  for (Index i = 0; i < 2 * item_length; ++i) labels.push_back(word(held_out.tokens(0, i)));
  for (const auto& [name, mask] : {std::pair<const char*, Mask>{"causal", masks::Causal{}},
                                   {"none", masks::Full{}},
                                   {"images all ways, text one way", images_and_text()}}) {
    const auto model =
        example::learned(example::small_model(vocabulary, 2 * item_length),
                         {name, options.steps, 5e-3, options.seed},
                         [&chosen = mask](Random& data) { return documents(8, chosen, data); });
    Batch asked = held_out;
    asked.mask = mask;
    const Written texts = write(model, asked);
    std::printf("%-30s  %8.1f %%   %10.1f %%   %3.0f %%  %s\n", name, seen(mask, 2 * item_length),
                example::score(model, images_of(asked)).percent(), texts.whole.percent(),
                texts.first.c_str());
    pictures.push_back(look(name, model, asked, labels));
  }
  std::printf("%-75s", "truth");
  for (std::size_t i = labels.size() - spoken; i < labels.size(); ++i) {
    std::printf(" %s", labels[i].c_str());
  }
  std::printf(
      "\n\nUnder a causal mask the first cell of a bar cannot know how it goes on; for a text it "
      "is\n"
      "enough. Without a mask the next word is seen in training, and writing is not learned.\n\n");
}

// Videos of 3 frames of 4 × 4 cells: a dot moves by a cell a frame, to one of four sides.
constexpr Index frames = 3, video_length = frames * cells, first_side = 2;

Batch videos(Index count, const Mask& mask, bool middle_only, Random& random) {
  Batch batch{Tokens({count, video_length}), Tokens({count, video_length}), mask};
  batch.tokens.fill(dark);
  batch.targets.fill(-100);
  for (Index i = 0; i < count; ++i) {
    const Index where = random.integer(4);  // up, down, left, right: so many cells a frame
    const Index step =
        std::array{-side, side, Index{-1}, Index{1}}[static_cast<std::size_t>(where)];
    const Index middle = (1 + random.integer(side - 2)) * side + 1 + random.integer(side - 2);
    for (Index frame = 0; frame < frames; ++frame) {
      const Index cell = middle + (frame - 1) * step;
      batch.tokens(i, frame * cells + cell) = bright;
      if (frame == 1 || !middle_only) batch.targets(i, frame * cells + cell) = first_side + where;
    }
  }
  return batch;
}

// [video]
/// Cells see the cells near them in their own frame and in `reach` frames before and behind it.
Mask neighbors(Index reach) {
  return predicate([reach](Index query, Index key) {
    const auto near = [](Index a, Index b, Index radius) { return std::abs(a - b) <= radius; };
    return near(query / cells, key / cells, reach) &&
           near(query % cells / side, key % cells / side, 1) && near(query % side, key % side, 1);
  });
}
// [/video]

void video(const Options& options, std::vector<Heatmap>& pictures) {
  std::printf(
      "2. A video. To which of four sides does the dot go? Asked in the middle frame, where its\n"
      "   place says nothing about that.\n\n"
      "mask                            scores seen   right\n");
  auto shape = example::small_model(first_side + 4, video_length);
  shape.block.heads = 4;
  for (const auto& [name, mask] :
       {std::pair<const char*, Mask>{"neighbors in the frame", neighbors(0)},
        {"neighbors in space and time", neighbors(1)},
        {"none", masks::Full{}}}) {
    const auto model =
        example::learned(shape, {name, options.steps / 5, 1e-2, options.seed},
                         [&chosen = mask](Random& data) { return videos(8, chosen, false, data); });
    Random fresh(options.seed, 2);
    const Batch asked = videos(300, mask, true, fresh);
    std::printf("%-30s  %8.1f %%   %3.0f %%\n", name, seen(mask, video_length),
                example::score(model, asked).percent());
    pictures.push_back(look(name, model, asked, {}));
  }
}

void run(const Options& options) {
  options.pictures.check();
  std::vector<Heatmap> pictures;
  mixed_text(options, pictures);
  video(options, pictures);
  options.pictures.write(pictures, 3);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Images and texts in one sequence, and a video: each in a model that trains, by the mask "
      "that\n"
      "fits, beside others.");
  example::add_lessons(app, options.steps, options.seed, 500);
  options.pictures.add_options(app, "attention under all masks");
  return app.run(argc, argv, [&] { run(options); });
}
