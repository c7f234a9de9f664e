#pragma once

#include <filesystem>
#include <string>
#include <vector>

// The C compiler that compiles host programs and the runtime, and links.
namespace onnx2halide {

/// The words of a command such as `gcc -m32`.
std::vector<std::string> words_of_command(const std::string& cc);

/// The C compiler's command followed by arguments.
std::vector<std::string> with_arguments(const std::string& cc, const std::vector<std::string>& first,
                                        const std::vector<std::string>& second = {},
                                        const std::vector<std::string>& third = {});

/// Throws UsageError if the C compiler cannot be started, or compiles for another processor than the target's.
void check_c_compiler(const std::string& cc, const std::string& target);

/// The C compiler's command, and what it says of its version.
std::string compiler_identity(const std::string& cc);

/// The path that the C compiler prints in answer to an option such as -print-file-name=libre2.a.
std::string printed_path(const std::string& cc, const std::string& question);

/// A tool of the same tool chain as the C compiler, such as objcopy.
std::string sibling_tool(const std::string& cc, const std::string& tool);

/// A C or C++ source that becomes part of an archive or a shared library.
struct CSource {
    std::string cc, optimisation;
    std::filesystem::path file, include;
    std::vector<std::string> flags = {};
};

/// Runs the C compiler on the source with further arguments and returns its output. Throws CompileError if it fails.
std::string run_c_compiler(const CSource& source, const std::vector<std::string>& arguments);

/// Compiles a source, or takes the object from the cache. `text` is everything that the object depends on besides the
/// compiler and its optimisation level.
void compile_c(const CSource& source, const std::string& text, const std::filesystem::path& object);

}  // namespace onnx2halide
