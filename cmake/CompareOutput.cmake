# SPDX-License-Identifier: MIT
# Fails unless PROGRAM with ARGUMENTS prints exactly the file GOLDEN and ends with STATUS (0); with
# another STATUS, what it says about the error counts too.
cmake_minimum_required(VERSION 3.24)
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=FORCE_COLOR COLUMNS=80 ${PROGRAM} ${ARGUMENTS}
                OUTPUT_VARIABLE printed ERROR_VARIABLE error RESULT_VARIABLE status)
if(NOT DEFINED STATUS)
  set(STATUS 0)
endif()
if(NOT status EQUAL STATUS)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}\n${error}")
endif()
if(NOT STATUS EQUAL 0)
  string(APPEND printed "${error}")
endif()
file(READ ${GOLDEN} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\nexpected (${GOLDEN})\n${expected}")
endif()
