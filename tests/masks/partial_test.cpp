// SPDX-License-Identifier: MIT
#include <heed/masks/combine.hpp>

#include <gtest/gtest.h>

#include <heed/masks.hpp>

#include "laws/mask_laws.hpp"

namespace heed::masks {
namespace {

TEST(Partial, AnswersAsTheMaskItself) {
  const Segments documents({0, 4, 9});
  laws::check_mask_laws(partial(documents), "partial", {}, true);
  const laws::Plane plane;
  EXPECT_TRUE(laws::Answers(partial(documents), plane) == laws::Answers(documents, plane));
  EXPECT_TRUE(laws::Answers(~partial(documents), plane) == laws::Answers(~documents, plane));
  EXPECT_FALSE(heed::depends_on_head(partial(documents)));
  EXPECT_FALSE(heed::asks_every_score(partial(documents)));
  EXPECT_TRUE(heed::asks_every_score(partial(predicate([](Position) { return true; }))));
}

TEST(Partial, OfAUsersMaskThatKnowsNothingOfIt) {
  struct Fussy {
    bool allows(Position) const { return true; }
    void check(MaskShape shape) const {
      if (shape.keys != 3) throw_shape_error("Fussy");
    }
  };
  EXPECT_THROW(partial(Fussy{}).check({1, 1, 4, 4}), ShapeError);
  EXPECT_NO_THROW(partial(Fussy{}).check({1, 1, 3, 3}));
}

}  // namespace
}  // namespace heed::masks
