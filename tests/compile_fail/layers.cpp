// SPDX-License-Identifier: MIT
#include <heed/layers.hpp>

using namespace heed;

#ifdef PRODUCTS_OF_A_CONST_MODEL  // set_products changes the model, which is const here
void misuse(const Linear<float>& layer) { set_products(layer, Products::bfloat16); }
#endif

void correct(Linear<float>& layer) { set_products(layer, Products::bfloat16); }
