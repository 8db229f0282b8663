// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/io/file.hpp>

namespace heed::test {

/// What a call throws as FileError says; empty when it throws nothing.
template <class Call>
std::string file_error_of(const Call& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace heed::test
