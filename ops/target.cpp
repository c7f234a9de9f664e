#include "ops/target.h"

#include <Halide.h>

namespace onnx2halide {

Target Target::parse(const std::string& text) {
    const std::string resolved = text.empty() ? "host" : text;
    if (!Halide::Target::validate_target_string(resolved))
        throw CompileError(
            "'{}' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, "
            "arm-64-linux or host-opencl",
            text);
    const Halide::Target halide(resolved);
    const bool is_processor = halide.arch == Halide::Target::X86 || halide.arch == Halide::Target::ARM;
    const bool is_gpu = halide.has_feature(Halide::Target::OpenCL) || halide.has_feature(Halide::Target::CUDA);
    if (!is_processor || halide.os != Halide::Target::Linux || halide.has_gpu_feature() != is_gpu) {
        throw CompileError("'{}' is not supported, expected Linux on x86 or ARM, and of GPUs opencl or cuda", text);
    }
    Target target;
    target.text = halide.to_string();
    target.vector_bytes = halide.natural_vector_size(Halide::UInt(8));
    const bool is_arm = halide.arch == Halide::Target::ARM;
    target.vector_registers = is_arm || halide.has_feature(Halide::Target::AVX512_Skylake) ? 32 : 16;
    // On x86 a multiply-add reads memory itself. On ARM loads come first, and LLVM takes several ahead: with fewer
    // registers for them it spills sums.
    if (is_arm) target.operand_registers = 5;
    // Its units are half as wide as AVX-512's registers.
    if (halide.processor_tune == Halide::Target::ZnVer4 && target.vector_bytes == 64) target.multiply_adds = 1;
    if (halide.has_feature(Halide::Target::OpenCL)) target.gpu = Gpu::opencl;
    if (halide.has_feature(Halide::Target::CUDA)) target.gpu = Gpu::cuda;
    return target;
}

int Target::lanes(ElementType type) const {
    const int bytes = info(type).bytes;
    return bytes > 0 && bytes < vector_bytes ? vector_bytes / bytes : 1;
}

}  // namespace onnx2halide
