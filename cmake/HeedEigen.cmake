# SPDX-License-Identifier: MIT
# Finds Eigen 3.4 or 5; sets heed_eigen_problem to a sentence where there is none, else to nothing.
# Asked for without a version and checked by hand: Eigen 5 refuses a request for 3.4, and Debian's
# 3.4 refuses a version range.
set(heed_eigen_problem)
if(NOT TARGET Eigen3::Eigen)
  find_package(Eigen3 CONFIG QUIET)
  set(heed_eigen_version ${Eigen3_VERSION})
  if(NOT heed_eigen_version)
    set(heed_eigen_version ${EIGEN3_VERSION_STRING})
  endif()
  if(NOT Eigen3_FOUND)
    set(heed_eigen_problem
        "heed needs Eigen 3.4 or newer (Debian, Ubuntu: apt install libeigen3-dev)")
  elseif(heed_eigen_version VERSION_LESS 3.4 OR heed_eigen_version VERSION_GREATER_EQUAL 6)
    set(heed_eigen_problem "heed needs Eigen 3.4 to 5, found ${heed_eigen_version}")
  endif()
endif()
