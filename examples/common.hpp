// SPDX-License-Identifier: MIT
// What the examples with options share: one exit status for all that is refused, options of the
// same names, and checks of what was given that come before the work, not after it.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/index.hpp>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace example {

/// What Ctrl-C sets after catch_interrupts: loops that train then ask `stop_asked`, and end with
/// what they have learned.
inline volatile std::sig_atomic_t interrupts = 0;
inline bool stop_asked() { return interrupts != 0; }
/// The first Ctrl-C is noted, the second one ends the program.
void catch_interrupts();

/// An option of a command line, to say what it takes.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& at_least(double least);
  Option& above(double bound);
  Option& between(double least, double most);
  Option& one_of(const std::vector<std::string>& names);
  Option& existing_file();
  Option& required();
  /// Takes so many values.
  Option& expected(int least, int most);
  /// Takes one value each time it is given.
  Option& one_each_time();
  /// Is refused without the other one.
  Option& needs(const Option& other);

 private:
  CLI::Option* option_;
};

/// The options and arguments of an example. common.cpp alone includes CLI11, which reads them: its
/// header takes longer to compile than most examples.
class CommandLine {
 public:
  explicit CommandLine(const std::string& about);
  ~CommandLine();

  /// An option ("--name") or an argument ("name") that sets `value`, which holds its default.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& about = "") {
    return add(name, &value, about);
  }
  /// One that calls `set` with what is given.
  Option add_setter(const std::string& name, const std::function<void(const std::string&)>& set,
                    const std::string& about);
  /// One that sets `value` to what the given name stands for.
  template <class T>
  Option add_choice(const std::string& name, T& value,
                    const std::vector<std::pair<std::string, T>>& choices,
                    const std::string& about) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    const auto set = [choices, &value](const std::string& given) {
      for (const auto& choice : choices) {
        if (choice.first == given) value = choice.second;
      }
    };
    return add_setter(name, set, about).one_of(names);
  }
  Option add_flag(const std::string& name, bool& value, const std::string& about);
  Option add_flag(const std::string& name, const std::function<void()>& set,
                  const std::string& about);

  /// Reads what was given and runs the example. 0 after --help; 2, and one line, where the call or
  /// what it names was refused; 130, as of every program, after Ctrl-C; else what `run` returns,
  /// 0 if nothing.
  template <class Run>
  int run(int count, char** arguments, const Run& run) {
    if constexpr (std::is_void_v<decltype(run())>) {
      return status_of(count, arguments, [&run] { return run(), 0; });
    } else {
      return status_of(count, arguments, run);
    }
  }

 private:
  using Value = std::variant<int*, heed::Index*, std::uint64_t*, float*, double*, std::string*,
                             std::vector<std::string>*>;
  Option add(const std::string& name, Value value, const std::string& about);
  int status_of(int count, char** arguments, const std::function<int()>& run);

  std::unique_ptr<CLI::App> app_;
};

/// --threads, which says how many all computations take.
void add_threads(CommandLine& line);

/// --color, for terminal_options.
void add_color(CommandLine& line, std::string& color);

/// How far a loop is, how fast, and how long it still takes: one line that changes, on a terminal
/// alone, so that what is printed to files stays the same in every run.
class Progress {
 public:
  Progress(std::string name, heed::Index steps);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// After every step.
  void step();
  /// Before something is printed.
  void clear();

 private:
  std::string name_;
  heed::Index steps_, done_ = 0;
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

/// Throws when a file of this name could not be written; an empty name is none. Tries it with
/// another file beside it, as files are written: what is allowed to root may still be impossible.
void check_can_write(const std::string& path);

/// Makes the folder that pictures will be written to, where there is none; an empty name is none.
void make_folder(const std::string& folder);

}  // namespace example
