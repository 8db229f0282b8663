// SPDX-License-Identifier: MIT
#pragma once

/// Every mask: policies, their combinations, and what can be asked of them.
#include <heed/masks/block_sparse.hpp>
#include <heed/masks/causal.hpp>
#include <heed/masks/chunked.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/create_masks.hpp>
#include <heed/masks/dense.hpp>
#include <heed/masks/describe.hpp>
#include <heed/masks/every_nth_key.hpp>
#include <heed/masks/full.hpp>
#include <heed/masks/global_tokens.hpp>
#include <heed/masks/grid_neighborhood.hpp>
#include <heed/masks/groups.hpp>
#include <heed/masks/mask.hpp>
#include <heed/masks/masked_token.hpp>
#include <heed/masks/padding.hpp>
#include <heed/masks/partial.hpp>
#include <heed/masks/per_head.hpp>
#include <heed/masks/policy.hpp>
#include <heed/masks/predicate.hpp>
#include <heed/masks/prefix.hpp>
#include <heed/masks/segments.hpp>
#include <heed/masks/sliding_window.hpp>
#include <heed/masks/strided.hpp>
#include <heed/masks/tree.hpp>
#include <heed/masks/valid_keys.hpp>
