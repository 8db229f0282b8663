// SPDX-License-Identifier: MIT
// The definitions behind heed::compiled that call kernels, which have units of their own.
#define HEED_COMPILED_SOURCE
#include <heed/attention/backward.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/error.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/core/text.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

template AttentionArgs<float> checked_args<float>(const Operand<float>&, const Operand<float>&,
                                                  const Operand<float>&, const Result<float>&,
                                                  const AttentionOptions<float>&);
template AttentionArgs<double> checked_args<double>(const Operand<double>&, const Operand<double>&,
                                                    const Operand<double>&, const Result<double>&,
                                                    const AttentionOptions<double>&);

}  // namespace heed::detail
