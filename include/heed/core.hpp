// SPDX-License-Identifier: MIT
#pragma once

/// The basis of all folders: indices, errors, number formats, random numbers, threads, text, lists.
#include <heed/core/bfloat16.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/philox.hpp>
#include <heed/core/quantized.hpp>
#include <heed/core/random.hpp>
#include <heed/core/text.hpp>
