// onnx2halide: digits.onnx (opset 17, sha256 a31ed1b05dbdb944), target x86-64-linux-avx2-f16c-fma
// again with: onnx2halide compile scripts/digits/digits.onnx -o generated/digits --target x86-64-linux-avx2-fma-f16c --sources-only
// after edits: onnx2halide build; onnx2halide_generators.h is in its templates/

#include "onnx2halide_generators.h"

// conv1, relu1: float32 1x16x8x8   19 kFLOP
class conv1_relu1 : public Halide::Generator<conv1_relu1> {
public:
    GeneratorParam<int> vectors{"vectors", 2};
    GeneratorParam<int> pixels{"pixels", 4};

    Input<Buffer<float, 4>> image{"image"};  // 8, 8, 1, 1
    Input<Buffer<float, 5>> norm1_weights_packed{"norm1_weights_packed"};  // 16, 1, 3, 3, 1
    Input<Buffer<float, 1>> norm1_offset{"norm1_offset"};  // 16
    Output<Buffer<float, 4>> relu1{"relu1"};  // 16, 8, 8, 1

    void generate() {
        onnx::dense(image, {8, 8, 1, 1});
        onnx::dense(norm1_weights_packed, {16, 1, 3, 3, 1});
        onnx::dense(norm1_offset, {16});
        onnx::dense(relu1, {16, 8, 8, 1});

        // Node 0 (conv1)  norm1 = PackedConv(image, norm1_weights_packed, norm1_offset)   kernel 3x3, pads 1
        norm1_input(x, y, c, n) = BoundaryConditions::constant_exterior(image, Expr(0.0f), {{0, 8}, {Expr(), Expr()}, {Expr(), Expr()}, {Expr(), Expr()}})(x, y, c, n);
        k = RDom(0, 3, 0, 3);
        kx = k.x, ky = k.y;
        k.where(y + ky - 1 >= 0 && y + ky - 1 < 8);
        norm1(c, x, y, n) = norm1_offset(c);
        norm1(c, x, y, n) += norm1_weights_packed(c % 16, 0, kx, ky, c / 16) * norm1_input(x + kx - 1, clamp(y + ky - 1, 0, 7), 0, n);

        // Node 2  relu1 = Relu(norm1)
        relu1(c, x, y, n) = onnx::relu(norm1(c, x, y, n));
    }

    void schedule() {
        if (using_autoscheduler()) {
            onnx::estimate(image, {8, 8, 1, 1});
            onnx::estimate(norm1_weights_packed, {16, 1, 3, 3, 1});
            onnx::estimate(norm1_offset, {16});
            onnx::estimate(relu1, {16, 8, 8, 1});
            return;
        }
        const int lanes = natural_vector_size<float>();
        // A tile's sums stay in registers over all taps: 8 sums, 2 weights and 1 input fit in 16.
        relu1.split(c, co, c, lanes * std::min<int>(vectors, 2), TailStrategy::ShiftInwards)
            .split(x, xo, x, std::min<int>(pixels, 8), TailStrategy::ShiftInwards)
            .reorder(c, x, xo, y, co, n)
            .vectorize(c, lanes)
            .unroll(c)
            .unroll(x);
        norm1.compute_at(relu1, xo)
            .vectorize(c, lanes)
            .unroll(c)
            .unroll(x);
        norm1.update().reorder(c, x, kx, ky)
            .vectorize(c, lanes)
            .unroll(c)
            .unroll(x);

        // A padded copy, one per image, from which taps are read without conditions.
        norm1_input.compute_at(relu1, n)
            .vectorize(x, 2, TailStrategy::GuardWithIf);
    }

private:
    Var n{"n"}, c{"c"}, y{"y"}, x{"x"}, co{"co"}, xo{"xo"};
    RVar kx{"kx"}, ky{"ky"};
    RDom k;
    Func norm1_input{"norm1_input"}, norm1{"norm1"};
};
HALIDE_REGISTER_GENERATOR(conv1_relu1, conv1_relu1)

// conv2, relu2, pool: float32 1x32x4x4   594 kFLOP
class pool_MaxPool : public Halide::Generator<pool_MaxPool> {
public:
    GeneratorParam<int> vectors{"vectors", 2};
    GeneratorParam<int> tiles{"tiles", 4};

    Input<Buffer<float, 4>> relu1{"relu1"};  // 16, 8, 8, 1
    Input<Buffer<float, 5>> conv2_W_packed{"conv2_W_packed"};  // 16, 16, 6, 6, 2
    Input<Buffer<float, 1>> conv2_B{"conv2_B"};  // 32
    Output<Buffer<float, 4>> pool{"pool"};  // 32, 4, 4, 1

    void generate() {
        onnx::dense(relu1, {16, 8, 8, 1});
        onnx::dense(conv2_W_packed, {16, 16, 6, 6, 2});
        onnx::dense(conv2_B, {32});
        onnx::dense(pool, {32, 4, 4, 1});

        // Node 3  conv2 = WinogradConv(relu1, conv2_W_packed, conv2_B)   kernel 3x3, pads 1, places 6
        conv2_input(c, x, y, n) = BoundaryConditions::constant_exterior(relu1, Expr(0.0f), {{Expr(), Expr()}, {0, 8}, {0, 8}, {Expr(), Expr()}})(c, x, y, n);

        // Tile t has 4 x 4 outputs, and 6 x 6 inputs; there are 2 in a row.
        conv2_across(c, t, i, y, n) = onnx::winograd::input<6>(i, [&](int tap) { return conv2_input(c, t % 2 * 4 + tap - 1, t / 2 * 4 + y - 1, n); });
        conv2_tiles(c, t, i, j, n) = onnx::winograd::input<6>(j, [&](int tap) { return conv2_across(c, t, i, tap, n); });
        k = RDom(0, 16);
        ci = k.x;
        conv2_sum(c, t, i, j, n) = Expr(0.0f);
        conv2_sum(c, t, i, j, n) += conv2_W_packed(c % 16, ci, i, j, c / 16) * conv2_tiles(ci, t, i, j, n);
        conv2_product(c, t, i, j, n) = conv2_sum(c, t, i, j, n);
        conv2_rows(c, t, x, j, n) = onnx::winograd::output<4, 6>(x, [&](int tap) { return conv2_product(c, t, tap, j, n); });
        conv2_tile(c, t, x, y, n) = onnx::winograd::output<4, 6>(y, [&](int tap) { return conv2_rows(c, t, x, tap, n); });
        conv2(c, x, y, n) = conv2_tile(c, x / 4 + y / 4 * 2, x % 4, y % 4, n) + conv2_B(c);

        // Node 4  relu2 = Relu(conv2)
        relu2(c, x, y, n) = onnx::relu(conv2(c, x, y, n));

        // Node 5  pool = MaxPool(relu2)   kernel 2x2, strides 2
        pool(c, x, y, n) = (max(max(max(relu2(c, x * 2, y * 2, n), relu2(c, x * 2 + 1, y * 2, n)), relu2(c, x * 2, y * 2 + 1, n)), relu2(c, x * 2 + 1, y * 2 + 1, n)));
    }

    void schedule() {
        if (using_autoscheduler()) {
            onnx::estimate(relu1, {16, 8, 8, 1});
            onnx::estimate(conv2_W_packed, {16, 16, 6, 6, 2});
            onnx::estimate(conv2_B, {32});
            onnx::estimate(pool, {32, 4, 4, 1});
            return;
        }
        const int lanes = natural_vector_size<float>();
        // The windows of a tile's outputs are pooled at once: the outputs themselves are not stored.
        // Tiles of channels are the outermost loop, so that weights are read only once.
        // The last tiles end the loop earlier: a copy of it for the others is no faster.
        pool.split(c, co, c, lanes * std::min<int>(vectors, 4), TailStrategy::ShiftInwards)
            .split(c, vector, c, lanes)
            .split(x, xo, x, 2, TailStrategy::GuardWithIf)
            .split(y, yo, y, 2, TailStrategy::GuardWithIf)
            .partition(yo, Partition::Never)
            .reorder(c, x, y, vector, xo, yo, co, n)
            .vectorize(c)
            .unroll(x)
            .parallel(co);
        conv2_tile.compute_at(pool, vector)
            .bound_extent(t, 1)
            .reorder(c, x, y, t)
            .vectorize(c, lanes)
            .unroll(x)
            .unroll(y);
        conv2_rows.compute_at(pool, vector)
            .bound_extent(t, 1)
            .reorder(x, j, c, t)
            .vectorize(c, lanes)
            .unroll(x)
            .unroll(j);

        // One matrix product for each of 6 x 6 places: 8 sums, 2 weights and 1 input fit in 16 registers.
        conv2_product.compute_at(pool, co)
            .align_extent(t, tiles)
            .split(t, to, t, tiles, TailStrategy::RoundUp)
            .reorder(c, t, to, i, j)
            .vectorize(c, lanes)
            .unroll(c)
            .unroll(t);
        conv2_sum.compute_at(conv2_product, to)
            .vectorize(c, lanes)
            .unroll(c)
            .unroll(t);
        conv2_sum.update().reorder(c, t, ci, i, j)
            .vectorize(c, lanes)
            .unroll(c)
            .unroll(t)
            .unroll(ci, 4);

        // The last tiles end the loop earlier: a copy of it for the others is no faster.
        conv2_tiles.compute_at(pool, n)
            .reorder(i, j, c, t)
            .vectorize(c, lanes, TailStrategy::ShiftInwards)
            .unroll(i)
            .unroll(j)
            .split(t, to, t, tiles, TailStrategy::GuardWithIf)
            .partition(to, Partition::Never)
            .parallel(to);
        conv2_across.compute_at(conv2_tiles, c)
            .reorder(i, y, c, t)
            .vectorize(c, lanes, TailStrategy::ShiftInwards)
            .unroll(i)
            .unroll(y);

        // A padded copy, from which tiles are read without conditions.
        // Its size is bounded by a constant: no run allocates it.
        conv2_input.compute_at(conv2_tiles, to)
            .bound_storage(y, tiles / 2 * 4 + 6)
            .vectorize(c, lanes, TailStrategy::ShiftInwards);
    }

private:
    Var n{"n"}, c{"c"}, y{"y"}, x{"x"}, j{"j"}, i{"i"}, t{"t"}, vector{"vector"}, co{"co"}, xo{"xo"}, yo{"yo"}, to{"to"};
    RVar ci{"ci"};
    RDom k;
    Func conv2_input{"conv2_input"}, conv2_across{"conv2_across"}, conv2_tiles{"conv2_tiles"}, conv2_sum{"conv2_sum"}, conv2_product{"conv2_product"}, conv2_rows{"conv2_rows"}, conv2_tile{"conv2_tile"}, conv2{"conv2"}, relu2{"relu2"};
};
HALIDE_REGISTER_GENERATOR(pool_MaxPool, pool_MaxPool)

// pool_row_major: float32 1x32x4x4
class pool_row_major_Relayout : public Halide::Generator<pool_row_major_Relayout> {
public:
    GeneratorParam<int> x_side{"x_side", 4};
    GeneratorParam<int> c_side{"c_side", 8};

    Input<Buffer<float, 4>> pool{"pool"};  // 32, 4, 4, 1
    Output<Buffer<float, 4>> pool_row_major{"pool_row_major"};  // 4, 4, 32, 1

    void generate() {
        onnx::dense(pool, {32, 4, 4, 1});
        onnx::dense(pool_row_major, {4, 4, 32, 1});

        // Node 18  pool_row_major = Relayout(pool)   layout 3, 2, 1, 0
        pool_row_major(x, y, c, n) = pool(c, x, y, 0);
    }

    void schedule() {
        if (using_autoscheduler()) {
            onnx::estimate(pool, {32, 4, 4, 1});
            onnx::estimate(pool_row_major, {4, 4, 32, 1});
            return;
        }
        // Tiles are transposed in registers: memory is read along c and written along x.
        pool_row_major.tile(x, c, x_tile, c_tile, x_in, c_in, x_side, c_side, TailStrategy::GuardWithIf)
            .reorder(c_in, x_in, x_tile, c_tile, y)
            .vectorize(c_in)
            .unroll(x_in);
    }

private:
    Var n{"n"}, c{"c"}, y{"y"}, x{"x"}, x_in{"x_in"}, c_in{"c_in"}, x_tile{"x_tile"}, c_tile{"c_tile"};
};
HALIDE_REGISTER_GENERATOR(pool_row_major_Relayout, pool_row_major_Relayout)

// dense: float32 1x10   10 kFLOP
class dense_PackedMatMul : public Halide::Generator<dense_PackedMatMul> {
public:
    GeneratorParam<int> vectors{"vectors", 2};
    GeneratorParam<int> rows{"rows", 1};
    GeneratorParam<int> parts{"parts", 4};

    Input<Buffer<float, 2>> flat{"flat"};  // 512, 1
    Input<Buffer<float, 3>> dense_W_packed{"dense_W_packed"};  // 16, 512, 1
    Input<Buffer<float, 1>> dense_B{"dense_B"};  // 10
    Output<Buffer<float, 2>> dense{"dense"};  // 10, 1

    void generate() {
        onnx::dense(flat, {512, 1});
        onnx::dense(dense_W_packed, {16, 512, 1});
        onnx::dense(dense_B, {10});
        onnx::dense(dense, {10, 1});

        // Node 7  dense = PackedMatMul(flat, dense_W_packed, dense_B)   transB 1
        k = RDom(0, 512);
        dense_sum(x, y) = Expr(0.0f);
        dense_sum(x, y) += flat(k.x, y) * dense_W_packed(x % 16, k.x, 0);
        dense(x, y) = dense_sum(x, y) + dense_B(x);
    }

    void schedule() {
        if (using_autoscheduler()) {
            onnx::estimate(flat, {512, 1});
            onnx::estimate(dense_W_packed, {16, 512, 1});
            onnx::estimate(dense_B, {10});
            onnx::estimate(dense, {10, 1});
            return;
        }
        const int lanes = natural_vector_size<float>();
        // rows * vectors sums, the vectors of B and elements of A fit in the registers.
        dense.split(x, x_tile, x, lanes * vectors, TailStrategy::GuardWithIf)
            .split(y, y_tile, y, rows, TailStrategy::GuardWithIf)
            .reorder(x, y, y_tile, x_tile)
            .vectorize(x, lanes)
            .unroll(x)
            .unroll(y);

        // So few sums would wait for each other's additions: each is added up in several parts.
        Func dense_sum_parts = dense_sum.update().split(k.x, group, step_of_group, parts).rfactor(step_of_group, part);
        dense_sum_parts.compute_at(dense, y_tile)
            .vectorize(x, lanes)
            .unroll(x)
            .unroll(y)
            .unroll(part);
        dense_sum_parts.update().reorder(x, y, part, group)
            .vectorize(x, lanes)
            .unroll(x)
            .unroll(y)
            .unroll(part);
        dense_sum.compute_at(dense, y_tile)
            .vectorize(x, lanes)
            .unroll(x)
            .unroll(y);
        dense_sum.update().reorder(x, y, step_of_group)
            .vectorize(x, lanes)
            .unroll(x)
            .unroll(y)
            .unroll(step_of_group);
    }

private:
    Var y{"y"}, x{"x"}, x_tile{"x_tile"}, y_tile{"y_tile"}, part{"part"};
    RVar group{"group"}, step_of_group{"step_of_group"};
    RDom k;
    Func dense_sum{"dense_sum"};
};
HALIDE_REGISTER_GENERATOR(dense_PackedMatMul, dense_PackedMatMul)

// probabilities: float32 1x10
class probabilities_Softmax : public Halide::Generator<probabilities_Softmax> {
public:
    Input<Buffer<float, 2>> dense{"dense"};  // 10, 1
    Output<Buffer<float, 2>> probabilities{"probabilities"};  // 10, 1

    void generate() {
        onnx::dense(dense, {10, 1});
        onnx::dense(probabilities, {10, 1});

        // Node 8  probabilities = Softmax(dense)   axis 1
        k = RDom(0, 10);
        probabilities_max(y) = Expr(-std::numeric_limits<float>::infinity());
        probabilities_max(y) = max(probabilities_max(y), dense(k.x, y));
        probabilities_exp(x, y) = onnx::bounded_exp(dense(x, y) - probabilities_max(y));
        probabilities_sum(y) = Expr(0.0f);
        probabilities_sum(y) += probabilities_exp(k.x, y);
        probabilities_factor(y) = 1 / probabilities_sum(y);
        probabilities(x, y) = probabilities_exp(x, y) * probabilities_factor(y);
    }

    void schedule() {
        if (using_autoscheduler()) {
            onnx::estimate(dense, {10, 1});
            onnx::estimate(probabilities, {10, 1});
            return;
        }
        const int lanes = natural_vector_size<float>();
        probabilities_max.compute_root();

        // Rows of 10 are reduced in vectors of 4, whose lanes are combined last.
        probabilities_max.update().split(k.x, vector, element, 4, TailStrategy::GuardWithIf);
        onnx::reduce_vectors(probabilities_max, element, 4, y);
        probabilities_exp.compute_root();
        probabilities_exp.vectorize(x, lanes, TailStrategy::GuardWithIf);
        probabilities_sum.compute_root();

        // Rows of 10 are reduced in vectors of 4, whose lanes are combined last.
        probabilities_sum.update().split(k.x, vector, element, 4, TailStrategy::GuardWithIf);
        onnx::reduce_vectors(probabilities_sum, element, 4, y);
        probabilities_factor.compute_root();
        probabilities.vectorize(x, lanes, TailStrategy::GuardWithIf);
    }

private:
    Var y{"y"}, x{"x"};
    RVar vector{"vector"}, element{"element"};
    RDom k;
    Func probabilities_max{"probabilities_max"}, probabilities_exp{"probabilities_exp"}, probabilities_sum{"probabilities_sum"}, probabilities_factor{"probabilities_factor"};
};
HALIDE_REGISTER_GENERATOR(probabilities_Softmax, probabilities_Softmax)
