// The header that all generators include. Clang compiles it once, together with the templates of Halide that it
// instantiates.
#pragma once

#include "onnx2halide_generators.h"
#include "register_generator.h"

/// Instantiates what most generators use, so that it is compiled once. It is never registered.
class Precompiled : public Halide::Generator<Precompiled> {
public:
    GeneratorParam<int> param{"param", 1};
    GeneratorParam<LoopLevel> level{"level", LoopLevel::root()};
    Input<Buffer<float, 1>> in_1{"in_1"};
    Input<Buffer<float, 2>> in_2{"in_2"};
    Input<Buffer<float, 3>> in_3{"in_3"};
    Input<Buffer<float, 4>> in_4{"in_4"};
    Input<Buffer<float, 5>> in_5{"in_5"};
    Input<int32_t> extent{"extent"};
    Output<Buffer<float, 1>> out_1{"out_1"};
    Output<Buffer<float, 2>> out_2{"out_2"};
    Output<Buffer<float, 3>> out_3{"out_3"};
    Output<Buffer<float, 4>> out_4{"out_4"};
    Output<Buffer<float, 5>> out_5{"out_5"};

    void generate() {
        fix(in_1, out_1, {1});
        fix(in_2, out_2, {1, 1});
        fix(in_3, out_3, {1, 1, 1});
        fix(in_4, out_4, {1, 1, 1, 1});
        fix(in_5, out_5, {1, 1, 1, 1, 1});
        k = RDom(0, 3);
        r = RDom(0, 3, 0, 3);
        const RDom cube(0, 3, 0, 3, 0, extent);
        Func padded = BoundaryConditions::constant_exterior(in_4, Expr(0.0f),
                                                            {{Expr(), Expr()}, {0, 8}, {0, 8}, {Expr(), Expr()}});
        out_1(x) = onnx::relu(in_1(x));
        out_2(x, y) = in_2(x, y);
        out_2(x, y) += in_1(k);
        out_3(x, y, z) = in_3(x, y, z) * in_1(x) * in_3(x + 1, k.x, 0) * in_2(k.x, x / 16);
        out_4(x, y, z, w) = select(x < extent, padded(x, y, z, w), 0.0f);
        out_4(x, y, z, w) +=
            in_4(r.x, r.y, z, w + 1) * in_5(x % 16, r.x, 0, 0, x / 16) * in_5(cube.x, cube.y, cube.z, x, y);
        out_5(x, y, z, w, v) = in_5(x, y, z, w, v);
    }

    void schedule() {
        extent.set_estimate(16);
        order(out_2, x, y);
        order(out_3, x, y, z);
        order(out_4, x, y, z, w);
        order(out_5, x, y, z, w, v);
        order(f, x, y, z, w);
        out_4.reorder(x, y, z, w, v, tile);
        f.reorder(x, y, z, w, v).reorder(x, y, z, w, v, tile);
        f.update().reorder(x, y, k.x).reorder(x, y, r.x, r.y).reorder(x, y, k.x, z, w).reorder(x, y, z, r.x, r.y, w);
        f.update().fuse(x, y, tile).parallel(tile).unroll(x).unroll(k.x);
        f.update().split(x, tile, x, 4, TailStrategy::GuardWithIf).split(x, tile, x, param, TailStrategy::GuardWithIf);
        f.update().atomic().vectorize(k.x, 4, TailStrategy::GuardWithIf);
        f.compute_at(out_4, tile).store_in(MemoryType::Register).bound_extent(x, 16);
    }

private:
    template <typename In, typename Out>
    void fix(In& in, Out& out, std::initializer_list<int> extents) {
        onnx::dense(in, extents);
        onnx::dense(out, extents);
        onnx::fix_extents<In, Expr>(in, {extent, extent * 2}, extent);
        onnx::fix_extents<Out, Expr>(out, {extent, extent * 2}, extent);
        onnx::estimate(in, extents);
        onnx::estimate(out, extents);
    }

    /// The schedule of a stage with these loops.
    template <typename S, typename... Loops>
    void order(S& stage, Loops&... loops) {
        stage.reorder(loops...);
        stage.compute_root();
        stage.split(x, tile, x, param).split(x, tile, x, param, TailStrategy::GuardWithIf);
        stage.split(x, tile, x, 4).split(x, tile, x, 4, TailStrategy::ShiftInwards);
        stage.fuse(x, y, tile).parallel(tile).unroll(x);
        stage.vectorize(x, 16).vectorize(x, 16, TailStrategy::GuardWithIf).vectorize(x, param);
        stage.update().unroll(x).vectorize(x, 16);
        stage.update(0).reorder(loops...);
    }

    Var x{"x"}, y{"y"}, z{"z"}, w{"w"}, v{"v"}, tile{"tile"};
    RDom k, r;
    Func f{"f"};
};
