# SPDX-License-Identifier: MIT
# Every header has its test, is at most 250 lines long and guards itself; every file of ours says its
# licence in its first line, or its second where a shell reads the first.
cmake_minimum_required(VERSION 3.24)
set(without_licence "\\.(npy|safetensors|gguf|ids|json|md|svg|png|pyc)$|/(golden|data)/([^/]*/)?[^/]*\\.txt$|/fuzz/corpus/")

file(GLOB_RECURSE headers RELATIVE ${ROOT}/include/heed ${ROOT}/include/heed/*.hpp
                                                        ${ROOT}/include/heed/*.inl)
list(LENGTH headers count)
if(count LESS 40)
  message(SEND_ERROR "only ${count} headers were looked at")
endif()
foreach(header IN LISTS headers)
  file(READ ${ROOT}/include/heed/${header} text)
  string(REGEX REPLACE "[^\n]" "" lines "${text}")
  string(LENGTH "${lines}" lines)
  if(lines GREATER 250)
    message(SEND_ERROR "${header}: ${lines} lines, more than 250")
  endif()
  if(header MATCHES "\\.hpp$")
    if(NOT text MATCHES "\n#pragma once\n")
      message(SEND_ERROR "${header}: no #pragma once")
    endif()
    string(REGEX REPLACE "\\.hpp$" "_test.cpp" test ${header})
    if(header MATCHES "/" AND NOT EXISTS ${ROOT}/tests/${test})
      message(SEND_ERROR "${header}: has no test tests/${test}")
    endif()
  endif()
endforeach()

file(GLOB_RECURSE sources LIST_DIRECTORIES false
     ${ROOT}/.ci/* ${ROOT}/bench/* ${ROOT}/cmake/* ${ROOT}/examples/* ${ROOT}/include/*
     ${ROOT}/tests/* ${ROOT}/tools/*)
list(FILTER sources EXCLUDE REGEX "${without_licence}")
list(LENGTH sources count)
if(count LESS 150)
  message(SEND_ERROR "only ${count} files were looked at")
endif()
foreach(source IN LISTS sources ITEMS ${ROOT}/CMakeLists.txt ${ROOT}/.clang-format ${ROOT}/.clang-tidy)
  file(READ ${source} start LIMIT 200)
  if(NOT start MATCHES "^(#![^\n]*\n)?(//|#) SPDX-License-Identifier: MIT\n")
    message(SEND_ERROR "${source}: does not start with its SPDX line")
  endif()
endforeach()
