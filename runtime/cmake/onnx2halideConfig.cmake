# onnx2halide_add_model(TARGET MODEL.onnx [NAME name] [TARGETS target ...] [DIMS batch=1 ...] [OPTIONS option ...])
#
# Makes the library target TARGET from an ONNX model: link to it and include NAME.h. NAME is TARGET by default, TARGETS are Halide
# targets (default: host), DIMS are numbers for dims that the model leaves open, OPTIONS go to `onnx2halide compile` as they are.
#
#     find_package(onnx2halide REQUIRED PATHS path/to/onnx2halide/runtime/cmake)
#     onnx2halide_add_model(mnist mnist.onnx)
#     target_link_libraries(app PRIVATE mnist)
#
# The compiler is $ONNX2HALIDE, the build of the checkout that holds this file, or onnx2halide on the PATH.

find_program(ONNX2HALIDE_COMPILER onnx2halide
    HINTS ENV ONNX2HALIDE "${CMAKE_CURRENT_LIST_DIR}/../../build" REQUIRED)
find_package(Threads REQUIRED)

function(onnx2halide_add_model target model)
    cmake_parse_arguments(PARSE_ARGV 2 model "" "NAME" "TARGETS;DIMS;OPTIONS")
    if(DEFINED model_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "onnx2halide_add_model(${target}): unknown arguments: ${model_UNPARSED_ARGUMENTS}")
    endif()
    set(name ${target})
    if(model_NAME)
        set(name ${model_NAME})
    endif()
    cmake_path(ABSOLUTE_PATH model BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.onnx2halide")
    set(arguments --name ${name} -o "${folder}")
    if(model_TARGETS)
        list(JOIN model_TARGETS "," targets)
        list(APPEND arguments --target ${targets})
    endif()
    foreach(dim IN LISTS model_DIMS)
        list(APPEND arguments --dim ${dim})
    endforeach()

    add_custom_command(
        OUTPUT "${folder}/${name}.a" "${folder}/${name}.h"
        COMMAND "${ONNX2HALIDE_COMPILER}" compile "${model}" ${arguments} ${model_OPTIONS}
        DEPENDS "${model}" "${ONNX2HALIDE_COMPILER}"
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
