# SPDX-License-Identifier: MIT
# What our own tests, examples and benchmarks are built with. None of it reaches users, and inside
# another project the build type, flags and launcher stay that project's.
if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  # The speed that heed promises is the speed of plain -O2; measure nothing else.
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "Release flags" FORCE)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(HEED_CCACHE ccache)
  if(HEED_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # A header read once (heed_read_once) is known by its bytes.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HEED_CCACHE})
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # which ccache asks for too
  endif()
endif()

option(HEED_WARNINGS_AS_ERRORS "Fail on warnings in our own targets" ${PROJECT_IS_TOP_LEVEL})
set(HEED_SANITIZE "" CACHE STRING "Sanitizers for our own targets, e.g. address,undefined")

# Warnings, sanitizers and checks for one of our own targets.
function(heed_development target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Wundef)
  # g++ looks for what it may forget from 128 MB on, which takes 5 to 10 % of its time.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
  if(HEED_WARNINGS_AS_ERRORS)
    # clang 19 finds that std::stable_sort of libstdc++ 12 calls something deprecated.
    target_compile_options(${target} PRIVATE -Werror $<$<CXX_COMPILER_ID:Clang>:-Wno-error=deprecated-declarations>)
  endif()
  if(HEED_CHECKED)
    target_compile_definitions(${target} PRIVATE HEED_CHECKED)
  endif()
  if(HEED_SANITIZE)
    # With sanitizers g++ takes fields of an empty std::optional for uninitialized ones that are read.
    target_compile_options(${target} PRIVATE -fsanitize=${HEED_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all -Wno-maybe-uninitialized)
    target_link_options(${target} PRIVATE -fsanitize=${HEED_SANITIZE})
  endif()
  target_compile_definitions(${target} PRIVATE EIGEN_MPL2_ONLY)
endfunction()

# heed_read_once(<target> <library> <header>...)
# The headers are parsed once, by <library>, for all targets that name it and have the same flags. A
# file still includes what it needs: tools/tidy and users compile it alone.
function(heed_read_once target library)
  if(NOT TARGET ${library})
    file(CONFIGURE OUTPUT ${library}.cpp CONTENT "")
    add_library(${library} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${library}.cpp)
    get_target_property(linked ${target} LINK_LIBRARIES)
    target_link_libraries(${library} PRIVATE ${linked})
    target_compile_options(${library} PRIVATE ${HEED_QUICK_FLAGS})
    target_precompile_headers(${library} PRIVATE ${ARGN})
    heed_development(${library})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${library})
endfunction()

# Tests of this folder, those that there are, which tests/run leaves to --full; ctest begins with them.
function(heed_long_tests)
  foreach(test IN LISTS ARGN)
    if(TEST ${test})
      set_tests_properties(${test} PROPERTIES LABELS long COST 100)
    endif()
  endforeach()
endfunction()

# Of our own tests under mpiexec: more ranks than processors, as root, on this machine alone, in a
# container that lets no process read another's memory.
set(HEED_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
    OMPI_MCA_btl_vader_single_copy_mechanism=none)
