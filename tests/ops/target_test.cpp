#include "ops/schedule/target.h"

#include <catch2/catch.hpp>

namespace onnx2halide {

TEST_CASE("targets have registers, lanes and devices") {
    using enum ElementType;
    const struct {
        const char* text;
        int vector_bytes, vector_registers, operand_registers, float_lanes, byte_lanes;
        Target::Gpu gpu;
    } rows[] = {
        {"x86-64-linux-sse41", 16, 16, 1, 4, 16, Target::Gpu::none},
        {"x86-64-linux-avx", 16, 16, 1, 4, 16, Target::Gpu::none},  // where vectors of integers are shorter
        {"x86-64-linux-avx2-fma-f16c", 32, 16, 1, 8, 32, Target::Gpu::none},
        {"x86-64-linux-avx512_knl", 32, 16, 1, 8, 32, Target::Gpu::none},
        {"x86-64-linux-avx512_skylake", 64, 32, 3, 16, 64, Target::Gpu::none},
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
        CHECK(target.lanes(undefined) == 1);
        CHECK(target.gpu == row.gpu);
        CHECK(target.is_gpu() == (row.gpu != Target::Gpu::none));
    }
}

TEST_CASE("`host` is resolved, so that emitted files name their target") {
    CHECK(Target::parse("host").text.find("host") == std::string::npos);
    CHECK(targets_text(parse_targets("")) == Target::parse("host").text);
    CHECK(Target::parse("host-opencl").is_gpu());
}

TEST_CASE("integers at once, and matrices of them") {
    const struct {
        const char* text;
        int pairs, quads;
        bool matrices;
    } rows[] = {
        {"x86-64-linux-avx2", 1, 0, false},
        {"x86-64-linux-avx512_skylake", 1, 0, false},
        {"x86-64-linux-avx2-avxvnni", 2, 4, false},
        {"x86-64-linux-avx512_zen4", 2, 4, false},
        {"x86-64-linux-avx512_sapphirerapids", 2, 4, true},
        {"x86-64-linux-avx512_sapphirerapids-opencl", 0, 0, false},
        {"arm-64-linux", 0, 0, false},
    };
    for (const auto& row : rows) {
        INFO(row.text);
        const Target target = Target::parse(row.text);
        CHECK(target.pair_rate == row.pairs);
        CHECK(target.quad_rate == row.quads);
        CHECK(target.multiplies_matrices == row.matrices);
    }
}

TEST_CASE("a target that Halide does not know") {
    CHECK_THROWS_WITH(
        Target::parse("x87"),
        "'x87' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, arm-64-linux "
        "or host-opencl");
    CHECK_THROWS_AS(Target::parse("x87"), CompileError);
}

TEST_CASE("lists of targets have names for their kernels, and all features that a machine needs") {
    const auto targets =
        parse_targets("x86-64-linux-avx512_skylake,x86-64-linux-fma-f16c-avx2,x86-64-linux-sse41,x86-64-linux");
    REQUIRE(targets.size() == 4);
    CHECK(targets[0].short_name == "avx512_skylake");
    CHECK(targets[1].short_name == "avx2");
    CHECK(targets[2].short_name == "sse41");
    CHECK(targets[3].short_name == "x86_64");
    CHECK(targets_text(targets) ==
          "x86-64-linux-avx512_skylake,x86-64-linux-avx2-f16c-fma,x86-64-linux-sse41,x86-64-linux");
    CHECK(targets[1].features == Target::parse("x86-64-linux-avx2").features);
    CHECK(targets[1].features == Target::parse("x86-64-linux-avx2-avx-sse41-fma-f16c").features);
    CHECK(targets[3].features == std::vector<uint64_t>(targets[3].features.size(), 0));
    CHECK(parse_targets("arm-64-linux-arm_dot_prod,arm-64-linux").at(0).short_name == "arm_dot_prod");
    CHECK(parse_targets("arm-64-linux").at(0).short_name == "arm_64");
}

TEST_CASE("errors about lists of targets") {
    const struct {
        const char *list, *error;
    } rows[] = {
        {"x86-64-linux-avx2,x86-64-linux-avx2-fma",
         "'x86-64-linux-avx2-fma' would never be chosen: its machines have 'x86-64-linux-avx2', which comes before it"},
        {"x86-64-linux-sse41,x86-64-linux-avx2",
         "'x86-64-linux-avx2' would never be chosen: its machines have 'x86-64-linux-sse41', which comes before it"},
        {"x86-64-linux-avx2,arm-64-linux", "'x86-64-linux-avx2' and 'arm-64-linux' are not for one processor"},
        {"x86-64-linux-avx2,x86-32-linux", "'x86-64-linux-avx2' and 'x86-32-linux' are not for one processor"},
        {"x86-64-linux-avx2,x86-64-linux-opencl",
         "'x86-64-linux-opencl' cannot be combined with another target, expected instruction sets of one processor"},
        {"x86-64-linux-avx2,",
         "'' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, arm-64-linux or "
         "host-opencl"},
        {"x86-64-linux-sve",
         "'x86-64-linux-sve' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, "
         "arm-64-linux or host-opencl"},
    };
    for (const auto& row : rows) {
        INFO(row.list);
        CHECK_THROWS_WITH(parse_targets(row.list), row.error);
    }
}

}  // namespace onnx2halide
