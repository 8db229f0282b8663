// SPDX-License-Identifier: MIT
#pragma once

/// Models made of layers, configured by plain structs.
#include <heed/models/encoder.hpp>
#include <heed/models/encoder_decoder.hpp>
#include <heed/models/language_model.hpp>
#include <heed/models/model_ends.hpp>
