// SPDX-License-Identifier: MIT
#include <heed/generation.hpp>

heed::Session<float> misuse(heed::LanguageModel<float> model()) {
  return heed::Session<float>(model());
}
