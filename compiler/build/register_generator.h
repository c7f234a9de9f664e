// What stands for HALIDE_REGISTER_GENERATOR in the C++ files that are compiled. Halide's own instantiates functions of
// a smart pointer for each class, which take most of the time that small generators take to compile.
#pragma once

#include "Halide.h"

/// Registers a generator by a name. The main program has it.
bool register_generator(const char* name, Halide::Internal::GeneratorBase* (*make)());

/// Registers a class, in a namespace of its own. Names that a class may have are none of its own.
#define ONNX2HALIDE_REGISTER_GENERATOR(CLASS, NAME)                                                                    \
    static Halide::Internal::GeneratorBase* onnx2halide_make() { return new CLASS; }                                   \
    static const bool onnx2halide_registered = ::register_generator(NAME, onnx2halide_make);
