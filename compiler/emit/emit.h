#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/program.h"

namespace onnx2halide {

/// What emitted files say beyond the program itself.
struct EmitOptions {
    std::string model_file;    // without its folder: mnist.onnx
    std::string model_sha256;  // of the model's file, in hex
    int opset = 0;             // of ONNX's own domain
    std::string command;       // the command line that makes the same files again
    KernelSource::Schedule schedule = KernelSource::Schedule::tuned;  // of kernels that `schedules` does not name
    std::map<std::string, std::string> schedules = {};  // lines of schedule() by kernel; see read_schedules
    bool weights_in_file = false;                       // --weights file
    std::string weights_id;                             // of a file of weights, see weights_id()
};

/// NAME_generators.cpp: one class per kernel and target.
std::string emit_generators(const Program& program, const EmitOptions& options);

/// NAME.c: the host program, with one call per step.
std::string emit_host_program(const Program& program, const EmitOptions& options);

/// NAME.h: the public interface. `scratch_bytes` is the most that a kernel asks of one thread; nullopt until they are
/// built.
std::string emit_header(const Program& program, const EmitOptions& options, std::optional<int64_t> scratch_bytes);

/// NAME.weights: every weight at its offset, as parts of the file in order. They are views of the program's constants,
/// which may take hundreds of megabytes.
std::vector<std::string_view> emit_weights(const Program& program);

/// Assembler text that includes the file `weights` in an object, as the array onnx2halide_NAME_weights.
std::string emit_weights_object(const std::string& name, const std::filesystem::path& weights, int64_t bytes);

/// Identifies weights, so that a program can reject a weights file of another model.
std::string weights_id(const std::vector<std::string_view>& weights);

/// The comment lines at the start of every emitted file, each of which starts with `prefix`.
std::string emit_banner(const Program& program, const EmitOptions& options, const std::string& prefix);

/// A name in upper case, for macros.
std::string macro_name(const std::string& name);

/// `, const float* image, float* scores`: the parameters of the typed run after the session. `names` are port_names().
std::string typed_parameters(const Graph& graph, const std::vector<std::string>& names);

/// The names of the inputs, then of the outputs, in C: distinct from each other and from the header's macros.
std::vector<std::string> port_names(const Program& program);

}  // namespace onnx2halide
