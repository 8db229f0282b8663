// SPDX-License-Identifier: MIT
// What the examples without options share: --help, and no silence about what they do not take.
#pragma once

#include <cstdio>
#include <string_view>

namespace example {

/// Whether the program is to end with `status`: after --help, or after arguments, of which it takes
/// `least` to `most` (`usage` names them).
inline bool helped(int count, char** arguments, const char* about, int& status,
                   const char* usage = "", int least = 0, int most = 0) {
  bool help = false, wrong = count - 1 < least || count - 1 > most;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    help = help || argument == "--help" || argument == "-h";
    wrong = wrong || argument.substr(0, 1) == "-";
  }
  if (!help && !wrong) return false;
  const std::string_view path = arguments[0];
  const char* name = arguments[0] + (path.rfind('/') + 1);  // npos + 1 is 0
  if (help)
    std::printf("%s\nUsage: %s [--help]%s\n", about, arguments[0], usage);
  else
    std::fprintf(stderr, "%s: wrong arguments; usage: %s [--help]%s\n", name, name, usage);
  status = help ? 0 : 2;
  return true;
}

}  // namespace example
