// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include <heed/distributed/agreement.hpp>
#include <heed/layers/parameters.hpp>

namespace heed::detail {

/// Adds what decides the bits of a layer beside its parameters and its parts: how it multiplies,
/// drops, norms, activates and attends. Members of a user's layer that have these names count where
/// they are numbers or enums.
template <class Layer>
void add_settings(Fingerprint& print, const Layer& layer) {
  const auto add_one = [&]<class Setting>(const Setting& setting) {
    constexpr bool plain = std::is_arithmetic_v<Setting> || std::is_enum_v<Setting>;
    if constexpr (plain && sizeof(Setting) <= sizeof(std::uint64_t)) print.add_bits(setting);
  };
  const auto add = [&](const auto&... settings) { (add_one(settings), ...); };
  if constexpr (requires { layer.products; }) add(layer.products);
  if constexpr (requires { layer.probability == 0 ? 0 : layer.stream; }) {
    add(layer.probability, layer.probability == 0 ? 0 : layer.stream);
  }
  if constexpr (requires { layer.norm_before; }) add(layer.norm_before);
  if constexpr (requires { layer.kind; }) add(layer.kind);
  if constexpr (requires { layer.epsilon; }) add(layer.epsilon);
  if constexpr (requires { layer.activation.kind; }) add(layer.activation.kind);
  if constexpr (requires { layer.options.top_left, layer.options.rotary, layer.stream; }) {
    const auto& options = layer.options;
    add(options.heads, options.kv_heads, options.head_dim, options.scale.has_value(),
        options.scale.value_or(0), options.softcap, options.positions, options.top_left,
        options.dropout, options.dropout == 0 ? 0 : layer.stream, layer.own_mask.has_value(),
        options.window, options.sinks);
    const auto& rotary = options.rotary;
    const auto& low = rotary.low_frequencies;
    add(rotary.base, rotary.scaling, rotary.pairing, rotary.dims);
    add(low.factor, low.low_turns, low.high_turns, low.original_length);
    for (const double divisor : rotary.divisors) add(divisor);
  }
  if constexpr (requires { layer.options.block.positions; }) add(layer.options.block.positions);
}

/// The settings of a model and of all its layers in one number.
template <class Model>
std::uint64_t settings_fingerprint(const Model& model) {
  Fingerprint print;
  for_each_layer(model, [&](const auto& layer) { add_settings(print, layer); });
  return print.value();
}

}  // namespace heed::detail
