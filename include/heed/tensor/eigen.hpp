// SPDX-License-Identifier: MIT
#pragma once

// Eigen itself, and its adapter. Debian and Ubuntu keep Eigen in /usr/include/eigen3, which
// compilers search only when told to; the second form finds it there without a flag.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#elif __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#else
#error "heed/tensor/eigen.hpp needs Eigen, not found: install libeigen3-dev (Debian, Ubuntu)"
#include <libeigen3-dev>  // stops the compiler here
#endif
#pragma GCC diagnostic pop

#include <heed/tensor/eigen_views.hpp>

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "heed needs Eigen 3.4 or newer"
#endif

namespace heed::detail {

static_assert(eigen_dynamic == Eigen::Dynamic && eigen_row_major == Eigen::RowMajor &&
              eigen_column_major == Eigen::ColMajor && eigen_unaligned == Eigen::Unaligned &&
              eigen_direct_access == int{Eigen::DirectAccessBit});
static_assert(std::is_same_v<VectorMap<float>,
                             Eigen::Map<Eigen::VectorXf, Eigen::Unaligned, Eigen::InnerStride<>>>);

}  // namespace heed::detail
