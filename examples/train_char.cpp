// SPDX-License-Identifier: MIT
// A small GPT learns to write like Shakespeare (train_char.hpp).
#include "train_char.hpp"

int main(int argc, char** argv) {
  return example::train_char(argc, argv,
                             "A small GPT learns to write like Shakespeare, letter by letter.", {},
                             [](const example::Options& options, const example::Text& text) {
                               options.quick ? example::learn<double>(options, text)
                                             : example::learn<float>(options, text);
                               return 0;
                             });
}
