// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/tensor/arithmetic.hpp>
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

namespace detail {

/// Where a layer or model is, its type forgotten; it may have an operator& of its own.
template <class Part>
void* address_of(Part& part) {
  return const_cast<void*>(static_cast<const void*>(__builtin_addressof(part)));
}

}  // namespace detail

/// The parts of a layer, as `members` lists them.
template <class... Parts>
class Members {
 public:
  explicit Members(Member<Parts>... each)
      : names_{each.name...}, parts_{detail::address_of(each.part)...} {}

  const std::array<std::string_view, sizeof...(Parts)>& names() const { return names_; }
  /// Where the parts are, their types forgotten.
  const std::array<void*, sizeof...(Parts)>& parts() const { return parts_; }

 private:
  std::array<std::string_view, sizeof...(Parts)> names_;
  std::array<void*, sizeof...(Parts)> parts_;
};

namespace detail {

/// Whether X is an instance of a class template.
template <class X, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Parts>
inline constexpr bool is_a<Template<Parts...>, Template> = true;

/// The list of the members of a layer.
template <class Layer>
using MembersOf = decltype(std::remove_const_t<Layer>::members(std::declval<Layer&>()));

}  // namespace detail

/// A type that lists its parts, once for const and non-const layers:
///
///     static auto members(auto& layer) {
///       return Members{member("weight", layer.weight), member("bias", layer.bias)};
///     }
///
/// Optimizers, gradients, clipping, checkpoints and counting all read that list. Configuration is
/// not listed.
template <class L>
concept HasMembers = detail::is_a<detail::MembersOf<L>, Members>;

namespace detail {

/// Calls visit(layer) for a model and every layer in it, from the outside in, in the order of
/// `members`.
template <class Part, class Visit>
void for_each_layer(Part& part, const Visit& visit) {
  using Plain = std::remove_const_t<Part>;
  if constexpr (is_a<Plain, std::vector>) {
    for (auto& each : part) for_each_layer(each, visit);
  } else if constexpr (is_a<Plain, std::optional>) {
    if (part) for_each_layer(*part, visit);
  } else if constexpr (HasMembers<Plain>) {
    visit(part);
    [&]<class... Parts>(const Members<Parts...>& list) {
      [[maybe_unused]] std::size_t at = 0;
      (for_each_layer(*static_cast<Parts*>(list.parts()[at++]), visit), ...);
    }(Plain::members(part));
  }
}

/// A layer with the stream of a dropout.
template <class Layer>
concept HasStream = requires(Layer& layer) {
  requires std::same_as<decltype(layer.stream), std::uint32_t>;
};

/// Calls visit(stream) for the stream of every dropout in a model. Streams are drawn when a model
/// is built, so another one of the same shape may have others.
template <class Model, class Visit>
void for_each_stream(Model& model, const Visit& visit) {
  for_each_layer(model, [&]<class Layer>(Layer& layer) {
    if constexpr (HasStream<Layer>) visit(layer.stream);
  });
}

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

/// The same part of several models, its type forgotten.
constexpr std::size_t most_models = 8;
using PartOfModels = std::array<void*, most_models>;

/// A walk through models side by side. The code of a walk depends on the models alone and not on
/// the visit, so that heed::compiled has it for its own layers and models.
struct ParameterWalk {
  std::size_t models;
  std::array<bool, most_models> writable;
  /// Called for every Tensor; null: shapes are compared.
  const FunctionRef<void(std::string_view name, const char* type, const PartOfModels&)>* visit;
  std::string name = {};
};

/// Stands for a type of Tensor by its address. Not const: a linker may join equal constants.
template <class Tensor>
inline char type_of_tensor = 0;

template <class Part>
void walk_parameters(ParameterWalk& walk, const PartOfModels& parts);

/// Compares the extents of a Tensor, or visits it.
template <class Part>
void walk_tensor(ParameterWalk& walk, const PartOfModels& parts) {
  if (walk.visit != nullptr) return (*walk.visit)(walk.name, &type_of_tensor<Part>, parts);
  const auto& extents = static_cast<const Part*>(parts[0])->extents();
  for (std::size_t model = 1; model < walk.models; ++model) {
    const auto& other = static_cast<const Part*>(parts[model])->extents();
    if (other == extents) continue;
    throw_shape_error("parameters: ", walk.name, " is ", extents, " in one model and ", other,
                      " in another");
  }
}

/// Walks through the elements of a std::vector.
template <class Part>
void walk_vector(ParameterWalk& walk, const PartOfModels& parts) {
  const std::size_t size = static_cast<const Part*>(parts[0])->size();
  for (std::size_t model = 1; model < walk.models; ++model) {
    if (static_cast<const Part*>(parts[model])->size() == size) continue;
    throw_shape_error("parameters: models differ in the number of ", walk.name);
  }
  for (std::size_t i = 0; i < size; ++i) {
    const NamePart index(walk.name, std::to_string(i));
    PartOfModels element{};
    for (std::size_t model = 0; model < walk.models; ++model) {
      element[model] = static_cast<Part*>(parts[model])->data() + i;
    }
    walk_parameters<typename Part::value_type>(walk, element);
  }
}

/// Walks through what a std::optional holds.
template <class Part>
void walk_optional(ParameterWalk& walk, const PartOfModels& parts) {
  PartOfModels held{};
  for (std::size_t model = 0; model < walk.models; ++model) {
    auto& part = *static_cast<Part*>(parts[model]);
    held[model] = part ? &*part : nullptr;
    if ((held[model] == nullptr) == (held[0] == nullptr)) continue;
    throw_shape_error("parameters: ", walk.name, " is in one model and not in another");
  }
  if (held[0] != nullptr) walk_parameters<typename Part::value_type>(walk, held);
}

/// Walks through the members of a layer.
template <class Part, class... Parts>
void walk_members(ParameterWalk& walk, const PartOfModels& parts, const Members<Parts...>*) {
  std::array<std::string_view, sizeof...(Parts)> names;
  std::array<PartOfModels, sizeof...(Parts)> members{};
  for (std::size_t model = 0; model < walk.models; ++model) {
    auto& part = *static_cast<Part*>(parts[model]);
    const auto take = [&](const auto& list) {
      names = list.names();
      for (std::size_t at = 0; at < names.size(); ++at) members[at][model] = list.parts()[at];
    };
    if (walk.writable[model]) take(Part::members(part));
    if (!walk.writable[model]) take(Part::members(std::as_const(part)));
  }
  std::size_t at = 0;
  [[maybe_unused]] const auto walk_member = [&]<class Inner>(const Inner*) {
    const NamePart child(walk.name, names[at]);
    walk_parameters<Inner>(walk, members[at++]);
  };
  (walk_member(static_cast<const Parts*>(nullptr)), ...);
}

/// Walks through a part of the models.
template <class Part>
void walk_parameters(ParameterWalk& walk, const PartOfModels& parts) {
  if constexpr (is_tensor<Part>) {
    walk_tensor<Part>(walk, parts);
  } else if constexpr (is_a<Part, std::vector>) {
    walk_vector<Part>(walk, parts);
  } else if constexpr (is_a<Part, std::optional>) {
    walk_optional<Part>(walk, parts);
  } else {
    static_assert(HasMembers<Part>,
                  "a member is a Tensor, a layer whose members(auto&) returns Members{...}, or a "
                  "std::vector or std::optional of these");
    walk_members<Part>(walk, parts, static_cast<const MembersOf<Part>*>(nullptr));
  }
}

/// True; a Model that is none does not compile.
template <class Model>
consteval bool expect_members() {
  if constexpr (std::is_arithmetic_v<Model>) {
    static_assert(!std::is_arithmetic_v<Model>,
                  "an optimizer's type is that of its model: AdamW(model, options) finds it");
  } else {
    static_assert(HasMembers<Model>,
                  "a model has a `static auto members(auto& model)` that returns "
                  "Members{member(\"weight\", model.weight), ...}");
  }
  return true;
}

/// Throws InvalidArgument where gradients are the layer or model itself.
template <class Layer>
void expect_apart(const Layer& layer, const Layer& gradients) {
  if (address_of(layer) != address_of(gradients)) return;
  throw_invalid_argument(
      "the gradients are the weights themselves; zeros_like(model) makes gradients");
}
/// The same, and ShapeError where `gradients`, to which a backward pass adds, has another shape
/// than its layer.
template <HasMembers Layer>
void check_gradients(const Layer& layer, const Layer& gradients) {
  expect_apart(layer, gradients);
  ParameterWalk walk{2, {false, false}, nullptr};
  walk_parameters<Layer>(walk, {address_of(layer), address_of(gradients)});
}
/// Throws ShapeError unless a gradient has the extents of what it is of.
template <std::size_t Rank>
void check_gradient(const char* layer, const Extents<Rank>& grad, const Extents<Rank>& given) {
  if (grad == given) return;
  throw_shape_error(layer, ": a gradient of ", grad, " for ", given);
}
/// Throws ShapeError unless `saved` can be from a forward pass of the layer.
inline void check_saved(const char* layer, bool fits) {
  if (!fits) throw_shape_error(layer, ": `saved` is not from a forward pass of this layer");
}

template <class... Types>
struct TypeList {};
template <class Part>
struct With {};

/// Adds to a list the type of a part and the types of all that is in it. Not operator|, which every
/// use would look up among those of masks.
template <class... Types, class Part>
constexpr auto operator+(TypeList<Types...> list, With<Part>) {
  if constexpr ((std::is_same_v<Part, Types> || ...)) {
    return list;
  } else if constexpr (is_tensor<Part>) {
    return TypeList<Types..., Part>{};
  } else if constexpr (is_a<Part, std::vector> || is_a<Part, std::optional>) {
    return list + With<typename Part::value_type>{};
  } else {
    return []<class... Inner>(const Members<Inner...>*) {
      return (TypeList<Types..., Part>{} + ... + With<Inner>{});
    }(static_cast<const MembersOf<Part>*>(nullptr));
  }
}

template <class Model, class Type>
using SameConst = std::conditional_t<std::is_const_v<Model>, const Type, Type>;

/// Calls visit(name, tensors …), the tensors with their type, one of a list, and const where their
/// models are.
template <class... Models, class Visit, class... Types>
void visit_tensors(Visit& visit, std::string_view name, const char* type,
                   const PartOfModels& tensors, TypeList<Types...>) {
  const auto visit_as = [&]<class Type, std::size_t... at>(With<Type>, std::index_sequence<at...>) {
    if constexpr (is_tensor<Type>) {
      if (type != &type_of_tensor<Type>) return;
      visit(name, *static_cast<SameConst<Models, Type>*>(tensors[at])...);
    }
  };
  (visit_as(With<Types>{}, std::index_sequence_for<Models...>{}), ...);
}

}  // namespace detail

/// Calls visit(name, parameter, its counterparts in the other models …) for every parameter of a
/// model, in the order of `members`, with names like `blocks.3.attention.query.weight`. Parameters
/// are Tensors of any rank. The other models, up to seven, are of the same type, such as gradients
/// and moments beside weights. Throws ShapeError, before the first visit, where models differ in
/// shape.
template <class Visit, HasMembers Model, class... Others>
requires(
    std::same_as<std::remove_const_t<Model>,
                 std::remove_const_t<Others>>&&...) void for_each_parameter(Visit&& visit,
                                                                            Model& model,
                                                                            Others&... others) {
  using Plain = std::remove_const_t<Model>;
  static_assert(sizeof...(Others) < detail::most_models, "for_each_parameter: up to eight models");
  const detail::PartOfModels models{detail::address_of(model), detail::address_of(others)...};
  detail::ParameterWalk walk{
      1 + sizeof...(Others), {!std::is_const_v<Model>, !std::is_const_v<Others>...}, nullptr};
  detail::walk_parameters<Plain>(walk, models);  // `members` may throw
  const auto visit_each = [&](std::string_view name, const char* type,
                              const detail::PartOfModels& tensors) {
    detail::visit_tensors<Model, Others...>(visit, name, type, tensors,
                                            detail::TypeList<>{} + detail::With<Plain>{});
  };
  const FunctionRef<void(std::string_view, const char*, const detail::PartOfModels&)> each =
      visit_each;
  walk.visit = &each;
  detail::walk_parameters<Plain>(walk, models);
}

template <HasMembers Model, class Visit>
requires(!HasMembers<std::remove_cvref_t<Visit>>) void for_each_parameter(Model&, Visit&&) {
  static_assert(detail::never<Visit>,
                "the function comes first: for_each_parameter([](std::string_view name, auto& "
                "parameter) { … }, model)");
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
        detail::clear_numbers(parameter.data(), parameter.size());
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
template <class T, std::size_t Rank>
Tensor<T, Rank> zeros_like(const Tensor<T, Rank>& tensor) {
  return Tensor<T, Rank>(tensor.extents());
}

}  // namespace heed
