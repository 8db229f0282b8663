// SPDX-License-Identifier: MIT
// What the examples with options share: one exit status for all that is refused, options of the
// same names, and checks of what was given that come before the work, not after it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <CLI/CLI.hpp>

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>

namespace example {

/// Reads the command line and runs the example. 0 after --help; 2, and one line, where the call or
/// what it names was refused; else what `run` returns, 0 if nothing.
template <class Run>
int run(CLI::App& app, int count, char** arguments, const Run& run) {
  try {
    app.parse(count, arguments);
    if constexpr (std::is_void_v<decltype(run())>) {
      run();
      return 0;
    } else {
      return run();
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", std::filesystem::path(arguments[0]).stem().c_str(),
                 error.what());
    return 2;
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

/// --threads, which says how many all computations take.
inline void add_threads(CLI::App& app) {
  app.add_option_function<heed::Index>(
         "--threads",
         [](heed::Index threads) {
           if (threads > 0) heed::set_thread_count(threads);
         },
         "threads to compute with; 0: all")
      ->check(at_least(0))
      ->default_str("0");
}

/// --color, for terminal_options.
inline void add_color(CLI::App& app, std::string& color) {
  app.add_option("--color", color, "auto, always, never, 256 or truecolor")->capture_default_str();
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
