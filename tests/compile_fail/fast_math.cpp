// SPDX-License-Identifier: MIT
#include <heed/core/config.hpp>
