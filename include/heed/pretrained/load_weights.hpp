// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/random.hpp>
#include <heed/io/error.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/pretrained/weight_file.hpp>
#include <heed/pretrained/weight_names.hpp>

namespace heed {

namespace detail {

/// Finds the weights of a model in a file, and writes down what does not fit.
class WeightMatch {
 public:
  WeightMatch(const WeightFile& file, const WeightNames& names) : file_(file), names_(names) {
    for (const auto& name : file.names()) {
      if (!names.prefix.empty() && name.starts_with(names.prefix)) prefix_ = names.prefix;
    }
  }

  struct Found {
    std::string name;
    bool transposed = false;
  };
  /// What the file calls a parameter of ours.
  Found name_of(std::string_view ours) const {
    const auto [pattern, number] = numbered(ours);
    const std::size_t dot = pattern.rfind('.');
    for (const WeightName& layer : names_.layers) {
      if (dot == pattern.npos || layer.ours != std::string_view(pattern).substr(0, dot)) continue;
      std::string theirs(layer.theirs);
      if (const auto star = theirs.find('*'); star != theirs.npos) theirs.replace(star, 1, number);
      return {prefix_ + theirs + pattern.substr(dot), layer.transposed};
    }
    throw_shape_error("load_weights: the table has no name for ", quote(ours));
  }

  void expect(std::string_view ours, std::vector<Index> shape) {
    const Found found = name_of(ours);
    used_.insert(found.name);
    if (!file_.contains(found.name)) return add("no " + quote(found.name));
    if (found.transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
    const auto is = file_.shape(found.name);
    if (std::equal(is.begin(), is.end(), shape.begin(), shape.end())) return;
    add(quote(found.name) + " is " + text_of(is) + ", expected " + text_of(shape));
  }
  /// Throws FileError with everything that did not fit, if anything.
  void finish() {
    for (const auto& name : file_.names()) {
      if (used_.count(name) == 0 && !left_out(name)) add(quote(name) + " is not the model's");
    }
    if (problems_ == 0) return;
    throw_file_error(file_.name(), ": ", problems_, problems_ == 1 ? " weight" : " weights",
                     " of the model and the file differ: ", text_);
  }

 private:
  void add(const std::string& problem) { text_ += (problems_++ == 0 ? "" : "; ") + problem; }
  bool left_out(std::string_view name) const {
    if (name.starts_with(prefix_)) name.remove_prefix(prefix_.size());
    const auto pattern = numbered(name).pattern;
    return std::find(names_.left_out.begin(), names_.left_out.end(), pattern) !=
           names_.left_out.end();
  }
  static std::string text_of(std::span<const Index> shape) { return message(shape); }

  const WeightFile& file_;
  WeightNames names_;
  std::string prefix_, text_;
  std::set<std::string> used_;
  Index problems_ = 0;
};

/// Refuses sizes that a file merely claims: a matrix of a block that the file's weights, at half a
/// byte each or more, cannot hold. `inner`: what heads have together.
inline void check_block_size(const WeightFile& file, double model_dim, double inner,
                             double hidden_dim) {
  const double weights = model_dim * std::max({model_dim, inner, hidden_dim});
  const double most = 2 * static_cast<double>(file.bytes());
  if (weights <= most) return;
  throw_file_error(file.name(), ": a matrix of ", weights, " weights cannot be in ", file.bytes(),
                   " bytes");
}

/// The rows that a table has in the model, where the prototype has one.
template <class Options>
Index rows_of(std::string_view name, const Options& options, Index rows) {
  if (name == "embedding.weight" || name == "head.weight") return options.vocabulary;
  if (name == "positions.weight") return options.max_length;
  if constexpr (requires { options.segments; }) {
    if (name == "segments.weight") return options.segments;
  }
  return rows;
}

/// A model with one block and tables of one row, for the shapes.
template <class Model, class Options>
Model prototype_of(const WeightFile& file, Options options) {
  if (options.blocks < 1 || options.blocks > static_cast<Index>(file.names().size())) {
    throw_file_error(file.name(), ": ", options.blocks, " blocks, the file has ",
                     file.names().size(), " tensors");
  }
  options.vocabulary = options.max_length = options.blocks = 1;
  if constexpr (requires { options.segments; }) {
    options.segments = std::min<Index>(options.segments, 1);
  }
  Random random(0);
  try {
    return Model(options, random);
  } catch (const ShapeError& error) {
    throw_file_error(file.name(), ": ", error.what());
  }
}

}  // namespace detail

/// A model with the weights of a file under their published names. Throws FileError, which lists
/// every weight that is missing, has another shape, or is not the model's. Nothing larger than the
/// file's own tensors is allocated, whatever the options say.
template <class Model, class Options>
Model load_weights(const WeightFile& file, const WeightNames& names, const Options& options) {
  auto model = detail::prototype_of<Model>(file, options);
  detail::WeightMatch match(file, names);
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        std::vector<Index> shape(parameter.extents().begin(), parameter.extents().end());
        shape[0] = detail::rows_of(name, options, shape[0]);
        constexpr std::string_view first = "blocks.0.";
        if (!name.starts_with(first)) return match.expect(name, shape);
        for (Index i = 0; i < options.blocks; ++i) {
          match.expect(detail::message("blocks.", i, ".", name.substr(first.size())), shape);
        }
      },
      model);
  match.finish();
  const auto block = model.blocks.front();
  model.blocks.assign(static_cast<std::size_t>(options.blocks), block);
  model.options = options;
  for_each_parameter(
      [&](std::string_view name, auto& parameter) {
        using Parameter = std::remove_reference_t<decltype(parameter)>;
        const auto found = match.name_of(name);
        auto weights = file.tensor<typename Parameter::value_type, Parameter::rank()>(found.name);
        if constexpr (Parameter::rank() == 2) {
          if (found.transposed) {
            weights = Parameter::copy_of(std::as_const(weights).view().permute({1, 0}));
          }
        }
        parameter = std::move(weights);
      },
      model);
  return model;
}

}  // namespace heed
