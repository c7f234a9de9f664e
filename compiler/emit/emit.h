#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/program.h"

namespace onnx2halide {

struct EmitOptions {
    std::string model_file;  // mnist.onnx
    std::string model_sha256;
    int opset = 0;
    std::string command;  // that makes the same files again
    KernelSource::Schedule schedule = KernelSource::Schedule::tuned;
    std::map<std::string, std::string> schedules = {};  // lines that replace a kernel's schedule, by its name
    bool weights_in_file = false;                       // --weights file
    std::string weights_id;                             // see weights_id()
};

/// NAME_generators.cpp: one class a kernel.
std::string emit_generators(const Program& program, const EmitOptions& options);

/// NAME.c: the host program, one call a step.
std::string emit_host_program(const Program& program, const EmitOptions& options);

/// NAME.h: the public interface. `scratch_bytes` is what the kernels need of each thread, where they are built.
std::string emit_header(const Program& program, const EmitOptions& options, std::optional<int64_t> scratch_bytes);

/// NAME.weights: every weight at its offset.
std::string emit_weights(const Program& program);

/// Assembler text that puts NAME.weights into the archive.
std::string emit_weights_object(const std::string& name, const std::filesystem::path& weights, int64_t bytes);

/// What ties a weights file to its program.
std::string weights_id(const std::string& weights);

/// Comment lines that open every emitted file, each starting with `prefix`.
std::string emit_banner(const Program& program, const EmitOptions& options, const std::string& prefix);

/// A name as macros have it: upper case.
std::string macro_name(const std::string& name);

/// `, const float *image, float *scores`: what the typed run takes after the session. `names` are port_names().
std::string typed_parameters(const Graph& graph, const std::vector<std::string>& names);

/// The names of inputs and outputs in C, distinct from each other and from the header's macros.
std::vector<std::string> port_names(const Program& program);

}  // namespace onnx2halide
