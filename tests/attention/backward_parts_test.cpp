// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/tensor/copy.hpp>

#include "support/backward_cases.hpp"
#include "support/mask_catalogue.hpp"
#include "support/score_mods.hpp"

namespace heed::test {
namespace {

/// The gradients of a call, added up from runs of `rows` queries and two halves of the keys, each
/// with gradients of its own.
template <class M>
Gradients<float> in_parts(const Shape& shape, const Inputs<float>& in, const Loss<float>& loss,
                          const M& mask, AttentionOptions<float> options, Index rows) {
  auto forward = fused(shape, in, mask, options);
  if (!options.first_query) options.first_query = shape.keys - shape.queries;
  const auto bias = options.bias;
  const Index cut = shape.keys / 2 / detail::backward_chunk * detail::backward_chunk;
  Gradients<float> result(shape);
  result.queries.fill(0);
  const MaskRef ref(mask);
  const std::pair<Index, Index> halves[] = {{0, cut}, {cut, shape.keys}};
  for (const auto& half : halves) {
    const Index first = half.first, end = half.second;
    Tensor<float, 4> keys({shape.batch, shape.kv_heads, end - first, shape.head_dim});
    Tensor<float, 4> values({shape.batch, shape.kv_heads, end - first, shape.value_dim});
    // Only these keys can be read; the extents are those of all.
    const auto some_keys = Tensor<float, 4>::copy_of(in.keys.view().slice(2, first, end));
    const auto some_values = Tensor<float, 4>::copy_of(in.values.view().slice(2, first, end));
    const auto all_of = [&](const Tensor<float, 4>& some) {
      auto extents = some.extents();
      extents[2] = shape.keys;
      return TensorView<const float, 4>(some.data(), extents, some.view().strides());
    };
    const auto args_of = [&](Index row, Index last) {
      if (bias.given()) options.bias = bias.view().slice(2, row, last);
      const auto grad_lse = loss.grad_lse.view().slice(2, row, last);
      const auto some = [&](auto& tensor) { return tensor.view().slice(2, row, last); };
      detail::BackwardArgs<float> args{
          detail::differentiated_args<float>(some(in.queries), all_of(some_keys),
                                             all_of(some_values), options),
          some(forward.out),
          some(forward.lse),
          some(loss.grad_out),
          some(result.queries),
          keys.view(),
          values.view(),
          {}};
      args.more.grad_log_sum_exp = grad_lse;
      args.forward.query_offset = row;
      args.key_offset = first;
      return args;
    };
    for (Index member = 0; member < shape.heads / shape.kv_heads; ++member) {
      for (Index row = 0; row < shape.queries; row += rows) {
        detail::add_backward_part<float>(args_of(row, std::min(row + rows, shape.queries)), ref,
                                         {member, first, end}, [] {});
      }
    }
    detail::finish_key_gradients<float>(args_of(0, shape.queries), ref, {0, first, end});
    copy(keys, result.keys.view().slice(2, first, end));
    copy(values, result.values.view().slice(2, first, end));
  }
  return result;
}

TEST(BackwardParts, AddUpToTheBitsOfOneCall) {
  const RestoreSettings restore;
  const Shape shape{2, 2, 1, 700, 700, 6, 5};
  const Inputs<float> in(shape, 5);
  const Loss<float> loss(shape, 6);
  Index number = 0;
  for_each_mask(700, [&](const auto& named) {
    SCOPED_TRACE(named.name);
    set_thread_count(1 + number % 2);
    const auto whole = fused_gradients(shape, in, loss, named.mask);
    const auto parts = in_parts(shape, in, loss, named.mask, {}, 64 * (1 + number % 3));
    EXPECT_TRUE(same_bits(parts, whole));
    ++number;
  });
}

TEST(BackwardParts, ChangesOfScores) {
  const RestoreSettings restore;
  const Shape shape{1, 2, 1, 300, 500, 8, 8};
  const Inputs<float> in(shape, 7);
  const Loss<float> loss(shape, 8);
  const Changes<float> changes(shape, 3);
  for (unsigned which = 1; which <= Changes<float>::all; which = 2 * which + which / 64) {
    SCOPED_TRACE(which);
    set_thread_count(1 + which % 3);
    const auto options = changes.options(which);
    const auto whole = fused_gradients(shape, in, loss, masks::Causal{}, options);
    EXPECT_TRUE(same_bits(in_parts(shape, in, loss, masks::Causal{}, options, 128), whole));
  }
}

}  // namespace
}  // namespace heed::test
