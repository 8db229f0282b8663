// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include <heed/core/detail/shared.hpp>
#include <heed/masks/policy.hpp>

namespace heed {

/// Any mask as one type, for layers, containers and choices at run time. Erased per tile: kernels
/// pay one indirect call a tile, none a score. Copies share the mask, which nobody can change.
class Mask {
 public:
  template <class M>
  requires(!std::same_as<M, Mask> && detail::LikeMask<M>)
      Mask(M mask)  // NOLINT(google-explicit-constructor): every mask is a Mask
      : held_(held(std::move(mask))) {}

  bool allows(Position at) const { return held_->allows(at); }
  Coverage coverage(Tile tile) const { return held_->coverage(tile); }
  void lane_words(Tile tile, std::uint64_t* words) const { held_->lane_words(tile, words); }
  void check(MaskShape shape) const { held_->check(shape); }
  bool depends_on_head() const { return held_->depends_on_head(); }
  bool asks_every_score() const { return held_->asks_every_score(); }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual bool allows(const Position& at) const = 0;
    virtual Coverage coverage(const Tile& tile) const = 0;
    virtual void lane_words(const Tile& tile, std::uint64_t* words) const = 0;
    virtual void check(const MaskShape& shape) const = 0;
    virtual bool depends_on_head() const = 0;
    virtual bool asks_every_score() const = 0;
  };
  template <class M>
  struct HeldAs final : Held {
    explicit HeldAs(M given) : mask(std::move(given)) {}
    bool allows(const Position& at) const override { return heed::allows(mask, at); }
    Coverage coverage(const Tile& tile) const override { return coverage_of(mask, tile); }
    void lane_words(const Tile& tile, std::uint64_t* words) const override {
      fill_lane_words(mask, tile, words);
    }
    void check(const MaskShape& shape) const override { check_mask(mask, shape); }
    bool depends_on_head() const override { return heed::depends_on_head(mask); }
    bool asks_every_score() const override { return heed::asks_every_score(mask); }
    M mask;
  };

  template <class M>
  static const Held* held(M mask) {
    if constexpr (detail::expect_mask<M>()) {
      return new HeldAs<M>(std::move(mask));
    } else {
      return nullptr;
    }
  }

  detail::Shared<Held> held_;
};

namespace masks {
using heed::Mask;
}  // namespace masks

}  // namespace heed
