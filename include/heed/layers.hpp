// SPDX-License-Identifier: MIT
#pragma once

#include <heed/layers/activation.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/feed_forward.hpp>
#include <heed/layers/layer_norm.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/norm_rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/rms_norm.hpp>
#include <heed/layers/row_work.hpp>
