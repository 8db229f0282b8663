# SPDX-License-Identifier: MIT
# Fails unless PROGRAM with ARGUMENTS prints exactly the file GOLDEN.
cmake_minimum_required(VERSION 3.24)
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=FORCE_COLOR COLUMNS=80 ${PROGRAM} ${ARGUMENTS}
                OUTPUT_VARIABLE printed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}")
endif()
file(READ ${GOLDEN} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\nexpected (${GOLDEN})\n${expected}")
endif()
