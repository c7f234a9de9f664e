#include <catch2/catch.hpp>

#include "compiler/graph/error.h"
#include "compiler/passes/pack.h"
#include "ops/node_generator.h"
#include "ops/product/matmul_tile.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

using enum ElementType;

struct Row {
    const char *why, *graph, *expected;
};

}  // namespace

TEST_CASE("shapes of products of matrices") {
    const Row rows[] = {
        {"matrices", "a = input float32[batch,4]\nb = input float32[4,5]\ny = MatMul(a, b)\noutput y",
         "float32[batch,5]"},
        {"a row", "a = input float32[4]\nb = input float32[4,5]\ny = MatMul(a, b)\noutput y", "float32[5]"},
        {"a column", "a = input float32[3,4]\nb = input float32[4]\ny = MatMul(a, b)\noutput y", "float32[3]"},
        {"a row and a column", "a = input int32[4]\nb = input int32[4]\ny = MatMul(a, b)\noutput y", "int32[]"},
        {"batches are broadcast", "a = input float64[2,1,3,4]\nb = input float64[7,4,5]\ny = MatMul(a, b)\noutput y",
         "float64[2,7,3,5]"},
        {"transposed both",
         "a = input float32[4,batch]\nb = input float32[5,4]\ny = Gemm(a, b) transA=1 transB=1\noutput y",
         "float32[batch,5]"},
        {"C is broadcast",
         "a = input float32[3,4]\nb = input float32[4,5]\nc = input float32[3,1]\ny = Gemm(a, b, c)\noutput y",
         "float32[3,5]"},
        {"packed weights", "b = input float32[70,33]\ny = PackMatMulWeights.onnx2halide(b)\noutput y",
         "float32[3,70,16]"},
        {"packed transposed weights, widened",
         "b = input float16[33,70]\ny = PackMatMulWeights.onnx2halide(b) transB=1\noutput y", "float32[3,70,16]"},
        {"packed weights of 8 bytes", "b = input int64[70,33]\ny = PackMatMulWeights.onnx2halide(b)\noutput y",
         "int64[5,70,8]"},
        {"packed words of eight integers of 4 bits",
         "b = input uint8[33,64]\ny = PackMatMulWeights.onnx2halide(b) transB=1 bits=4\noutput y", "uint32[3,8,16]"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(type_text(parse_graph(text)->outputs.at(0)->checked_type()) == expected);
    }
}

TEST_CASE("errors about products of matrices") {
    const Row rows[] = {
        {"depth", "a = input float32[3,4]\nb = input float32[5,6]\ny = MatMul(a, b)\noutput y",
         "node 'y' (MatMul): A has 4 columns, B has 5 rows"},
        {"scalar", "a = input float32[]\nb = input float32[5,6]\ny = MatMul(a, b)\noutput y",
         "node 'y' (MatMul): operands have ranks 0 and 2, expected 1 or more"},
        {"no matrix", "a = input float32[3,4]\nb = input float32[4]\ny = Gemm(a, b)\noutput y",
         "node 'y' (Gemm): input 1 has shape 4, expected a matrix"},
        {"C", "a = input float32[1,4]\nb = input float32[4,6]\nc = input float32[3,6]\ny = Gemm(a, b, c)\noutput y",
         "node 'y' (Gemm): C has shape 3x6, which cannot be broadcast to 1x6"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

TEST_CASE("a tile's sums, its vectors of B and elements of A fit in the registers") {
    for (const char* text : {"x86-64-linux", "x86-64-linux-avx2-fma", "x86-64-linux-avx512_skylake", "arm-64-linux"}) {
        const Target target = Target::parse(text);
        for (const ElementType element : {float32, float64, int32}) {
            for (const int64_t rows : {1, 2, 5, 8, 197, 1000}) {
                for (const int64_t columns : {1, 5, 16, 33, 1000}) {
                    const MatmulTile tile = choose_matmul_tile(target, element, rows, columns);
                    INFO(text << " " << rows << "x" << columns << ": " << tile.rows << " rows, " << tile.vectors
                              << " vectors");
                    CHECK(target.fit_in_registers(tile.rows * tile.vectors, tile.vectors));
                    CHECK(tile.rows <= rows);
                    const int width = tile.vectors * target.lanes(element), block = column_block(element);
                    CHECK((width % block == 0 || block % width == 0));
                }
            }
        }
    }
}

TEST_CASE("of tiles with equally many sums, the one with fewer loads is chosen") {
    struct {
        const char* target;
        Dim rows, columns;
        int tile_rows, vectors;
    } const cases[] = {
        {"x86-64-linux-avx512_skylake", 128, 768, 8, 3},
        {"x86-64-linux-avx512_skylake", 128, 64, 8, 2},  // 4 x 4 would wait for the second-level cache
        {"x86-64-linux-avx512_skylake", Dim::symbol("rows"), Dim::symbol("columns"), 8, 2},
        {"x86-64-linux-avx2-fma", 96, 768, 6, 2},
        {"x86-64-linux-avx2-fma", 128, 768, 6, 2},  // 4 x 2 divides the rows, but its sums wait for each other
    };
    for (const auto& each : cases) {
        const MatmulTile tile = choose_matmul_tile(Target::parse(each.target), float32, each.rows, each.columns);
        INFO(each.target << " " << each.rows.text() << "x" << each.columns.text());
        CHECK(tile.rows == each.tile_rows);
        CHECK(tile.vectors == each.vectors);
    }
    // Three vectors of columns that are no whole blocks, if they may cut one.
    const Target avx2 = Target::parse("x86-64-linux-avx2-fma");
    const auto vectors = [&](int64_t columns) { return choose_matmul_tile(avx2, float32, 196, columns, true).vectors; };
    CHECK(choose_matmul_tile(avx2, float32, 196, 24).vectors == 2);
    CHECK(vectors(24) == 3);
    CHECK(vectors(32) == 2);
    CHECK(vectors(768) == 2);
}

TEST_CASE("matrices of rows and columns, as many as registers hold") {
    const Target target = Target::parse("x86-64-linux-avx512_sapphirerapids");
    const struct {
        int64_t rows, columns, terms;
        int of_tile, vectors, of_matrix, of_terms;
    } rows[] = {
        {128, 768, 768, 32, 2, 16, 64},
        {100, 96, 96, 26, 2, 13, 48},
        {7, 1000, 64, 7, 3, 7, 64},
        {49, 16, 28, 26, 1, 13, 28},
    };
    for (const auto& row : rows) {
        INFO(row.rows << " x " << row.terms << " x " << row.columns);
        const auto tile = choose_matrix_tile(target, row.rows, row.columns, row.terms);
        REQUIRE(tile);
        CHECK(tile->rows == row.of_tile);
        CHECK(tile->vectors == row.vectors);
        CHECK(tile->matrix_rows == row.of_matrix);
        CHECK(tile->matrix_terms == row.of_terms);
    }
    CHECK_FALSE(choose_matrix_tile(target, 2, 768, 768));    // few rows
    CHECK_FALSE(choose_matrix_tile(target, 128, 768, 116));  // no large equal parts are quads
    CHECK_FALSE(choose_matrix_tile(target, 128, 768, 766));  // no quads
    CHECK(choose_matrix_tile(target, Dim::symbol("rows"), 768, 768).value().rows == 32);
    CHECK(choose_matrix_tile(target, Dim::symbol("rows"), 16, 768).value().rows == 48);
    CHECK_FALSE(choose_matrix_tile(Target::parse("x86-64-linux-avx512_zen4"), 128, 768, 768));
}

TEST_CASE("the form of a product") {
    const Row rows[] = {
        {"few rows stream B", "a = input float32[1,64]\nb = input float32[64,100]\ny = MatMul(a, b)\noutput y",
         "y_sum(x, y) += a(k.x, y) * b(x, k.x);"},
        {"8 rows, too", "a = input float32[8,64]\nb = input float32[64,100]\ny = MatMul(a, b)\noutput y",
         "y_sum(x, y) += a(k.x, y) * b(x, k.x);"},
        {"but not a batch of as many",
         "a = input float32[3,8,64]\nb = input float32[3,64,96]\ny = MatMul(a, b)\noutput y",
         "b_panels(lane, depth, block, z) = b(block * 16 + lane, depth, z);"},
        {"one column is dot products", "a = input float32[7,64]\nb = input float32[64,1]\ny = MatMul(a, b)\noutput y",
         "atomic().vectorize(k.x, 4 * lanes"},
        {"many of them fill a vector", "a = input float32[9,60]\nb = input float32[60,1]\ny = MatMul(a, b)\noutput y",
         "reduce_rows(y_sum, element, lanes, y, y_2, y_tile);"},
        {"of a few rows, too, which share what is read of B",
         "a = input float32[3,60]\nb = input float32[96,60]\ny = Gemm(a, b) transB=1\noutput y",
         "reduce_rows(y_sum, element, lanes, x, y_2, x_tile, {y});"},
        {"tiles divide open rows",
         "a = input float32[batch,6,64]\nw = input float32[64,96]\nflat = constant int64[2] -1 64\n"
         "r = Reshape(a, flat)\ny = MatMul(r, w)\noutput y",
         "6 % rows == 0 ? TailStrategy::RoundUp"},
        {"many rows read panels", "a = input float32[9,64]\nb = input float32[64,100]\ny = MatMul(a, b)\noutput y",
         "b_panels(lane, depth, block) = b(min(likely(block * 16 + lane), 99), depth);"},
        {"whole blocks need no clamp", "a = input float32[9,64]\nb = input float32[64,96]\ny = MatMul(a, b)\noutput y",
         "b_panels(lane, depth, block) = b(block * 16 + lane, depth);"},
        {"the batch is the rows where matrices are rows",
         "a = input float32[batch,1,64]\nb = input float32[64,96]\ny = MatMul(a, b)\noutput y",
         "split(z, z_tile, z, tile.size"},
        {"a single row takes each column as it lies",
         "a = input float32[rows,64]\nb = input float32[keys,64]\ny = Gemm(a, b) transB=1\noutput y",
         "select(rows == 1, y_dots(x, y), y_sum(x, y))"},
        {"a single row takes vectors of columns as they lie",
         "a = input float32[rows,64]\nb = input float32[64,96]\ny = MatMul(a, b)\noutput y",
         "select(rows == 1, b(x, k.x), b_panels("},
        {"a few columns fill vectors of as many",
         "a = input float32[rows,64]\nb = input float32[64,4]\ny = MatMul(a, b)\noutput y",
         "select(rows == 1, b(x, k.x), b_panels("},
        {"and rows of an attention's probabilities take them as they lie, too",
         "s = input float32[2,rows,keys]\nv = input float32[2,keys,4]\np = Softmax(s)\ny = MatMul(p, v)\noutput y",
         ".vectorize(x, 4)"},
        {"vectors that would reach behind the last column are packed",
         "a = input float32[rows,64]\nb = input float32[64,97]\ny = MatMul(a, b)\noutput y",
         "+= a(k.x, y) * b_panels("},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        const std::string text_of_kernel = kernel_text(text);
        INFO(text_of_kernel);
        CHECK(text_of_kernel.find(expected) != std::string::npos);
    }
}

TEST_CASE("of many rows and few columns, what is larger than the second-level cache is not read for each tile again") {
    // A few tiles of columns, and 784 rows of more than 512 KB.
    const auto loops = [](int depth, int columns) {
        const auto graph =
            parse_graph("a = input float32[784," + std::to_string(depth) + "]\nw = constant float32[" +
                        std::to_string(depth) + "," + std::to_string(columns) + "]\ny = MatMul(a, w)\noutput y");
        const std::string target = "x86-64-linux-avx2-fma";
        pack_weights(*graph, Target::parse(target), {});
        const std::string text = kernel_text(*graph, target);
        const size_t begin = text.find("reorder(");
        return text.substr(begin, text.find(')', begin) + 1 - begin);
    };
    CHECK(loops(768, 192) == "reorder(x, y, y_tile, x_tile, strip)");  // all columns of a strip, of 590 KB of weights
    CHECK(loops(640, 192) == "reorder(x, y, x_tile, y_tile)");         // all columns of a row of tiles
}

}  // namespace onnx2halide
