// SPDX-License-Identifier: MIT
#pragma once

#include <heed/layers/parameters.hpp>
