// SPDX-License-Identifier: MIT
// The definitions behind heed::compiled that are no kernels. Included by name, since
// HEED_COMPILED_SOURCE would compile the kernels a second time.
#include <heed/io.hpp>
#include <heed/io/detail/element_type.inl>
#include <heed/io/detail/file.inl>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/detail/json_reader.inl>
#include <heed/io/detail/npy.inl>
#include <heed/io/detail/safetensors.inl>
#include <heed/io/detail/tensor_file.inl>
