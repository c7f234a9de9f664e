#include "ops/target.h"

#include <catch2/catch.hpp>

namespace onnx2halide {

TEST_CASE("targets tell registers, lanes and devices") {
    using enum ElementType;
    const struct {
        const char* text;
        int vector_bytes, vector_registers, operand_registers, float_lanes, byte_lanes;
        Target::Gpu gpu;
    } rows[] = {
        {"x86-64-linux-sse41", 16, 16, 1, 4, 16, Target::Gpu::none},
        {"x86-64-linux-avx2-fma-f16c", 32, 16, 1, 8, 32, Target::Gpu::none},
        {"x86-64-linux-avx512_skylake", 64, 32, 1, 16, 64, Target::Gpu::none},
        {"arm-64-linux", 16, 32, 5, 4, 16, Target::Gpu::none},
        {"x86-64-linux-sse41-opencl", 16, 16, 1, 4, 16, Target::Gpu::opencl},
        {"x86-64-linux-sse41-cuda", 16, 16, 1, 4, 16, Target::Gpu::cuda},
    };
    for (const auto& row : rows) {
        INFO(row.text);
        const Target target = Target::parse(row.text);
        CHECK(target.vector_bytes == row.vector_bytes);
        CHECK(target.vector_registers == row.vector_registers);
        CHECK(target.operand_registers == row.operand_registers);
        CHECK(target.lanes(float32) == row.float_lanes);
        CHECK(target.lanes(uint8) == row.byte_lanes);
        CHECK(target.lanes(string) == 1);
        CHECK(target.gpu == row.gpu);
        CHECK(target.is_gpu() == (row.gpu != Target::Gpu::none));
    }
}

TEST_CASE("`host` is resolved, so that what is emitted tells its target") {
    CHECK(Target::parse("host").text.find("host") == std::string::npos);
    CHECK(Target::parse("").text == Target::parse("host").text);
    CHECK(Target::parse("host-opencl").is_gpu());
}

TEST_CASE("a target that Halide does not know") {
    CHECK_THROWS_WITH(
        Target::parse("x87"),
        "'x87' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, arm-64-linux "
        "or host-opencl");
    CHECK_THROWS_AS(Target::parse("x87"), CompileError);
}

}  // namespace onnx2halide
