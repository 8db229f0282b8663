// SPDX-License-Identifier: MIT
#include "common.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include <heed/core/parallel.hpp>

namespace example {
namespace {

/// Refuses values whose number `accepts` refuses; `name` says which it takes.
CLI::Validator number_check(const std::string& name, const std::function<bool(double)>& accepts) {
  return CLI::Validator(
      [name, accepts](const std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && accepts(value);
        return good ? std::string() : text + " is not " + name;
      },
      name);
}

/// Says why a program ends, in one line; its status.
int refused(const char* program, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", std::filesystem::path(program).stem().c_str(), why.c_str());
  return 2;
}

std::string text_of(double value) { return CLI::detail::to_string(value); }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupts = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

Option& Option::at_least(double least) {
  option_->check(number_check(">= " + text_of(least), [=](double x) { return x >= least; }));
  return *this;
}
Option& Option::above(double bound) {
  option_->check(number_check("> " + text_of(bound), [=](double x) { return x > bound; }));
  return *this;
}
Option& Option::between(double least, double most) {
  option_->check(number_check("in " + text_of(least) + " to " + text_of(most),
                              [=](double x) { return x >= least && x <= most; }));
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& names) {
  option_->check(CLI::IsMember(names));
  return *this;
}
Option& Option::existing_file() {
  option_->check(CLI::ExistingFile);
  return *this;
}
Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}
Option& Option::one_each_time() {
  option_->allow_extra_args(false);
  return *this;
}
Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

CommandLine::CommandLine(const std::string& about) : app_(std::make_unique<CLI::App>(about)) {}
CommandLine::~CommandLine() = default;

Option CommandLine::add(const std::string& name, Value value, const std::string& about) {
  const auto bind = [&]<class T>(T* target) {
    CLI::Option* option = app_->add_option(name, *target, about);
    if constexpr (!std::is_same_v<T, std::vector<std::string>>) option->capture_default_str();
    return Option(option);
  };
  return std::visit(bind, value);
}
Option CommandLine::add_setter(const std::string& name,
                               const std::function<void(const std::string&)>& set,
                               const std::string& about) {
  return Option(app_->add_option_function<std::string>(name, set, about));
}
Option CommandLine::add_flag(const std::string& name, bool& value, const std::string& about) {
  return Option(app_->add_flag(name, value, about));
}
Option CommandLine::add_flag(const std::string& name, const std::function<void()>& set,
                             const std::string& about) {
  return Option(app_->add_flag_callback(name, set, about));
}

int CommandLine::status_of(int count, char** arguments, const std::function<int()>& run) {
  try {
    app_->parse(count, arguments);
    const int status = run();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return refused(arguments[0], "standard output cannot be written");
    }
    return stop_asked() && status == 0 ? 128 + SIGINT : status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);
    return refused(arguments[0], error.what() + std::string("; see --help"));
  } catch (const std::exception& error) {
    return refused(arguments[0], error.what());
  }
}

void add_threads(CommandLine& line) {
  const auto set = [](const std::string& text) {
    heed::Index threads = 0;
    if (!CLI::detail::lexical_cast(text, threads)) throw CLI::ConversionError(text, "--threads");
    if (threads > 0) heed::set_thread_count(threads);
  };
  line.add_setter("--threads", set, "threads to compute with; 0: all").at_least(0);
}

void add_color(CommandLine& line, std::string& color) {
  line.add_option("--color", color, "of what is printed")
      .one_of({"auto", "always", "never", "256", "truecolor"});
}

Progress::Progress(std::string name, heed::Index steps)
    : name_(std::move(name)), steps_(steps), shown_(::isatty(STDERR_FILENO) != 0) {}

void Progress::step() {
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
void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void check_can_write(const std::string& path) {
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

void make_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": " + error.message());
  check_can_write(folder + "/picture.svg");
}

}  // namespace example
