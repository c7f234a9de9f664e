#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace onnx2halide {

/// NAME.json: what a compiled model is and which files belong to it, for tools, for `build`, and for the next `compile`
/// into the same folder.
using Manifest = nlohmann::ordered_json;

/// Number of what a compiled folder and the compiler rely on in each other: the manifest's fields, and all that NAME.c
/// and the generators use of runtime/ and templates/. To be raised when any of that changes, for `build` cannot tell
/// otherwise.
constexpr int manifest_format = 4;

/// Whether JSON of any origin is a manifest.
bool is_manifest(const Manifest& json);

/// SHA-256 of each source that a person may edit, by file name.
Manifest source_hashes(const std::filesystem::path& folder, const std::string& name);

/// Files that emitting the model `name` into a folder would overwrite though they are not what was emitted there:
/// edited sources, and files of other origin.
std::vector<std::string> files_to_lose(const std::filesystem::path& folder, const std::string& name);

/// Notes the files that are staged in a folder, and `others` that stay where they are, writes the manifest beside them
/// and moves all into `folder`, from which it removes what the manifest there lists and this one does not. A folder
/// that has a manifest is trusted, so the old one goes first and the new one comes last. Compilers that publish into
/// one folder do so one after the other.
void publish(const std::filesystem::path& staged, Manifest manifest, const std::vector<std::string>& others,
             const std::filesystem::path& folder);

}  // namespace onnx2halide
