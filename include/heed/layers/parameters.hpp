// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// A named part of a layer: a Tensor (a parameter), another layer, or a std::vector or
/// std::optional of layers or Tensors. With an empty name, the part adds no level to the names of
/// its own parts.
template <class Part>
struct Member {
  std::string_view name;
  Part& part;
};

/// An entry of the list that `members` returns.
template <class Part>
Member<Part> member(std::string_view name, Part& part) {
  return {name, part};
}

/// A type that lists its parts, once for const and non-const layers:
///
///     static auto members(auto& layer) {
///       return std::tuple{member("weight", layer.weight), member("bias", layer.bias)};
///     }
///
/// Optimizers, gradients, clipping, checkpoints and counting all read that list. Configuration is
/// not listed.
template <class L>
concept HasMembers = requires(L& layer) {
  std::remove_const_t<L>::members(layer);
};

namespace detail {

template <class T>
struct IsTensor : std::false_type {};
template <class T, std::size_t Rank>
struct IsTensor<Tensor<T, Rank>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// Adds ".part" to a name during its own lifetime; a part without a name adds nothing.
class NamePart {
 public:
  NamePart(std::string& name, std::string_view part) : name_(name), length_(name.size()) {
    if (!name_.empty() && !part.empty()) name_ += '.';
    name_ += part;
  }
  NamePart(const NamePart&) = delete;
  NamePart& operator=(const NamePart&) = delete;
  ~NamePart() { name_.resize(length_); }

 private:
  std::string& name_;
  std::size_t length_;
};

template <class Visit, class Part, class... Others>
void visit_parameters(std::string& name, Visit& visit, Part& part, Others&... others);

/// Visits nothing.
struct NoVisit {
  template <class Part>
  void operator()(std::string_view, Part&) const {}
};

/// Visits the members of one list from number `at` on, each beside its counterparts in the others.
template <std::size_t at, class Visit, class List, class... Lists>
void visit_members(std::string& name, Visit& visit, const List& list, const Lists&... lists) {
  if constexpr (at < std::tuple_size_v<List>) {
    {
      const NamePart child(name, std::get<at>(list).name);
      visit_parameters(name, visit, std::get<at>(list).part, std::get<at>(lists).part...);
    }
    visit_members<at + 1>(name, visit, list, lists...);
  }
}

/// Calls visit(name, tensor, its counterparts in the others …) for every Tensor in a part.
template <class Visit, class Part, class... Others>
void visit_parameters(std::string& name, Visit& visit, Part& part, Others&... others) {
  using Plain = std::remove_const_t<Part>;
  if constexpr (IsTensor<Plain>::value) {
    visit(std::string_view(name), part, others...);
  } else if constexpr (IsVector<Plain>::value) {
    if (!((others.size() == part.size()) && ...)) {
      throw_shape_error("parameters: models differ in the number of ", name);
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      const NamePart index(name, std::to_string(i));
      visit_parameters(name, visit, part[i], others[i]...);
    }
  } else if constexpr (IsOptional<Plain>::value) {
    if (!((others.has_value() == part.has_value()) && ...)) {
      throw_shape_error("parameters: ", name, " is in one model and not in another");
    }
    if (part.has_value()) visit_parameters(name, visit, *part, *others...);
  } else {
    static_assert(HasMembers<Part>,
                  "a member is a Tensor, a layer with members(), or a "
                  "std::vector or std::optional of these");
    visit_members<0>(name, visit, Plain::members(part), Plain::members(others)...);
  }
}

}  // namespace detail

/// Calls visit(name, parameter, its counterparts in the other models …) for every parameter of a
/// model, in the order of `members`, with names like `blocks.3.attention.query.weight`. Parameters
/// are Tensors of any rank. The other models are of the same type, such as gradients and moments
/// beside weights. Throws ShapeError, before the first visit, where models differ in shape.
template <class Visit, HasMembers Model, class... Others>
requires(
    std::same_as<std::remove_const_t<Model>,
                 std::remove_const_t<Others>>&&...) void for_each_parameter(Visit&& visit,
                                                                            Model& model,
                                                                            Others&... others) {
  std::string name;
  if constexpr (sizeof...(Others) == 0) {
    const detail::NoVisit none;
    detail::visit_parameters(name, none, model);  // `members` may throw
  } else {
    const auto check = [](std::string_view of, const auto& first, const auto&... rest) {
      const auto one = [&](const auto& other) {
        if (other.extents() == first.extents()) return;
        throw_shape_error("parameters: ", of, " is ", first.extents(), " in one model and ",
                          other.extents(), " in another");
      };
      (one(rest), ...);
    };
    detail::visit_parameters(name, check, model, others...);
  }
  detail::visit_parameters(name, visit, model, others...);
}

/// The number of numbers in all parameters of a model.
template <HasMembers Model>
Index parameter_count(const Model& model) {
  Index count = 0;
  for_each_parameter([&](std::string_view, const auto& parameter) { count += parameter.size(); },
                     model);
  return count;
}

/// Sets every parameter to 0, as gradients are before a step.
template <HasMembers Model>
void set_zero(Model& model) {
  for_each_parameter(
      [](std::string_view, auto& parameter) {
        for (auto& value : parameter) value = 0;
      },
      model);
}

/// A model of the same shape and configuration whose parameters are 0, for gradients or moments.
template <HasMembers Model>
Model zeros_like(const Model& model) {
  Model zeros = model;
  set_zero(zeros);
  return zeros;
}

}  // namespace heed
