#pragma once

#include "compiler/driver/manifest.h"
#include "compiler/driver/program_build.h"

namespace onnx2halide {

/// The manifest of a program that is to be built, without hashes, scratch memory and the list of files.
Manifest make_manifest(const ProgramBuild& build);

}  // namespace onnx2halide
