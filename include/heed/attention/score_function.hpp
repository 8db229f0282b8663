// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/policy.hpp>

namespace heed {

/// The scores of one head on which a score function runs: `key_count` keys by `queries` consecutive
/// queries.
template <class T>
struct ScoreTile {
  T* scores = nullptr;   // of query q and key k: [q / lanes · strip_step + k · lanes + q % lanes]
  Index strip_step = 0;  // distance between groups of `lanes` queries
  Index lanes = 0;       // queries whose scores of one key are consecutive
  const Index* keys = nullptr;  // absolute positions
  Index key_count = 0;
  const std::uint64_t* words = nullptr;  // bit q of a key's word: query q sees it; null: all do
  Position first;                        // batch, head and the first query
  Index queries = 0;

  /// Calls visit(score, position) for every visible score.
  template <class Visit>
  void for_each(const Visit& visit) const {
    Position at = first;
    for (Index key = 0; key < key_count; ++key) {
      at.key = keys[key];
      for (Index query = 0; query < queries; ++query) {
        if (words != nullptr && (words[key] >> query & 1) == 0) continue;
        at.query = first.query + query;
        visit(scores[query / lanes * strip_step + key * lanes + query % lanes], at);
      }
    }
  }
};

/// A user-defined function of a score and its position: a callable `T(T, Position)`, or an object
/// with `T value(T, Position) const` and `T derivative(T, Position) const` (∂value/∂score), which
/// the backward pass needs. It is called for visible scores only, after scale, softcap and biases,
/// in no particular order and from several threads; it may call heed itself. A score that is
/// already −∞, from a bias for example, stays −∞ without a call: its key is hidden. The callable is
/// copied, and copies of the ScoreFunction share it; use std::ref for a callable that cannot be
/// copied. Trivially copyable captures of up to four pointers allocate no memory. Throws
/// InvalidArgument for a null pointer to a function and for an empty std::function.
template <class T>
class ScoreFunction {
  template <class F>
  static constexpr bool has_derivative = requires(const F& f, T score, Position at) {
    { f.value(score, at) } -> std::convertible_to<T>;
    { f.derivative(score, at) } -> std::convertible_to<T>;
  };
  static constexpr std::size_t room = 4 * sizeof(void*);
  template <class F>
  static constexpr bool is_small = sizeof(F) <= room &&
                                   alignof(F) <= alignof(void*) && std::is_trivially_copyable_v<F>;

 public:
  ScoreFunction() = default;
  template <class F>
  requires(!std::same_as<F, ScoreFunction> &&
           (has_derivative<F> || std::is_invocable_r_v<T, const F&, T, Position>))
      ScoreFunction(F f)  // NOLINT(google-explicit-constructor): a lambda converts silently
      : value_([](const void* self, const ScoreTile<T>& tile) {
          tile.for_each([&](T& score, const Position& at) {
            if (gone(score)) return;
            score = value_of(*static_cast<const F*>(self), score, at);
          });
        }) {
    if constexpr (detail::MaybeNoFunction<F>) {
      if (f == nullptr) throw_invalid_argument("a score function is empty; expected one to call");
    }
    if constexpr (is_small<F>) {
      ::new (static_cast<void*>(small_)) F(std::move(f));
    } else {
      shared_ = detail::Shared<Held>(new HeldAs<F>(std::move(f)));
    }
    if constexpr (has_derivative<F>) {
      derivative_ = [](const void* self, const ScoreTile<T>& tile) {
        tile.for_each([&](T& score, const Position& at) {
          score = gone(score) ? T{0} : T(static_cast<const F*>(self)->derivative(score, at));
        });
      };
    }
  }

  template <class F>
  requires(detail::HasCallOperator<F> && !has_derivative<F> &&
           !std::is_invocable_r_v<T, const F&, T, Position>)
      ScoreFunction(const F&) {  // NOLINT(google-explicit-constructor): as the lambda above
    static_assert(detail::never<F>,
                  "a score function takes (float score, heed::Position at), or a double score, "
                  "answers with the new score and is not mutable");
  }

  bool given() const { return value_ != nullptr; }
  bool differentiable() const { return derivative_ != nullptr; }
  /// Replaces every visible score of the tile by its value.
  void to_values(const ScoreTile<T>& tile) const { value_(object(), tile); }
  /// Replaces every visible score of the tile by the derivative at it.
  void to_derivatives(const ScoreTile<T>& tile) const { derivative_(object(), tile); }

  /// The value or derivative at one score; needs given() or differentiable().
  T value(T score, const Position& at) const {
    to_values(one_score(score, at));
    return score;
  }
  T derivative(T score, const Position& at) const {
    to_derivatives(one_score(score, at));
    return score;
  }

 private:
  static bool gone(T score) { return score == -std::numeric_limits<T>::infinity(); }
  template <class F>
  static T value_of(const F& f, T score, const Position& at) {
    if constexpr (has_derivative<F>) {
      return f.value(score, at);
    } else {
      using Answer = std::remove_cvref_t<decltype(f(score, at))>;
      static_assert(!std::is_same_v<Answer, bool>,
                    "a score function answers with the new score; what a query sees, by true and "
                    "false, is a mask");
      return f(score, at);
    }
  }
  static ScoreTile<T> one_score(T& score, const Position& at) {
    return {&score, 1, 1, &at.key, 1, nullptr, at, 1};
  }

  struct Held {
    const void* f;
  };
  template <class F>
  struct HeldAs : Held {
    explicit HeldAs(F given) : Held{__builtin_addressof(function)}, function(std::move(given)) {}
    HeldAs(const HeldAs&) = delete;
    HeldAs& operator=(const HeldAs&) = delete;
    F function;
  };
  const void* object() const { return shared_ ? shared_->f : small_; }

  alignas(void*) std::byte small_[room] = {};
  detail::Shared<Held> shared_;
  void (*value_)(const void*, const ScoreTile<T>&) = nullptr;
  void (*derivative_)(const void*, const ScoreTile<T>&) = nullptr;
};

}  // namespace heed
