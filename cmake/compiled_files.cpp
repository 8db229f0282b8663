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
#include <heed/pretrained/detail/sentence_encoder.inl>
#include <heed/text/detail/byte_pair_encoding.inl>
#include <heed/text/detail/load_tokenizer.inl>
#include <heed/text/detail/tokenizer.inl>
#include <heed/text/detail/unicode.inl>
#include <heed/text/detail/word_piece.inl>
#include <heed/training/detail/checkpoint.inl>
#include <heed/training/detail/gradient_check.inl>
#include <heed/training/detail/optimizers.inl>
#include <heed/training/detail/schedule.inl>
#include <heed/training/detail/train.inl>

namespace heed::detail {

// NOLINTBEGIN(bugprone-macro-parentheses)
#define HEED_CODE_OF_TRAINING(T)                                                                   \
  template double compute_cross_entropy(const TensorView<const T, 2>&,                             \
                                        const TensorView<const Index, 1>&,                         \
                                        const TensorView<T, 2>&, const CrossEntropyOptions&);      \
  template double compute_cross_entropy(const TensorView<const T, 3>&,                             \
                                        const TensorView<const Index, 2>&,                         \
                                        const TensorView<T, 3>&, const CrossEntropyOptions&);      \
  template std::vector<double> squares_of_stretches(const T*, Index);                              \
  template void adam_update(const AdamOptions&, bool, Index, const PlannedStep&, T*, const T*, T*, \
                            T*, Index);
// NOLINTEND(bugprone-macro-parentheses)
HEED_CODE_OF_TRAINING(float)
HEED_CODE_OF_TRAINING(double)
#undef HEED_CODE_OF_TRAINING

}  // namespace heed::detail
