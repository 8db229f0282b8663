// SPDX-License-Identifier: MIT
// What the examples without options share: --help, and no silence about what they do not take.
#pragma once

#include <cstdio>
#include <string_view>

namespace example {

/// Whether the program is to end with `status`: after --help, or after arguments, of which it takes
/// `most` (`usage` names them).
inline bool helped(int count, char** arguments, const char* about, int& status,
                   const char* usage = "", int most = 0) {
  bool help = false, wrong = count - 1 > most;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    help = help || argument == "--help" || argument == "-h";
    wrong = wrong || argument.substr(0, 1) == "-";
  }
  if (!help && !wrong) return false;
  std::fprintf(help ? stdout : stderr, "%s\nUsage: %s [--help]%s\n", about, arguments[0], usage);
  status = help ? 0 : 2;
  return true;
}

}  // namespace example
