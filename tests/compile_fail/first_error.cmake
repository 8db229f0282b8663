# SPDX-License-Identifier: MIT
# Compiles SOURCE with FLAGS. Passes if that fails, if the first error line of the compiler contains
# SENTENCE, and if there are no more than MOST errors: what a user reads first is what to do.
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
execute_process(COMMAND ${CXX} -fsyntax-only ${flags} -I${INCLUDE} ${SOURCE}
                RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT failed)
  message(FATAL_ERROR "${SOURCE} compiles with ${FLAGS}")
endif()
string(REGEX REPLACE "[][;]" "," text "${text}")  # which CMake's lists trip over
string(REGEX MATCHALL "error: [^\n]*" errors "${text}")
list(LENGTH errors count)
list(POP_FRONT errors first)
string(FIND "${first}" "${SENTENCE}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "expected: ${SENTENCE}\nfirst error: ${first}\nof:\n${text}")
elseif(count GREATER MOST)
  message(FATAL_ERROR "${count} errors, expected ${MOST}:\n${text}")
endif()
