// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace heed {

/// Every extent, stride, offset and token position. Signed and 64 bits wide: differences of
/// positions are ordinary numbers and offsets past 2^31 elements are ordinary offsets.
using Index = std::ptrdiff_t;

}  // namespace heed
