# Finds LLVM and MLIR 22 and sets what every compiler library needs.
# The version is pinned here and nowhere else.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "izh needs LLVM and MLIR 22, but found ${LLVM_VERSION}")
endif()
find_package(LLD CONFIG QUIET HINTS ${LLVM_DIR}/../lld)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
separate_arguments(IZH_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

add_library(izh_llvm INTERFACE)
target_include_directories(izh_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(izh_llvm INTERFACE ${IZH_LLVM_DEFINITIONS})
target_compile_options(izh_llvm INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
# The shared libraries keep links at a fraction of a second.
target_link_directories(izh_llvm INTERFACE ${LLVM_LIBRARY_DIRS})
set_property(TARGET izh_llvm PROPERTY INTERFACE_LINK_LIBRARIES
  ${LLVM_LIBRARY_DIRS}/libMLIR.so ${LLVM_LIBRARY_DIRS}/libLLVM.so)

# izh_tablegen(OUT_TARGET FILE.td GENERATOR OUTPUT [GENERATOR OUTPUT]...)
# runs mlir-tblgen; a generator may carry flags, separated by spaces.
function(izh_tablegen target source)
  set(outputs)
  set(args ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  while(args)
    list(POP_FRONT args generator output)
    separate_arguments(flags UNIX_COMMAND "${generator}")
    set(path ${PROJECT_BINARY_DIR}/${folder}/${output})
    add_custom_command(OUTPUT ${path}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/${folder}
      COMMAND ${LLVM_TOOLS_BINARY_DIR}/mlir-tblgen ${flags} -I ${PROJECT_SOURCE_DIR}
              -I ${MLIR_INCLUDE_DIRS} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${path}
              -d ${path}.d --write-if-changed
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      DEPFILE ${path}.d
      COMMENT "Generating ${folder}/${output}" VERBATIM)
    list(APPEND outputs ${path})
  endwhile()
  add_custom_target(${target} DEPENDS ${outputs})
endfunction()
