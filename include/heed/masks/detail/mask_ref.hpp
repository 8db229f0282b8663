// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/masks/detail/spaced.hpp>
#include <heed/masks/policy.hpp>

namespace heed {

/// Any mask as kernels see it: a pointer and its functions, called once per tile and never per
/// score. Does not own the mask, which must outlive the call.
class MaskRef {
 public:
  template <MaskPolicy M>
  explicit MaskRef(const M& mask)
      : mask_(&mask),
        coverage_([](const void* self, const Tile& tile) {
          return coverage_of(*static_cast<const M*>(self), tile);
        }),
        lane_words_([](const void* self, const Tile& tile, std::uint64_t* words) {
          fill_lane_words(*static_cast<const M*>(self), tile, words);
        }),
        check_([](const void* self, const MaskShape& shape) {
          check_mask(*static_cast<const M*>(self), shape);
        }),
        depends_on_head_(heed::depends_on_head(mask)),
        asks_every_score_(heed::asks_every_score(mask)),
        query_step_(heed::query_step(mask)) {
    if constexpr (detail::TellsQueryStep<M>) {
      spaced_coverage_ = [](const void* self, const Tile& tile, Index step) {
        return detail::spaced_coverage(*static_cast<const M*>(self), tile, step);
      };
      spaced_lane_words_ = [](const void* self, const Tile& tile, Index step,
                              std::uint64_t* words) {
        detail::spaced_lane_words(*static_cast<const M*>(self), tile, step, words);
      };
    }
  }

  /// Throws if the mask does not fit the tensors.
  void check(const MaskShape& shape) const { check_(mask_, shape); }
  Coverage coverage(const Tile& tile) const { return coverage_(mask_, tile); }
  void lane_words(const Tile& tile, std::uint64_t* words) const { lane_words_(mask_, tile, words); }
  /// Whether to cache lane words from one head to the next: they are costly, and the same for all
  /// heads.
  bool shares_lane_words() const { return asks_every_score_ && !depends_on_head_; }
  /// Whether heads may see different keys.
  bool depends_on_head() const { return depends_on_head_; }
  /// See heed::query_step; queries may be asked about at steps above 1 if this may be above 1.
  Index query_step() const { return query_step_; }
  bool knows_steps() const { return spaced_coverage_ != nullptr; }

  /// The same for the queries first_query, first_query + step, …, as many as the tile has.
  Coverage coverage(const Tile& tile, Index step) const {
    return step == 1 ? coverage(tile) : spaced_coverage_(mask_, tile, step);
  }
  void lane_words(const Tile& tile, Index step, std::uint64_t* words) const {
    step == 1 ? lane_words(tile, words) : spaced_lane_words_(mask_, tile, step, words);
  }

 private:
  const void* mask_;
  Coverage (*coverage_)(const void*, const Tile&);
  void (*lane_words_)(const void*, const Tile&, std::uint64_t*);
  void (*check_)(const void*, const MaskShape&);
  bool depends_on_head_;
  bool asks_every_score_;
  Index query_step_;
  Coverage (*spaced_coverage_)(const void*, const Tile&, Index) = nullptr;
  void (*spaced_lane_words_)(const void*, const Tile&, Index, std::uint64_t*) = nullptr;
};

}  // namespace heed
