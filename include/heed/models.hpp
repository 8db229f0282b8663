// SPDX-License-Identifier: MIT
#pragma once

/// Models made of layers, configured by plain structs.
#include <heed/models/attention_of.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/encoder_decoder.hpp>
#include <heed/models/language_model.hpp>
#include <heed/models/output_head.hpp>
#include <heed/models/pooling.hpp>
#include <heed/models/token_input.hpp>
