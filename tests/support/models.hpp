// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <string>

namespace heed::test {

/// A file of the real models that tools/models.sh brings; empty when HEED_MODELS names no folder.
inline std::string model_file(const std::string& name) {
  const char* folder = std::getenv("HEED_MODELS");
  return folder == nullptr || *folder == '\0' ? std::string() : std::string(folder) + "/" + name;
}

}  // namespace heed::test

/// Leaves the test, by name, where the real models are not at hand.
#define HEED_NEEDS_MODELS()               \
  if (heed::test::model_file("").empty()) \
  GTEST_SKIP() << "HEED_MODELS names no folder; tools/models.sh brings the models"
