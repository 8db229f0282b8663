// SPDX-License-Identifier: MIT
#pragma once

/// All of heed, for programs. A program that needs less includes less: <heed/attention.hpp> pulls
/// in neither files nor pictures. Eigen's matrices are taken as they are, where the program
/// includes Eigen. Opt-in headers stay out, for the time they take to compile: <heed/plot/png.hpp>,
/// <heed/io/gguf.hpp>, <heed/text.hpp>, <heed/pretrained.hpp>, <heed/ostream.hpp>; and those that
/// need another library, <heed/distributed.hpp> (MPI) and <heed/tensor/eigen.hpp> (Eigen).
#include <heed/attention.hpp>
#include <heed/attention/reference.hpp>
#include <heed/core.hpp>
#include <heed/generation.hpp>
#include <heed/io.hpp>
#include <heed/kernels.hpp>
#include <heed/layers.hpp>
#include <heed/masks.hpp>
#include <heed/models.hpp>
#include <heed/plot.hpp>
#include <heed/tensor.hpp>
#include <heed/training.hpp>
