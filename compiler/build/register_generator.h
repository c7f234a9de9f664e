// What stands for HALIDE_REGISTER_GENERATOR in the C++ files that are compiled. Halide's own instantiates functions of
// a smart pointer for each class, on which g++ spends half of its time.
#pragma once

#include <memory>

#include "Halide.h"

/// Gives a generator its context and the name that it is registered as. The main program has it.
std::unique_ptr<Halide::Internal::AbstractGenerator> prepared_generator(Halide::Internal::GeneratorBase* generator,
                                                                        const Halide::GeneratorContext& context,
                                                                        const char* name);

/// Registers a class, in a namespace of its own. Names that a class may have are none of its own.
#define ONNX2HALIDE_REGISTER_GENERATOR(CLASS, NAME)                                                                    \
    static std::unique_ptr<Halide::Internal::AbstractGenerator> onnx2halide_make(                                      \
        const Halide::GeneratorContext& onnx2halide_context) {                                                         \
        return ::prepared_generator(new CLASS, onnx2halide_context, NAME);                                             \
    }                                                                                                                  \
    static const Halide::Internal::RegisterGenerator onnx2halide_registered(NAME, onnx2halide_make);
