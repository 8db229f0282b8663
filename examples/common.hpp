// SPDX-License-Identifier: MIT
// What the examples with options share: one exit status for all wrong calls, and checks of what was
// given that come before the work, not after it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include <heed/core/index.hpp>

namespace example {

/// Reads the command line. False when the program is to end with `status`: 0 after --help, 2 when
/// the call was wrong, which has been said.
inline bool parse(CLI::App& app, int count, char** arguments, int& status) {
  try {
    app.parse(count, arguments);
    return true;
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
}

/// A whole number that is `least` or more.
inline CLI::Validator at_least(heed::Index least) {
  const std::string name = "INT >= " + std::to_string(least);
  const auto check = [name, least](const std::string& text) {
    heed::Index value = 0;
    return CLI::detail::lexical_cast(text, value) && value >= least ? std::string()
                                                                    : text + " is not " + name;
  };
  return CLI::Validator(check, name);
}

/// Throws when a file of this name could not be written; an empty name is none.
inline void check_can_write(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return;
  const auto refuse = [&](const char* why) { throw std::runtime_error(path + ": " + why); };
  if (fs::is_directory(path)) refuse(std::strerror(EISDIR));
  const std::string folder = fs::path(path).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    refuse(std::strerror(errno));
  }
}

/// Makes the folder that pictures will be written to, where there is none; an empty name is none.
inline void make_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  check_can_write(folder + "/picture.svg");
}

}  // namespace example
