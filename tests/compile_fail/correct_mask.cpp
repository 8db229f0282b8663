// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

bool use() { return heed::allows(heed::masks::Causal{}, {}); }
