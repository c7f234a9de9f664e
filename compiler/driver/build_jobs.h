#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/archive.h"
#include "compiler/build/kernels.h"
#include "compiler/driver/manifest.h"

// What is to be built of a program whose sources are emitted, as its manifest says. `compile` and `build` add their
// own.
namespace onnx2halide {

/// The kernels of a generator file, which get their targets; `objects` gets their objects, and `further` is the start
/// of the paths of what else is made of them. Throws CompileError if a class is missing whose kernel the host program
/// calls.
KernelJob kernel_job(const Manifest& manifest, GeneratorFile file, const std::filesystem::path& objects,
                     const std::string& further);

/// The library in `folder` of the built kernels, and of the file `weights` unless that is read at run time.
ArchiveJob archive_job(const Manifest& manifest, const KernelJob& kernels, const std::filesystem::path& folder,
                       const std::filesystem::path& weights);

/// Whether --emit asks for a kind of result.
bool has_kind(const std::vector<std::string>& kinds, std::string_view kind);

}  // namespace onnx2halide
