// SPDX-License-Identifier: MIT
#pragma once

/// Reading and writing tensors in files.
#include <heed/io/error.hpp>
#include <heed/io/file.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/npy_header.hpp>
