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

#include <heed/core/detail/problem_list.hpp>
#include <heed/core/error.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/random.hpp>
#include <heed/io/file.hpp>
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
    throw_invalid_argument("load_weights: the table has no name for ", quote(ours));
  }

  /// A weight that is to be read as T.
  template <class T>
  void expect(std::string_view ours, std::vector<Index> shape) {
    const Found found = name_of(ours);
    if (!file_.contains(found.name)) return problems_.add("no ", quote(found.name));
    used_.insert(found.name);
    if (found.transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
    const auto is = file_.shape(found.name);
    if (!std::equal(is.begin(), is.end(), shape.begin(), shape.end())) {
      problems_.add(quote(found.name), " is ", is, ", expected ", std::span<const Index>(shape));
    } else if (!file_.is_readable<T>(found.name)) {
      problems_.add(quote(found.name), " is of type ", file_.type(found.name),
                    ", which is not read");
    }
  }
  /// Throws FileError with everything that did not fit, if anything; the first 50 by name.
  void finish() {
    for (const auto& name : file_.names()) {
      if (!used_.contains(name) && !left_out(name))
        problems_.add(quote(name), " is not the model's");
    }
    const Index count = problems_.count();
    if (count == 0) return;
    throw_file_error(file_.name(), ": ", count, count == 1 ? " weight" : " weights",
                     " of the model and the file differ: ", problems_.text());
  }

 private:
  bool left_out(std::string_view name) const {
    if (name.starts_with(prefix_)) name.remove_prefix(prefix_.size());
    const auto pattern = numbered(name).pattern;
    return std::find(names_.left_out.begin(), names_.left_out.end(), pattern) !=
           names_.left_out.end();
  }

  const WeightFile& file_;
  WeightNames names_;
  std::string prefix_;
  std::set<std::string, std::less<>> used_;
  ProblemList problems_{"; "};
};

/// Refuses sizes that a file merely claims: a block of more weights than the file's tensors have
/// together, so that what the shapes are taken from is never larger than they are.
template <class Options>
void check_block_size(const WeightFile& file, const Options& options) {
  if (options.model_dim < 1 || options.heads < 1) {
    throw_file_error(file.name(), ": a model of dimension ", options.model_dim, " with ",
                     options.heads, " heads");
  }
  const auto dim = static_cast<double>(options.model_dim);
  const auto heads = static_cast<double>(options.heads);
  double inner = dim, key_inner = dim, matrices = 2;
  if constexpr (requires { options.kv_heads; }) {
    const double head = options.head_dim > 0 ? static_cast<double>(options.head_dim) : dim / heads;
    inner = heads * head;
    key_inner = options.kv_heads > 0 ? static_cast<double>(options.kv_heads) * head : inner;
    matrices = options.gated ? 3 : 2;
  }
  const double hidden = options.hidden_dim > 0 ? static_cast<double>(options.hidden_dim) : 4 * dim;
  const double weights = dim * (2 * inner + 2 * key_inner + matrices * hidden);
  double most = 0;
  for (const auto& name : file.names()) {
    double size = 1;
    for (const Index extent : file.shape(name)) size *= static_cast<double>(extent);
    most += size;
  }
  most = std::min(most, 2 * static_cast<double>(file.bytes()));  // no type we read is denser
  if (weights <= most) return;
  throw_file_error(file.name(), ": a block of dimension ", options.model_dim, " cannot be in ",
                   file.bytes(), " bytes");
}

/// The rows that a table has in the model, where the prototype has one.
template <class Options>
Index rows_of(std::string_view name, const Options& options, Index rows) {
  if (name == "embedding.weight" || name == "head.weight") return options.vocab_size;
  if (name == "positions.weight") return options.max_length;
  if constexpr (requires { options.segments; }) {
    if (name == "segments.weight") return options.segments;
  }
  return rows;
}

/// A model with one block and tables of one row, for the shapes.
template <class Model, class Options>
Model prototype_of(const WeightFile& file, Options options) {
  if (options.layers < 1 || options.layers > static_cast<Index>(file.names().size())) {
    throw_file_error(file.name(), ": ", options.layers, " blocks, the file has ",
                     file.names().size(), " tensors");
  }
  check_block_size(file, options);
  options.vocab_size = options.max_length = options.layers = 1;
  if constexpr (requires { options.segments; }) {
    options.segments = std::min<Index>(options.segments, 1);
  }
  Random random(0);
  try {
    return Model(options, random);
  } catch (const InvalidArgument& error) {
    throw_file_error(file.name(), ": ", error.what());
  }
}

}  // namespace detail

/// A model with the weights of a file under their published names. Throws FileError, which lists
/// weights that are missing, have another shape, a type that heed does not read, or are not the
/// model's. Nothing larger than the file's own tensors as floats is allocated, whatever the options
/// say.
template <class Model, class Options>
Model load_weights(const WeightFile& file, const WeightNames& names, const Options& options) {
  auto model = detail::prototype_of<Model>(file, options);
  detail::WeightMatch match(file, names);
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        std::vector<Index> shape(parameter.extents().begin(), parameter.extents().end());
        shape[0] = detail::rows_of(name, options, shape[0]);
        constexpr std::string_view first = "blocks.0.";
        using Weight = typename std::remove_cvref_t<decltype(parameter)>::value_type;
        if (!name.starts_with(first)) return match.template expect<Weight>(name, shape);
        for (Index i = 0; i < options.layers; ++i) {
          match.template expect<Weight>(
              detail::message("blocks.", i, ".", name.substr(first.size())), shape);
        }
      },
      model);
  match.finish();
  const auto block = model.blocks.front();
  model.blocks.assign(static_cast<std::size_t>(options.layers), block);
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
