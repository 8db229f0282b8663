// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/layers/cached_attention.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/models/encoder_decoder.hpp>

namespace heed {

/// Capacity, masks and memory layout of a translation session.
struct TranslationSessionOptions {
  Index max_length = 0;  // tokens of each target; 0: the model's
  /// Tokens per page of the caches, as in CacheShape; 0: one contiguous page per sequence.
  Index page_size = 0;
  /// The target's mask is over positions within a sequence, the same for all sequences.
  EncoderDecoderMasks masks = {};
  /// Positions of the sources' tokens, and of the targets' up to max_length.
  EncoderDecoderPositions positions = {};
};

/// Generates with an encoder-decoder a few tokens at a time. The sources are read once; caches keep
/// the keys and values of the targets so far. Logits have the bits of the model's forward pass on
/// the whole targets, however these are cut into calls. Every call either succeeds or throws and
/// leaves the session as it was: ShapeError, InvalidArgument for a token outside the vocabulary,
/// OutOfMemory. The model is referenced, not copied.
template <ModelScalar T>
class TranslationSession {
 public:
  /// Reads the sources, (batch, length). Throws ShapeError for a max_length or a page_size below 0
  /// and for targets longer than the model's positions, and as EncoderDecoder::encode does.
  template <class Other>
  TranslationSession(const EncoderDecoder<Other>&&, const Tokens&,
                     const TranslationSessionOptions& = {}) {
    static_assert(detail::never<Other>,
                  "a session refers to its model: give the model a name first");
  }
  TranslationSession(const EncoderDecoder<T>& model, const Tokens& sources,
                     const TranslationSessionOptions& options = {});

  Index batch() const { return batch_; }
  /// The number of target tokens read so far, the same for every sequence.
  Index length() const { return length_; }

  /// Reads the next tokens of every target, (batch, tokens), and returns the logits after each of
  /// them: (batch, tokens, vocabulary).
  Tensor<T, 3> logits(const Tokens& tokens);
  /// The same with one token for every target, a list of any integers: the logits after it, (batch,
  /// vocabulary).
  Tensor<T, 2> step(const OwnedArray<Index>& tokens) {
    auto next = logits(Tokens({static_cast<Index>(tokens.size()), 1}, tokens));
    const Extents<2> rows = {next.extent(0), next.extent(2)};
    return std::move(next).reshaped(rows);
  }
  /// The number of tokens that the targets can still read.
  Index room() const { return options_.max_length - length_; }

  /// The interface of `generate`, for one target: the logits (vocabulary) after `tokens`.
  Tensor<T, 1> operator()(std::span<const Index> tokens);

  /// Shortens all targets to their first `length` tokens; 0 starts anew.
  void truncate(Index length) {
    if (length < 0 || length > length_) {
      throw_shape_error("TranslationSession: truncate to ", length, " tokens where there are ",
                        length_);
    }
    take_back(length);
    length_ = length;
  }

 private:
  static TranslationSessionOptions checked(const EncoderDecoder<T>& model,
                                           TranslationSessionOptions options) {
    if (options.max_length == 0) options.max_length = model.options.max_length;
    const bool table = model.options.block.positions == PositionKind::learned;
    if (options.max_length < 1 || options.page_size < 0 ||
        (table && options.max_length > model.options.max_length)) {
      throw_shape_error("TranslationSession: max_length ", options.max_length, " (of the model ",
                        model.options.max_length, "), pages of ", options.page_size);
    }
    return options;
  }

  /// Reads tokens and returns `finish(logits)` of the logits after all of them.
  template <class Finish>
  auto advance(const Tokens& tokens, const Finish& finish) {
    if (tokens.extent(0) != batch_ || tokens.extent(1) > options_.max_length - length_) {
      throw_shape_error("TranslationSession: tokens ", tokens.extents(), " for ", batch_,
                        " sequences with ", length_, " of ", options_.max_length, " tokens");
    }
    detail::OnFailure step_back([&] { take_back(length_); });
    auto x =
        model_->input.forward(tokens, options_.positions.target.columns(length_, tokens.extent(1)));
    for (std::size_t i = 0; i < caches_.size(); ++i) x = block(i, std::move(x));
    if (model_->norm) x = model_->norm->forward(x);
    auto result = finish(model_->head.forward(x, model_->input.embedding));
    length_ += tokens.extent(1);
    step_back.done();
    return result;
  }
  Tensor<T, 3> block(std::size_t i, Tensor<T, 3> x) {
    const auto& block = model_->blocks[i];
    const Extents<3> extents = x.extents();
    const std::vector<Index> counts(static_cast<std::size_t>(batch_), extents[1]);
    return block.forward_around(
        std::move(x),
        [&](const Tensor<T, 3>& in) {
          const Extents<3> all = {1, extents[0] * extents[1], extents[2]};
          const auto flat = Tensor<T, 3>(in).reshaped(all);
          return cached_attention(block.attention, flat, counts, caches_[i], options_.masks.target,
                                  options_.positions.target)
              .reshaped(extents);
        },
        [&](const Tensor<T, 3>& in) {
          return block.cross_attention.forward(in, memory_[i], options_.masks.memory, length_);
        });
  }
  void take_back(Index length) {
    for (auto& cache : caches_) {
      for (Index item = 0; item < batch_; ++item) {
        if (cache.length(item) > length) cache.truncate(item, length);
      }
    }
  }

  const EncoderDecoder<T>* model_;
  TranslationSessionOptions options_;
  Index batch_;
  Index length_ = 0;
  std::vector<AttentionInputs<T>> memory_;
  std::vector<KeyValueCache<T>> caches_;
};

template <ModelScalar T>
TranslationSession<T>::TranslationSession(const EncoderDecoder<T>& model, const Tokens& sources,
                                          const TranslationSessionOptions& options)
    : model_(&model), options_(checked(model, options)), batch_(sources.extent(0)) {
  memory_ = model.remember(model.encode(sources, options_.masks.source, options_.positions.source));
  for (const auto& block : model.blocks) {
    const auto& attention = block.attention.options;
    const Index heads = attention.kv_heads, dim = attention.head_dim;
    const Index length = options_.max_length, page = options_.page_size;
    caches_.emplace_back(page == 0 ? CacheShape::contiguous(batch_, heads, dim, dim, length)
                                   : CacheShape{batch_, heads, dim, dim, page}.for_tokens(length));
  }
}

template <ModelScalar T>
Tensor<T, 3> TranslationSession<T>::logits(const Tokens& tokens) {
  return advance(tokens, [](Tensor<T, 3>&& logits) { return std::move(logits); });
}

template <ModelScalar T>
Tensor<T, 1> TranslationSession<T>::operator()(std::span<const Index> tokens) {
  if (batch_ != 1 || tokens.empty()) {
    throw_shape_error("TranslationSession: ", tokens.size(), " tokens for one of ", batch_,
                      " sequences");
  }
  const Tokens row({1, static_cast<Index>(tokens.size())}, tokens);
  return advance(row, [&](const Tensor<T, 3>& all) {
    return Tensor<T, 1>::copy_of(all.view().select(0, 0).select(0, row.extent(1) - 1));
  });
}

HEED_LINKED_TEMPLATE(class, TranslationSession)

}  // namespace heed
