#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace onnx2halide {

/// NAME.json, which describes a compiled model and lists its files, for tools, for `build`, and for the next `compile`
/// into the same folder.
using Manifest = nlohmann::ordered_json;

/// The version of the interface between a compiled folder and the compiler: the manifest's fields, and everything in
/// runtime/ and templates/ that NAME.c and the generators use. Raise it when any of that changes: `build` then refuses
/// older folders, for which it might build libraries that do not work.
constexpr int manifest_format = 4;

/// Whether a JSON value, whatever wrote it, is a manifest.
bool is_manifest(const Manifest& json);

/// The SHA-256 of each source that a person may edit, by file name.
Manifest source_hashes(const std::filesystem::path& folder, const std::string& name);

/// The files that compiling the model `name` into a folder would overwrite although they are not as they were emitted:
/// edited sources, and files of other origin. `built` are the suffixes of what it makes besides sources: {".weights",
/// ".a", …}
std::vector<std::string> files_to_lose(const std::filesystem::path& folder, const std::string& name,
                                       const std::vector<std::string>& built);

/// Moves the files in `staged` to `folder`. First it lists them in the manifest, with `others`, which are in `folder`
/// already, and writes that beside them. Removes files that the old manifest in `folder` lists and the new one does
/// not. A folder with a manifest is trusted, so the old one is removed first and the new one moved last. Compilers that
/// publish into the same folder take turns.
void publish(const std::filesystem::path& staged, Manifest manifest, const std::vector<std::string>& others,
             const std::filesystem::path& folder);

}  // namespace onnx2halide
