// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/detail/problem_list.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/layers/parameters.hpp>

namespace heed::detail {

/// Compares what a model has with what a file has, names, types and shapes.
class ParameterMatch {
 public:
  explicit ParameterMatch(const Safetensors& file) : file_(file) {}

  /// The parameters stay where they are until they have been read.
  template <class Model>
  void expect(const std::string& prefix, Model& model) {
    for_each_parameter(
        [&](std::string_view name, auto& parameter) {
          using T = typename std::remove_cvref_t<decltype(parameter)>::value_type;
          const std::string full = prefix + std::string(name);
          expected_.insert(full);
          if (!file_.contains(full)) {
            return problems_.add("missing: ", full, " ", parameter.extents());
          }
          const SafetensorsEntry& entry = file_.entry(full);
          const auto& extents = parameter.extents();
          const auto shape = entry.shape();
          if (!std::equal(extents.begin(), extents.end(), shape.begin(), shape.end()) ||
              entry.type != element_type_of<T>()) {
            problems_.add("other shape or type: ", full, " is ", name_of(entry.type), " ", shape,
                          ", expected ", name_of(element_type_of<T>()), " ", extents);
          }
          found_.push_back({parameter.data(), file_.bytes(full)});
        },
        model);
  }

  /// Throws FileError with what does not match, if anything; the first 50 by name.
  void finish(const std::string& path) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (!expected_.contains(entry.name)) {
        problems_.add("not in the model: ", printable(entry.name), " ", entry.shape());
      }
    }
    if (problems_.count() == 0) return;
    throw_file_error(path, ": does not match the model:\n  ", problems_.text());
  }
  /// Reads all that was expected, and found to match: nothing can fail any more.
  void read() const noexcept {
    for (const Found& found : found_) {
      if (!found.from.empty()) std::memcpy(found.to, found.from.data(), found.from.size());
    }
  }

 private:
  struct Found {
    void* to;
    std::span<const std::byte> from;
  };

  const Safetensors& file_;
  std::set<std::string> expected_;
  std::vector<Found> found_;
  ProblemList problems_{"\n  "};
};

}  // namespace heed::detail
