// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include <heed/core/printable.hpp>
#include <heed/core/problem_list.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/layers/parameters.hpp>

namespace heed::detail {

/// Compares what a model has with what a file has, names, types and shapes.
class ParameterMatch {
 public:
  explicit ParameterMatch(const Safetensors& file) : file_(file) {}

  template <class Model>
  void expect(const std::string& prefix, const Model& model) {
    for_each_parameter(
        [&](std::string_view name, const auto& parameter) {
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

 private:
  const Safetensors& file_;
  std::set<std::string> expected_;
  ProblemList problems_{"\n  "};
};

}  // namespace heed::detail
