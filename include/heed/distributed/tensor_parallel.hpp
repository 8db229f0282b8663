// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/detail/layer_settings.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/models/language_model.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

namespace detail {

/// Gathers what ranks have of the columns of rows, before the product, after it, or both.
template <ModelScalar T>
class GatheredColumns : public LinearExchange<T> {
 public:
  /// The columns of each rank; no `inputs`: every rank has all of them.
  GatheredColumns(const Communicator& ranks, std::optional<TokenShards> inputs, TokenShards outputs)
      : ranks_(ranks), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  Tensor<T, 2> forward(const Linear<T>& own, const TensorView<const T, 2>& x) const override {
    if (!inputs_) return gathered(own.product(x), outputs_);
    return gathered(own.product(gathered(x, *inputs_)), outputs_);
  }

 private:
  /// (rows, columns of this rank) to (rows, all columns). Collective.
  template <Viewable X>
  Tensor<T, 2> gathered(const X& mine, const TokenShards& columns) const {
    const Index rows = mine.extent(0);
    std::vector<int> counts, places;
    for (Index rank = 0; rank < ranks_.size(); ++rank) {
      counts.push_back(mpi_int(rows * columns.count(rank), "the number of values of a rank"));
      places.push_back(mpi_int(rows * run_of(columns, rank).first, "the number of values"));
    }
    auto parts = Tensor<T, 1>::uninitialized({rows * columns.tokens()});
    const PackedView packed(view_of(mine));
    check_mpi(MPI_Allgatherv(packed.data(), counts[static_cast<std::size_t>(ranks_.rank())],
                             datatype_of<T>(), parts.data(), counts.data(), places.data(),
                             datatype_of<T>(), ranks_.inner_handle()),
              "MPI_Allgatherv of activations");
    ranks_.count_sent((ranks_.size() - 1) * mine.size() * static_cast<Index>(sizeof(T)));
    auto all = Tensor<T, 2>::uninitialized({rows, columns.tokens()});
    for (Index rank = 0; rank < ranks_.size(); ++rank) {
      const Index first = run_of(columns, rank).first, width = columns.count(rank);
      const TensorView<const T, 2> part(parts.data() + rows * first, {rows, width});
      copy(part, all.view().slice(1, first, first + width));
    }
    return all;
  }

  Communicator ranks_;
  std::optional<TokenShards> inputs_;
  TokenShards outputs_;
};

/// Cuts the matrices of a model by their outputs, and keeps the parts of one rank.
template <ModelScalar T>
class ModelPart {
 public:
  ModelPart(const Communicator& ranks, LanguageModel<T> model)
      : ranks_(ranks), model_(std::move(model)) {}

  /// What must be alike, and whether there are enough heads and outputs.
  void check(Agreement& agreement) const {
    add_library(agreement);
    agreement.add("scalar type of", sizeof(T), " bytes");
    agreement.add("layers", model_.blocks.size());
    agreement.add("(vocabulary, model_dim)", model_.input.embedding.weight.extents());
    const auto& table = model_.input.embedding.weight;
    const std::span some(table.data(), static_cast<std::size_t>(smaller(table.size(), 64)));
    agreement.add("embeddings with fingerprint", fingerprint_of(some));
    Fingerprint settings;
    for (const auto& block : model_.blocks) {
      add_block(agreement, block);
      add_settings(settings, block.attention);
      add_settings(settings, block.feed_forward);
      for (const auto* residual : {&block.attention_residual, &block.feed_forward_residual}) {
        add_settings(settings, *residual);
        add_settings(settings, residual->norm);
      }
      check_heads(block.attention);
    }
    add_settings(settings, model_.norm);
    add_settings(settings, model_);
    add(agreement, "a head", model_.head.own);
    agreement.add("products of the head", static_cast<int>(model_.head.products));
    agreement.add("layers whose settings (norms, activations, attention) have fingerprint",
                  settings.value());
  }

  LanguageModel<T> cut() {
    for (auto& block : model_.blocks) {
      const TokenShards context = cut_heads(block.attention);
      cut_gathered(block.attention.out, context);
      auto& forward = block.feed_forward;
      const TokenShards hidden = shares_of(forward.up);
      cut(forward.up, hidden);
      if (forward.gate) cut(*forward.gate, hidden);
      cut_gathered(forward.down, hidden);
    }
    auto& head = model_.head;
    if (!head.own) {
      head.own.emplace();
      head.own->products = head.products;
      auto& table = model_.input.embedding;
      if (head.reads_packed && table.packed.is_quantized()) {
        head.own->packed = std::move(table.packed);
      } else {
        head.own->weight = table.weight;
      }
      table.packed = {};
    }
    cut_gathered(*head.own, {});
    return std::move(model_);
  }

 private:
  static void add(Agreement& agreement, const char* name, const std::optional<Linear<T>>& layer) {
    if (!layer) return agreement.add(name, "none");
    agreement.add(name, layer->outputs(), layer->bias ? " outputs and biases" : " outputs",
                  layer->weight.empty() ? ", only packed" : "", ", products ",
                  static_cast<int>(layer->products));
  }
  static void add_block(Agreement& agreement, const SelfAttentionBlock<T>& block) {
    const auto& attention = block.attention;
    const auto& options = attention.options;
    const auto& parts = attention.projections;
    const auto& forward = block.feed_forward;
    agreement.add("heads", options.heads, ", kv_heads ", options.kv_heads, ", head_dim ",
                  options.head_dim);
    agreement.add("norms of (queries, keys)", attention.query_norm.has_value(), ' ',
                  attention.key_norm.has_value());
    add(agreement, "a projection to queries", parts.query);
    add(agreement, "a projection to keys", parts.key);
    add(agreement, "a projection to values", parts.value);
    add(agreement, "a fused projection", parts.query_key_value);
    add(agreement, "an output projection", attention.out);
    add(agreement, "an up projection", forward.up);
    add(agreement, "a gate", forward.gate);
    add(agreement, "a down projection", forward.down);
  }
  /// Throws where ranks cannot have whole heads of keys.
  void check_heads(const MultiHeadAttention<T>& layer) const {
    const auto& options = layer.options;
    if (options.kv_heads < ranks_.size()) {
      throw_invalid_argument(options.kv_heads, " key heads for ", ranks_.size(),
                             " ranks: each takes one or more");
    }
    if (layer.own_mask && layer.own_mask->depends_on_head()) {
      throw_invalid_argument("own_mask depends on the head, and each rank counts its heads anew");
    }
    const auto& query = layer.projections.query;
    if (!query || !query->weight.empty()) return;
    for (Index rank = 0; rank < ranks_.size(); ++rank) {
      const Index first = run_of(key_columns(options), rank).first;
      if (first % simd::panel_columns == 0) continue;
      throw_invalid_argument("weights that are only packed are cut in units of ",
                             simd::panel_columns, " outputs, and the keys of rank ", rank,
                             " begin with output ", first);
    }
  }
  /// Which outputs of the projection to keys each rank has: whole heads.
  TokenShards key_columns(const MultiHeadAttentionOptions& options) const {
    return TokenShards::even(options.kv_heads * options.head_dim, ranks_.size(), options.head_dim);
  }
  /// Which outputs each rank has: in whole panels, where the weights are only packed.
  TokenShards shares_of(const Linear<T>& layer) const {
    const Index outputs = layer.outputs(), unit = layer.weight.empty() ? simd::panel_columns : 1;
    if (parts_of(outputs, unit) < ranks_.size()) {
      throw_invalid_argument("tensor_parallel: a matrix of ", outputs, " outputs for ",
                             ranks_.size(), " ranks, in units of ", unit);
    }
    return TokenShards::even(outputs, ranks_.size(), unit);
  }
  void cut(Linear<T>& layer, const TokenShards& shares) const {
    const auto [first, end] = run_of(shares, ranks_.rank());
    layer.packed =
        layer.weight.empty()
            ? layer.packed.columns(first, end)
            : PackedMatrix<T>(layer.weight.view().slice(0, first, end).transpose(), layer.products);
    layer.weight = {};
    if (layer.bias) *layer.bias = Tensor<T, 1>::copy_of(layer.bias->view().slice(0, first, end));
  }
  void cut_gathered(Linear<T>& layer, std::optional<TokenShards> inputs) const {
    const TokenShards shares = shares_of(layer);
    cut(layer, shares);
    layer.exchange =
        Shared<LinearExchange<T>>(new GatheredColumns<T>(ranks_, std::move(inputs), shares));
  }
  /// Keeps a run of key heads with their query heads; returns who has which columns of the context.
  TokenShards cut_heads(MultiHeadAttention<T>& layer) const {
    auto& options = layer.options;
    const Index group = options.heads / options.kv_heads, dim = options.head_dim;
    const TokenShards columns = key_columns(options);
    TokenShards query_columns = TokenShards::even(options.heads * dim, ranks_.size(), group * dim);
    auto& parts = layer.projections;
    if (parts.query_key_value) split(parts);
    cut(*parts.query, query_columns);
    cut(*parts.key, columns);
    cut(*parts.value, columns);
    const auto [first, end] = run_of(query_columns, ranks_.rank());
    options.heads = (end - first) / dim;
    options.kv_heads = options.heads / group;
    auto& bias = layer.score_bias;
    const auto keep_heads = [&, from = first / dim, to = end / dim](auto& numbers) {
      using Numbers = std::remove_reference_t<decltype(numbers)>;
      numbers = Numbers::copy_of(std::as_const(numbers).view().slice(0, from, to));
    };
    if (bias.relative) keep_heads(*bias.relative);
    if (!bias.slopes.empty()) keep_heads(bias.slopes);
    if (bias.sinks) keep_heads(*bias.sinks);
    return query_columns;
  }
  /// Three layers in place of a fused one.
  static void split(Projections<T>& parts) {
    const auto& rows = parts.rows;
    const Linear<T>& whole = *parts.query_key_value;
    std::optional<Linear<T>>* const separate[] = {&parts.query, &parts.key, &parts.value};
    for (std::size_t i = 0; i < 3; ++i) {
      auto& layer = separate[i]->emplace();
      layer.products = whole.products;
      layer.weight = Tensor<T, 2>::copy_of(whole.weight.view().slice(0, rows[i], rows[i + 1]));
      if (!whole.bias) continue;
      layer.bias = Tensor<T, 1>::copy_of(whole.bias->view().slice(0, rows[i], rows[i + 1]));
    }
    parts.query_key_value.reset();
  }

  const Communicator& ranks_;
  LanguageModel<T> model_;
};

}  // namespace detail

/// A language model for inference whose matrices lie on several ranks: returns the part of this
/// rank, which computes the logits of the whole model, with their bits, in `forward` and in a
/// Session, as long as all ranks make the same calls. Collective; all ranks bring the same model.
///
/// Every matrix is cut by its outputs, attention by its key heads, and so are a session's caches.
/// Sums are never split: ranks gather what lies between products, four times in a block, and the
/// logits once. Embeddings and norms are whole on each rank. The weights are packed, as
/// load_packed_llama has them, and can be neither read nor changed; packed matrices are cut in
/// units of simd::panel_columns outputs. Throws InvalidArgument, on all ranks alike, where ranks
/// bring models that differ in shape, in the settings of layers or in the first 64 numbers of the
/// embeddings (no other weights are compared), for more ranks than key heads, for heads of packed
/// matrices that do not begin at such a unit, and for a matrix with too few outputs to divide.
template <ModelScalar T>
LanguageModel<T> tensor_parallel(const Communicator& ranks, LanguageModel<T> model) {
  detail::ModelPart<T> part(ranks, std::move(model));
  Agreement agreement = detail::agreement_of("tensor_parallel", ranks);
  agreement.check(ranks, [&] { part.check(agreement); });
  return part.cut();
}

}  // namespace heed
