// SPDX-License-Identifier: MIT
#pragma once

/// Every mask: policies, their combinations, and what can be asked of them.
#include <heed/masks/combine.hpp>
#include <heed/masks/dense.hpp>
#include <heed/masks/describe.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/masks/policy.hpp>
#include <heed/masks/sparse.hpp>
#include <heed/masks/tokens.hpp>
