// SPDX-License-Identifier: MIT
#pragma once

/// Published models: BERT, GPT-2 and Llama, with their tokenizers. Not part of <heed/heed.hpp>.
#include <heed/pretrained/load_model.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/pretrained/sentence_encoder.hpp>
