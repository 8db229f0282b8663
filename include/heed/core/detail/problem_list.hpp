// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/core/detail/message_part.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// What is wrong with something large, for one error message: the first 50 problems and how many
/// more there are.
class ProblemList {
 public:
  /// `separator` stands between two problems.
  explicit ProblemList(const char* separator) : separator_(separator) {}

  template <class... Parts>
  void add(const Parts&... parts) {
    if (++count_ > listed) return;
    if (count_ > 1) text_ += separator_;
    text_ += message(parts...);
  }

  Index count() const { return count_; }
  std::string text() const {
    if (count_ <= listed) return text_;
    return message(text_, separator_, "and ", count_ - listed, " more");
  }

 private:
  static constexpr Index listed = 50;

  const char* separator_;
  std::string text_;
  Index count_ = 0;
};

}  // namespace heed::detail
