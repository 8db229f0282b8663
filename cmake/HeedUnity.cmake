# SPDX-License-Identifier: MIT
# Test files compiled together: templates that many of them use are instantiated once, which takes a
# fifth of the time. All includes come first, and what a file keeps to itself (its unnamed namespace)
# goes into a namespace of its own, so that names may repeat; a file that asks the preprocessor about
# its includes, includes Eigen or replaces operator new stays alone. Messages name the files as ever.

# heed_unity(<result> <folder> <target> <bytes> <source>...)
# Lists in <result> what to compile for the sources: units of at least <bytes> of source, and the
# files that stay alone.
function(heed_unity result folder target bytes)
  set(units)
  set(files)
  set(size 0)
  set(number 0)
  foreach(source IN LISTS ARGN ITEMS "")  # the empty name ends the last unit
    if(source)
      file(STRINGS ${folder}/${source} alone REGEX "^#(define|if|undef|pragma)|^#include .*[Ee]igen|^void.* operator (new|delete)")
      if(alone)
        list(APPEND units ${source})
        continue()
      endif()
      list(APPEND files ${source})
      file(SIZE ${folder}/${source} more)
      math(EXPR size "${size} + ${more}")
    endif()
    if(files AND (size GREATER_EQUAL bytes OR NOT source))
      set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}_${number}.cpp)
      set(paths ${files})
      list(TRANSFORM paths PREPEND ${folder}/)
      string(REPLACE ";" "," names "${files}")
      add_custom_command(OUTPUT ${unit}
        COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DFILES=${names} -DOUT=${unit}
                -P ${PROJECT_SOURCE_DIR}/cmake/HeedUnity.cmake
        DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/HeedUnity.cmake
        COMMENT "Joining ${unit}" VERBATIM)
      list(APPEND units ${unit})
      set(files)
      set(size 0)
      math(EXPR number "${number} + 1")
    endif()
  endforeach()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  string(REPLACE "," ";" FILES "${FILES}")
  set(includes)
  set(bodies)
  foreach(name IN LISTS FILES)
    file(READ ${FOLDER}/${name} text)
    string(REGEX MATCHALL "\n#include [^\n]*" own "${text}")
    list(APPEND includes ${own})
    string(REGEX REPLACE "\n#include [^\n]*" "\n" text "${text}")
    string(MAKE_C_IDENTIFIER "unit_${name}" unit)
    string(REPLACE "\nnamespace {\n" "\nnamespace ${unit} { namespace {\n" text "${text}")
    string(REPLACE "\n}  // namespace\n" "\n} }\n" text "${text}")
    string(APPEND bodies "#line 1 \"${name}\"\n${text}")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  string(REPLACE ";" "" includes "${includes}")
  file(WRITE ${OUT} "// SPDX-License-Identifier: MIT\n${includes}\n${bodies}")
endif()
