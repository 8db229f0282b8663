// SPDX-License-Identifier: MIT
#include <heed/layers.hpp>
#include <heed/training.hpp>

using namespace heed;

#ifdef PRODUCTS_OF_A_CONST_MODEL  // set_products changes the model, which is const here
void misuse(const Linear<float>& layer) { set_products(layer, Products::bfloat16); }
#endif

struct Scale {
  Tensor<float, 1> gain;
  auto members() { return Members{member("gain", gain)}; }
};
// With a second error, see CMakeLists.txt.
#if defined(MODEL_WITHOUT_STATIC_MEMBERS)
void misuse(const Scale& model) { Adam optimizer(model); }
#endif
#if defined(DECAYED_MODEL_WITHOUT_STATIC_MEMBERS)
void misuse(const Scale& model) { AdamW optimizer(model, {.weight_decay = 0.1}); }
#endif

void correct(Linear<float>& layer) { set_products(layer, Products::bfloat16); }
