# SPDX-License-Identifier: MIT
# Finds Eigen 3.4 or 5 for our own tests, examples and benchmarks; programs that use heed need none.
# Asked for without a version and checked by hand: Eigen 5 refuses a request for 3.4, and Debian's
# 3.4 refuses a version range.
if(NOT TARGET Eigen3::Eigen)
  find_package(Eigen3 CONFIG QUIET)
  set(heed_eigen_version ${Eigen3_VERSION})
  if(NOT heed_eigen_version)
    set(heed_eigen_version ${EIGEN3_VERSION_STRING})
  endif()
  if(NOT Eigen3_FOUND)
    set(heed_eigen_version none)
  endif()
  if(NOT Eigen3_FOUND OR heed_eigen_version VERSION_LESS 3.4 OR heed_eigen_version VERSION_GREATER_EQUAL 6)
    message(FATAL_ERROR
      "heed's tests, examples and benchmarks need Eigen 3.4 to 5, found ${heed_eigen_version} "
      "(Debian, Ubuntu: apt install libeigen3-dev); the library itself does not: "
      "-DHEED_BUILD_TESTS=OFF -DHEED_BUILD_EXAMPLES=OFF -DHEED_BUILD_BENCH=OFF")
  endif()
endif()
