#include "compiler/driver/manifest.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "compiler/io/files.h"
#include "compiler/io/interrupt.h"
#include "compiler/io/sha256.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> source_names(const std::string& name) {
    return {name + "_generators.cpp", name + ".c", name + ".h"};
}

/// Reads a manifest; returns an empty object if there is none.
Manifest read_manifest(const fs::path& path) {
    Manifest json = fs::exists(path) ? Manifest::parse(read_text(path), nullptr, false) : Manifest();
    return is_manifest(json) ? json : Manifest::object();
}

/// Whether a source starts with the banner of emitted ones, which remains when they are edited.
bool has_banner(const std::string& text) { return text.substr(0, 32).find("onnx2halide: ") != std::string::npos; }

std::set<std::string> listed_files(const Manifest& manifest) {
    return manifest.value("files", Manifest::array()).get<std::set<std::string>>();
}

/// Lets one compiler at a time publish into a folder, so that all files of a program are from the same compilation.
/// Does nothing if the file system has no locks.
class FolderLock {
public:
    explicit FolderLock(const fs::path& folder) : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    ~FolderLock() {
        if (file_ >= 0) close(file_);
    }
    FolderLock(const FolderLock&) = delete;

private:
    int file_;
};

}  // namespace

bool is_manifest(const Manifest& json) { return json.is_object() && json.contains("kernels") && json.contains("name"); }

Manifest source_hashes(const fs::path& folder, const std::string& name) {
    Manifest hashes = Manifest::object();
    for (const std::string& file : source_names(name)) hashes[file] = sha256(read_text(folder / file));
    return hashes;
}

std::vector<std::string> files_to_lose(const fs::path& folder, const std::string& name,
                                       const std::vector<std::string>& built) {
    const fs::path manifest_file = name + ".json";
    const Manifest manifest = read_manifest(folder / manifest_file);
    const Manifest hashes = manifest.value("sources", Manifest::object());
    std::vector<std::string> files;
    bool has_emitted = false;
    for (const std::string& file : source_names(name)) {
        if (!fs::exists(folder / file)) continue;
        const std::string text = read_text(folder / file);
        // There is no hash if a compiler was killed while it moved its files; then the banner must do.
        const bool is_emitted = hashes.contains(file) ? sha256(text) == hashes.at(file) : has_banner(text);
        if (!is_emitted) files.push_back(file);
        has_emitted |= is_emitted;
    }
    const std::set<std::string> own = listed_files(manifest);
    for (const std::string& suffix : built) {
        // What is built has no banner; without a manifest it is taken to be of the sources beside it.
        const bool is_own = manifest.empty() ? has_emitted : own.contains(name + suffix);
        if (!is_own && fs::exists(folder / (name + suffix))) files.push_back(name + suffix);
    }
    if (manifest.empty() && fs::exists(folder / manifest_file)) files.push_back(manifest_file);
    return files;
}

void publish(const fs::path& staged, Manifest manifest, const std::vector<std::string>& others,
             const fs::path& folder) {
    const std::string manifest_file = manifest.at("name").get<std::string>() + ".json";
    std::set<std::string> made;
    for (const auto& file : fs::directory_iterator(staged)) {
        if (file.is_regular_file()) made.insert(file.path().filename());
    }
    std::set<std::string> files = made;
    files.insert(others.begin(), others.end());
    manifest["files"] = files;
    // Names in a model need not be UTF-8.
    write_file(staged / manifest_file, manifest.dump(2, ' ', false, Manifest::error_handler_t::replace) + "\n");

    const FolderLock alone(folder);
    const std::lock_guard no_signal(leftovers().lock);
    const Manifest old = read_manifest(folder / manifest_file);
    fs::remove(folder / manifest_file);
    for (const std::string& file : made) fs::rename(staged / file, folder / file);
    for (const std::string& file : listed_files(old)) {
        // Never remove a file outside this folder, whatever the manifest says.
        if (!files.contains(file) && fs::path(file).filename() == file) fs::remove(folder / file);
    }
    fs::rename(staged / manifest_file, folder / manifest_file);
}

}  // namespace onnx2halide
