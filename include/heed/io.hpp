// SPDX-License-Identifier: MIT
#pragma once

/// Reading and writing tensors in files. <heed/io/gguf.hpp> is opt-in.
#include <heed/io/element_type.hpp>
#include <heed/io/error.hpp>
#include <heed/io/file.hpp>
#include <heed/io/mapped_file.hpp>
#include <heed/io/notes.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/npy_header.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/safetensors_header.hpp>
#include <heed/io/safetensors_writer.hpp>
#include <heed/io/shared_bytes.hpp>
