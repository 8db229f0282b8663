// SPDX-License-Identifier: MIT
#pragma once

/// Models from published files: BERT, GPT-2, Llama. Not part of <heed/heed.hpp>.
#include <heed/pretrained/bert.hpp>
#include <heed/pretrained/gpt2.hpp>
#include <heed/pretrained/llama.hpp>
#include <heed/pretrained/load_model.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/pretrained/sentence_encoder.hpp>
#include <heed/pretrained/weight_file.hpp>
#include <heed/pretrained/weight_names.hpp>
