// SPDX-License-Identifier: MIT
// The layers and models behind heed::compiled: every HEED_LINKED_TEMPLATE and HEED_LINKED_LAYER of
// a header.
#include <heed/generation/session.hpp>
#include <heed/generation/translation_session.hpp>
#include <heed/layers.hpp>
#include <heed/models.hpp>
#include <heed/pretrained/load_model.hpp>

namespace heed {

HEED_CODE_OF_TEMPLATE(, class, Session)
HEED_CODE_OF_TEMPLATE(, class, TranslationSession)
HEED_CODE_OF_LAYER(, Residual)
HEED_CODE_OF_LAYER(, SelfAttentionBlock)
HEED_CODE_OF_LAYER(, CrossAttentionBlock)
HEED_CODE_OF_LAYER(, Embedding)
HEED_CODE_OF_LAYER(, LearnedPositions)
HEED_CODE_OF_LAYER(, SinusoidalPositions)
HEED_CODE_OF_LAYER(, Norm)
HEED_CODE_OF_LAYER(, LayerNorm)
HEED_CODE_OF_LAYER(, RMSNorm)
HEED_CODE_OF_LAYER(, Linear)
HEED_CODE_OF_LAYER(, Projections)
HEED_CODE_OF_LAYER(, ScoreBias)
HEED_CODE_OF_LAYER(, MultiHeadAttention)
HEED_CODE_OF_LAYER(, Activation)
HEED_CODE_OF_LAYER(, FeedForward)
HEED_CODE_OF_LAYER(, EncoderDecoder)
HEED_CODE_OF_LAYER(, TokenInput)
HEED_CODE_OF_LAYER(, OutputHead)
HEED_CODE_OF_LAYER(, Encoder)
HEED_CODE_OF_LAYER(, LanguageModel)

template LoadedModel<float> load_model(const FilePath&);
template LanguageModel<float> load_llama(const FilePath&);
template LanguageModel<float> load_llama(const Gguf&);
template LanguageModel<float> load_gpt2(const FilePath&);
template Encoder<float> load_bert(const FilePath&);

}  // namespace heed
