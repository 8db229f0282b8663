// SPDX-License-Identifier: MIT
#include <heed/masks/causal.hpp>

bool use() { return heed::allows(heed::masks::Causal{}, {}); }
