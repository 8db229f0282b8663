// SPDX-License-Identifier: MIT
// Readers, writers, tokenizers and training behind heed::compiled. Included by name, since
// HEED_COMPILED_SOURCE would define the drivers, which are in compiled.cpp, a second time.
#include <heed/generation.hpp>
#include <heed/io.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/gguf.hpp>
#include <heed/layers/positions.hpp>
#include <heed/pretrained.hpp>
#include <heed/text.hpp>
#include <heed/training.hpp>

#include <heed/generation/detail/generate.inl>
#include <heed/generation/detail/sampler.inl>
#include <heed/io/detail/file.inl>
#include <heed/io/detail/gguf.inl>
#include <heed/io/detail/json_reader.inl>
#include <heed/io/detail/npy.inl>
#include <heed/io/detail/safetensors.inl>
#include <heed/io/detail/tensor_file.inl>
#include <heed/layers/detail/positions.inl>
#include <heed/pretrained/detail/load_model.inl>
#include <heed/pretrained/detail/model_config.inl>
#include <heed/text/detail/byte_pair_encoding.inl>
#include <heed/text/detail/load_tokenizer.inl>
#include <heed/text/detail/tokenizer.inl>
#include <heed/text/detail/unicode.inl>
#include <heed/text/detail/word_piece.inl>
#include <heed/training/detail/checkpoint.inl>
#include <heed/training/detail/gradient_check.inl>
#include <heed/training/detail/schedule.inl>
#include <heed/training/detail/train.inl>
