// SPDX-License-Identifier: MIT
// An opt-in header without the library that it needs.
#if defined(DISTRIBUTED)
#include <heed/distributed.hpp>
#endif
