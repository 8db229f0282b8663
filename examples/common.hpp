// SPDX-License-Identifier: MIT
// What the examples with options share: one exit status for all that is refused, options of the
// same names, and checks of what was given that come before the work, not after it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>

namespace example {

/// What Ctrl-C sets after catch_interrupts: loops that train then ask `stop_asked`, and end with
/// what they have learned.
inline volatile std::sig_atomic_t interrupts = 0;
inline bool stop_asked() { return interrupts != 0; }

/// The first Ctrl-C is noted, the second one ends the program.
inline void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupts = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

/// Says why a program ends, in one line; its status.
inline int refused(const char* program, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", std::filesystem::path(program).stem().c_str(), why.c_str());
  return 2;
}

/// Reads the command line and runs the example. 0 after --help; 2, and one line, where the call or
/// what it names was refused; 130, as of every program, after Ctrl-C; else what `run` returns, 0
/// if nothing.
template <class Run>
int run(CLI::App& app, int count, char** arguments, const Run& run) {
  try {
    app.parse(count, arguments);
    int status = 0;
    if constexpr (std::is_void_v<decltype(run())>) {
      run();
    } else {
      status = run();
    }
    return stop_asked() && status == 0 ? 128 + SIGINT : status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refused(arguments[0], error.what() + std::string("; see --help"));
  } catch (const std::exception& error) {
    return refused(arguments[0], error.what());
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
  app.add_option("--color", color, "of what is printed")
      ->check(CLI::IsMember({"auto", "always", "never", "256", "truecolor"}))
      ->capture_default_str();
}

/// How far a loop is, how fast, and how long it still takes: one line that changes, on a terminal
/// alone, so that what is printed to files stays the same in every run.
class Progress {
 public:
  Progress(std::string name, heed::Index steps)
      : name_(std::move(name)), steps_(steps), shown_(::isatty(STDERR_FILENO) != 0) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// After every step.
  void step() {
    ++done_;
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double rate = static_cast<double>(done_) / seconds;
    std::fprintf(stderr, "\r%s: %td of %td, %.1f a second, %.0f s left\033[K", name_.c_str(), done_,
                 steps_, rate, static_cast<double>(steps_ - done_) / rate);
    drawn_ = true;
  }
  /// Before something is printed.
  void clear() {
    if (drawn_) std::fputs("\r\033[K", stderr);
    drawn_ = false;
  }

 private:
  std::string name_;
  heed::Index steps_, done_ = 0;
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

/// Throws when a file of this name could not be written; an empty name is none. Tries it with
/// another file beside it, as files are written: what is allowed to root may still be impossible.
inline void check_can_write(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return;
  const auto refuse = [&](int error) {
    throw std::runtime_error(path + ": " + std::strerror(error));
  };
  if (fs::is_directory(path)) refuse(EISDIR);
  std::string beside = (fs::path(path).parent_path() / ".heed-XXXXXX").string();
  const int file = ::mkstemp(beside.data());
  if (file < 0) refuse(errno);
  ::close(file);
  ::unlink(beside.c_str());
}

/// Makes the folder that pictures will be written to, where there is none; an empty name is none.
inline void make_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": " + error.message());
  check_can_write(folder + "/picture.svg");
}

}  // namespace example
