# SPDX-License-Identifier: MIT
# Three ranks, one of which fails in the middle of a step: all end within ten seconds, and what is
# printed says once which rank it was. FAULT: kill, exit, throw, disagree, or train: a rank is killed in
# the middle of a training step, and two ranks go on from its last checkpoint, FILE.
cmake_minimum_required(VERSION 3.24)
set(words_kill "rank 1 [^\n]*exited on signal 9")
set(words_exit "Process name: [^\n]*,1\\]\n *Exit code: *3")
set(words_throw "rank 1 of 3: the mask fails")
set(words_train "${words_kill}")
set(words_disagree "of 3: sharded_attention over 3 ranks: rank 2 brings a mask with fingerprint")
execute_process(COMMAND ${MPIEXEC} ${NUMBER} 3 ${PROGRAM} ${FAULT} ${FILE} TIMEOUT 10
                RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
if(NOT status MATCHES "^[1-9][0-9]*$")  # "Process terminated due to timeout" too
  message(FATAL_ERROR "${FAULT}: ended with ${status}:\n${printed}")
endif()
if(NOT printed MATCHES "${words_${FAULT}}")
  message(FATAL_ERROR "${FAULT}: '${words_${FAULT}}' is missing in\n${printed}")
endif()
string(REGEX MATCHALL "rank [0-9] of 3: [^\n]*" told "${printed}")
list(REMOVE_DUPLICATES told)
list(TRANSFORM told REPLACE "^rank [0-9] of 3: " "")
list(REMOVE_DUPLICATES told)
list(LENGTH told count)
if(count GREATER 1)
  message(FATAL_ERROR "${FAULT}: several messages:\n${printed}")
endif()
if(FAULT STREQUAL "train")
  execute_process(COMMAND ${MPIEXEC} ${NUMBER} 2 ${PROGRAM} go_on ${FILE} TIMEOUT 10
                  RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "going on from ${FILE} ended with ${status}:\n${printed}")
  endif()
endif()
