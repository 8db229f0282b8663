// SPDX-License-Identifier: MIT
// The layers and models behind heed::compiled: every HEED_LINKED_TEMPLATE of a header.
#include <heed/generation/session.hpp>
#include <heed/generation/translation_session.hpp>
#include <heed/layers.hpp>
#include <heed/models.hpp>
#include <heed/pretrained/load_model.hpp>

namespace heed {

template class Session<float>;
template class TranslationSession<float>;
template struct Residual<float>;
template struct SelfAttentionBlock<float>;
template struct CrossAttentionBlock<float>;
template struct Embedding<float>;
template struct LearnedPositions<float>;
template struct SinusoidalPositions<float>;
template struct Norm<float>;
template struct LayerNorm<float>;
template struct RMSNorm<float>;
template struct Linear<float>;
template struct Projections<float>;
template struct ScoreBias<float>;
template struct MultiHeadAttention<float>;
template struct Activation<float>;
template struct FeedForward<float>;
template struct EncoderDecoder<float>;
template struct TokenInput<float>;
template struct OutputHead<float>;
template struct Encoder<float>;
template struct LanguageModel<float>;
template class Session<double>;
template class TranslationSession<double>;
template struct Residual<double>;
template struct SelfAttentionBlock<double>;
template struct CrossAttentionBlock<double>;
template struct Embedding<double>;
template struct LearnedPositions<double>;
template struct SinusoidalPositions<double>;
template struct Norm<double>;
template struct LayerNorm<double>;
template struct RMSNorm<double>;
template struct Linear<double>;
template struct Projections<double>;
template struct ScoreBias<double>;
template struct MultiHeadAttention<double>;
template struct Activation<double>;
template struct FeedForward<double>;
template struct EncoderDecoder<double>;
template struct TokenInput<double>;
template struct OutputHead<double>;
template struct Encoder<double>;
template struct LanguageModel<double>;

template LoadedModel<float> load_model(const std::string&);
template LanguageModel<float> load_llama(const std::string&);
template LanguageModel<float> load_llama(const Gguf&);
template LanguageModel<float> load_gpt2(const std::string&);
template Encoder<float> load_bert(const std::string&);

}  // namespace heed
