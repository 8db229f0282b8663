// SPDX-License-Identifier: MIT
#pragma once

/// Views, tensors, row functions, and the door to Eigen.
#include <heed/tensor/arithmetic.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/definitions.hpp>
#include <heed/tensor/eigen_views.hpp>
#include <heed/tensor/extents.hpp>
#include <heed/tensor/for_each_row.hpp>
#include <heed/tensor/layout.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/memory.hpp>
#include <heed/tensor/nested_list.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/product_cut.hpp>
#include <heed/tensor/product_group.hpp>
#include <heed/tensor/product_problem.hpp>
#include <heed/tensor/product_work.hpp>
#include <heed/tensor/row_mask.hpp>
#include <heed/tensor/rows.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>
