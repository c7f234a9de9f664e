// The replacement for HALIDE_REGISTER_GENERATOR in the C++ files that are compiled. Halide's macro instantiates
// functions of a smart pointer for each class, which account for most of the compile time of small generators.
#pragma once

#include "Halide.h"

/// Registers a generator under a name. Defined in generator_main.cpp.
bool register_generator(const char* name, Halide::Internal::GeneratorBase* (*make)());

/// Registers a class in the namespace around it, which must contain no other. What it declares there starts with
/// onnx2halide_, so it cannot clash with the class.
#define ONNX2HALIDE_REGISTER_GENERATOR(CLASS, NAME)                                                                    \
    static Halide::Internal::GeneratorBase* onnx2halide_make() { return new CLASS; }                                   \
    static const bool onnx2halide_registered = ::register_generator(NAME, onnx2halide_make);
