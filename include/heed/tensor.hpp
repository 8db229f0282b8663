// SPDX-License-Identifier: MIT
#pragma once

/// Views, tensors, row functions, and the door to Eigen.
#include <heed/tensor/arithmetic.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/eigen_views.hpp>
#include <heed/tensor/extents.hpp>
#include <heed/tensor/layout.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/rows.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>
