# onnx2halide_add_model(LIBRARY MODEL.onnx [NAME name] [TARGET target] [DIMS batch=1 ...] [OPTIONS option ...]
#                       [DEPENDS file ...])
#
# Creates the library target LIBRARY from an ONNX model: link with it and include NAME.h. NAME is LIBRARY by default; characters that C does
# not allow become '_', so my-net has my_net.h. TARGET is passed to --target (default: host), DIMS are numbers or bounds for open dims, and
# OPTIONS are passed to `onnx2halide compile` as they are. The model is compiled whenever it, the compiler or a file that DEPENDS names
# changes, such as external data or a file that is named in an option.
#
#     find_package(onnx2halide REQUIRED PATHS path/to/onnx2halide/runtime/cmake)
#     onnx2halide_add_model(mnist mnist.onnx)
#     target_link_libraries(app PRIVATE mnist)
#
# A program whose model contains RegexFullMatch or Tokenizer also links the C++ library: target_link_libraries(app PRIVATE words stdc++).
#
# The compiler is ONNX2HALIDE_COMPILER (a variable of CMake or of the environment), else the build of the checkout that contains this file,
# else onnx2halide on the PATH.

if(NOT ONNX2HALIDE_COMPILER AND DEFINED ENV{ONNX2HALIDE_COMPILER})
    set(ONNX2HALIDE_COMPILER "$ENV{ONNX2HALIDE_COMPILER}" CACHE FILEPATH "the compiler of ONNX models")
endif()
find_program(ONNX2HALIDE_COMPILER onnx2halide HINTS "${CMAKE_CURRENT_LIST_DIR}/../../build" REQUIRED)
find_package(Threads REQUIRED)

# Turns a text into the name of C functions and files, by the compiler's rule.
function(_onnx2halide_identifier text result)
    string(REGEX REPLACE "[^A-Za-z0-9]+" "_" name "${text}")
    string(REGEX REPLACE "^_|_$" "" name "${name}")
    string(REGEX REPLACE "^([0-9])" "v\\1" name "${name}")
    set(${result} "${name}" PARENT_SCOPE)
endfunction()

function(onnx2halide_add_model target model)
    cmake_parse_arguments(PARSE_ARGV 2 model "" "NAME;TARGET" "DIMS;OPTIONS;DEPENDS")
    if(DEFINED model_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "onnx2halide_add_model(${target}): unknown arguments: ${model_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT model_NAME)
        set(model_NAME ${target})
    endif()
    _onnx2halide_identifier("${model_NAME}" name)
    cmake_path(ABSOLUTE_PATH model BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.onnx2halide")
    set(arguments --name ${name} -o "${folder}")
    if(model_TARGET)
        list(APPEND arguments --target ${model_TARGET})
    endif()
    foreach(dim IN LISTS model_DIMS)
        list(APPEND arguments --dim ${dim})
    endforeach()

    add_custom_command(
        OUTPUT "${folder}/${name}.a" "${folder}/${name}.h"
        COMMAND "${ONNX2HALIDE_COMPILER}" compile "${model}" ${arguments} ${model_OPTIONS}
        DEPENDS "${model}" "${ONNX2HALIDE_COMPILER}" ${model_DEPENDS}
        COMMENT "Compiling ${target} from its ONNX model"
        VERBATIM)
    add_custom_target(${target}_onnx2halide DEPENDS "${folder}/${name}.a" "${folder}/${name}.h")
    file(MAKE_DIRECTORY "${folder}")

    add_library(${target} STATIC IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION "${folder}/${name}.a"
        INTERFACE_INCLUDE_DIRECTORIES "${folder}"
        INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
    add_dependencies(${target} ${target}_onnx2halide)
endfunction()
