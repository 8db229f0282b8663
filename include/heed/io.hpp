// SPDX-License-Identifier: MIT
#pragma once

/// Tensors in files: .npy and safetensors. GGUF is opt-in: <heed/io/gguf.hpp>.
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/safetensors.hpp>
