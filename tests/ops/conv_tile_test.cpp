#include "ops/conv/conv_walk.h"

#include <utility>

#include <catch2/catch.hpp>

namespace onnx2halide {

namespace {

/// A convolution of single pixels over rows of 13.
ConvLoops rows_of_13() {
    ConvLoops loops{};
    loops.element = ElementType::float32;
    loops.channels = 256;
    loops.max_lanes = 16;
    loops.products = loops.inner_products = 96;
    loops.width = loops.height = 13;
    loops.input_pixel_bytes = 96 * 4;
    loops.input_elements = 96 * 13 * 13;
    loops.weight_elements = 96 * 256;
    return loops;
}

/// A 3x3 kernel of so many channels, over square images.
ConvLoops depthwise(int64_t channels, int64_t width) {
    ConvLoops loops = rows_of_13();
    loops.channels = loops.max_lanes = channels;
    loops.shares_inputs = false;
    loops.width = loops.height = width;
    loops.products = 9, loops.inner_products = 3;
    loops.window_rows = loops.column_span = 3;
    loops.input_pixel_bytes = 4 * channels;
    return loops;
}

}  // namespace

TEST_CASE("if loads are slow, a wider tile is chosen over one of many pixels and one vector") {
    Target target = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");
    CHECK(target.loads == 1.5);
    const ConvTile slow = choose_conv_tile(rows_of_13(), target);
    CHECK(slow.vectors > 1);
    CHECK(slow.pixels < 13);

    target.loads = 2;
    const ConvTile fast = choose_conv_tile(rows_of_13(), target);
    CHECK(fast.vectors == 1);
    CHECK(fast.pixels == 13);

    CHECK(Target::parse("x86-64-linux-avx512_skylake").loads == 2);
    CHECK(Target::parse("arm-64-linux").loads == 2);
}

TEST_CASE("a tile that is pooled has whole windows, if registers hold them") {
    const Target target = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");
    ConvLoops loops = rows_of_13();
    loops.width = 60, loops.open_height = true;
    const auto tile_of = [&](int64_t columns, int64_t rows) {
        loops.pooled = {columns, rows};
        return choose_conv_tile(loops, target);
    };
    for (const auto& [columns, rows] : {std::pair{2, 2}, {3, 3}, {1, 4}, {5, 1}}) {
        const ConvTile tile = tile_of(columns, rows);
        CHECK(has_whole_windows(loops, tile, target));
        CHECK(tile.pixels % columns == 0);
        CHECK(tile.tile_rows == rows);
        CHECK(tile.sums() < target.vector_registers);
    }
    for (const auto& [columns, rows] : {std::pair{4, 4}, {1, 150}, {20, 1}}) {
        const ConvTile tile = tile_of(columns, rows);
        CHECK(!has_whole_windows(loops, tile, target));
    }
    CHECK(tile_of(1, 1).tile_rows == 1);
}

TEST_CASE("an open width has versions for widths of usual images, without tiles that others replace") {
    const Target target = Target::parse("x86-64-linux-avx512_skylake");
    ConvLoops loops = rows_of_13();
    loops.open_width = loops.open_height = true;
    ConvTile tile = choose_conv_tile(loops, target);
    tile.least_pixels = 8;
    CHECK(pixels_of_versions(loops, tile) == std::vector{14, 8, 7, 5, 4, 2, 1});
    // Two tiles of 7 or of 4 take as long as one of 14 or 8.
    tile.least_pixels = 4;
    CHECK(pixels_of_versions(loops, tile) == std::vector{7, 5, 4, 2, 1});
    loops.height = 1, loops.open_height = false;
    CHECK(pixels_of_versions(loops, tile) == std::vector{4, 2, 1});
}

TEST_CASE("matrices of pixels and channels, as many as registers hold") {
    const Target target = Target::parse("x86-64-linux-avx512_sapphirerapids");
    const struct {
        int64_t width, channels, byte_channels, taps;
        int pixels, rows, vectors, of_matrix, terms;
    } rows[] = {
        {56, 64, 64, 3, 28, 1, 2, 14, 64},  {14, 64, 256, 3, 14, 2, 2, 14, 64},  // whole rows, one below the other
        {7, 64, 96, 3, 7, 2, 2, 7, 48},     {64, 48, 64, 1, 16, 1, 3, 16, 64},
        {32, 16, 128, 1, 32, 1, 1, 16, 64}, {56, 32, 16, 3, 28, 1, 2, 14, 48},  // the channels of three taps
        {56, 32, 4, 3, 0, 0, 0, 0, 0},                                          // too few
        {56, 32, 116, 3, 0, 0, 0, 0, 0},  // of which no large equal parts are quads
    };
    for (const auto& row : rows) {
        INFO(row.width << " pixels, " << row.channels << " channels of " << row.byte_channels);
        ConvLoops loops = rows_of_13();
        loops.element = ElementType::int32;
        loops.width = loops.height = row.width;
        loops.channels = row.channels;
        loops.byte_channels = row.byte_channels, loops.byte_taps = row.taps;
        loops.products = row.byte_channels / 4 * row.taps * row.taps;
        const ConvTile tile = choose_conv_tile(loops, target);
        CHECK(tile.has_matrices() == (row.terms > 0));
        if (row.terms == 0) continue;
        CHECK(tile.pixels == row.pixels);
        CHECK(tile.tile_rows == row.rows);
        CHECK(tile.vectors == row.vectors);
        CHECK(tile.matrix_pixels == row.of_matrix);
        CHECK(tile.matrix_terms == row.terms);
        CHECK_FALSE(choose_conv_tile(loops, Target::parse("x86-64-linux-avx512_zen4")).has_matrices());
        loops.open_width = true;
        CHECK_FALSE(choose_conv_tile(loops, target).has_matrices());
    }
}

TEST_CASE("tiles of several vectors extend past the last channel as far as there are weights") {
    const Target target = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");
    ConvLoops loops = rows_of_13();
    const auto vectors = [&](int64_t channels, int64_t block) {
        loops.channels = channels, loops.max_lanes = block;
        return choose_conv_tile(loops, target).vectors;
    };
    // Of 19 vectors, a prime number. Blocks of 16 have weights for 20, blocks of 8 only for these.
    CHECK(vectors(150, 16) > 1);
    CHECK(vectors(150, 8) == 1);
    // Tiles that are shifted inwards need no weights past the last channel.
    CHECK(vectors(152, 8) > 1);
}

TEST_CASE("tiles that may not be shifted inwards divide the channels") {
    const Target target = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");
    ConvLoops loops = rows_of_13();
    const auto vectors = [&](int64_t channels, bool whole_tiles) {
        loops.channels = channels, loops.whole_tiles = whole_tiles;
        return choose_conv_tile(loops, target).vectors;
    };
    // Of 19 vectors, a prime number.
    CHECK(vectors(152, false) > 1);
    CHECK(vectors(152, true) == 1);
    for (const int64_t channels : {72, 88, 112, 672}) CHECK(channels % (8 * vectors(channels, true)) == 0);
}

TEST_CASE("half vectors fill channels if they are as fast as whole ones") {
    Target target = Target::parse("x86-64-linux-avx512_skylake");
    ConvLoops loops = rows_of_13();
    const auto lanes = [&](int multiply_adds, int64_t channels, int64_t groups, bool whole_group) {
        target.multiply_adds = multiply_adds;
        loops.channels = channels, loops.groups = groups, loops.whole_group = whole_group;
        const ConvTile tile = choose_conv_tile(loops, target);
        CHECK(tile.lanes * tile.vectors >= channels % 16);
        return tile.lanes;
    };
    CHECK(lanes(1, 34, 1, false) == 8);
    CHECK(lanes(1, 34, 4, true) == 8);
    CHECK(lanes(2, 34, 4, true) == 16);
    CHECK(lanes(1, 46, 4, true) == 16);
    // Tiles of parts of a group start at blocks of weights.
    CHECK(lanes(1, 48, 4, false) == 16);
}

TEST_CASE("depthwise channels are walked in memory order, in equal parts that the nearest cache holds") {
    const ConvTile tile{8, 1, 8, 1, 100};
    for (const auto& [channels, together] :
         {std::pair{64, 64}, {20, 20}, {256, 256}, {455, 152}, {576, 192}, {1000, 200}})
        CHECK(ordered_channels(depthwise(channels, 28), tile) == together);
}

TEST_CASE("depthwise tiles read whole cache lines of few pixels if they evict each other") {
    const Target avx2 = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41"),
                 avx512 = Target::parse("x86-64-linux-avx512_skylake");
    const auto tile = [](const ConvLoops& loops, const Target& target) {
        const ConvTile chosen = choose_conv_tile(loops, target);
        return std::pair{chosen.vectors, chosen.pixels};
    };
    CHECK(tile(depthwise(480, 28), avx2) == std::pair{1, 7});
    CHECK(tile(depthwise(512, 28), avx2) == std::pair{2, 2});
    CHECK(tile(depthwise(256, 28), avx2) == std::pair{2, 4});
    CHECK(tile(depthwise(512, 28), avx512) == std::pair{1, 2});
    // A whole row, if it fits in the registers.
    CHECK(tile(depthwise(512, 7), avx2) == std::pair{2, 7});
    CHECK(tile(depthwise(512, 8), avx2) == std::pair{1, 8});
    // Many taps read a copy, in which nothing conflicts.
    ConvLoops large = depthwise(512, 28);
    large.products = 25, large.window_rows = large.column_span = 5;
    CHECK(tile(large, avx2) == std::pair{2, 4});
    CHECK(gains_from_copy(large, avx2));
    CHECK(!gains_from_copy(depthwise(512, 28), avx2));
    large.input_elements = 512 * 300 * 300;  // too large to copy
    CHECK(!gains_from_copy(large, avx2));
    CHECK(tile(large, avx2) == std::pair{2, 7});
    large = depthwise(512, 28);
    large.products = 25, large.window_rows = large.column_span = 5, large.width = 7;
    CHECK(!gains_from_copy(large, avx2));
}

TEST_CASE("tiles are buffered in whole rows or in equal parts of one") {
    const ConvTile tile{8, 2, 5, 1, 1000};
    const auto waiting = [&](int64_t width, int64_t height, int strip) {
        ConvLoops loops = rows_of_13();
        loops.width = width;
        loops.height = height;
        const WaitingTiles tiles = choose_waiting_tiles(loops, tile, {strip, false, true}, 16);
        return std::pair{tiles.pixels, tiles.rows};
    };
    CHECK(waiting(52, 52, 1) == std::pair{52, 1});
    CHECK(waiting(600, 4, 2) == std::pair{75, 1});   // eight parts: seven would be 86 wide, not whole tiles
    CHECK(waiting(13, 12, 12) == std::pair{13, 6});  // 13 rows would be too many
    CHECK(waiting(169, 1, 85) == std::pair{85, 1});  // strips of pixels
    // Three parts, the fewest, would have three tiles of eight each, four have two.
    CHECK(choose_waiting_tiles(depthwise(64, 52), {8, 1, 8, 1, 40}, {13, false, true}, 64).pixels == 13);
}

TEST_CASE("vectors of groups hold whole groups, and leave registers for rotated inputs") {
    ConvLoops loops = rows_of_13();
    loops.shares_inputs = false;
    loops.max_lanes = loops.channels;
    loops.channels_of_vector_groups = 4;
    for (const char* name : {"x86-64-linux-avx512_skylake", "x86-64-linux-avx2-fma", "x86-64-linux-sse41"}) {
        const Target target = Target::parse(name);
        const ConvTile tile = choose_conv_tile(loops, target);
        CHECK(tile.lanes == target.lanes(ElementType::float32));
        CHECK(2 * tile.pixels * tile.tile_rows < target.vector_registers);
    }
    loops.channels_of_vector_groups = 8;
    CHECK(choose_conv_tile(loops, Target::parse("x86-64-linux-sse41")).lanes == 8);
}

TEST_CASE("pixels with few channels share vectors if their inputs are adjacent") {
    ConvLoops loops = rows_of_13();
    loops.channels = 4;
    loops.products = 25;
    loops.inner_products = 1;
    loops.width = loops.height = 30;
    loops.input_pixel_bytes = 4;
    loops.neighbour_taps = 5;
    for (const char* name : {"x86-64-linux-avx512_skylake", "x86-64-linux-avx2-fma"}) {
        const Target target = Target::parse(name);
        const ConvTile tile = choose_conv_tile(loops, target);
        CHECK(tile.lanes * tile.pixels_of_vector == target.lanes(ElementType::float32));
        CHECK(tile.pixels % tile.pixels_of_vector == 0);
        CHECK(tile.pixels <= loops.width);

        ConvLoops apart = loops;
        apart.neighbour_taps = 0;
        CHECK(choose_conv_tile(apart, target).pixels_of_vector == 1);
        apart = loops;
        apart.channels = 3;
        CHECK(choose_conv_tile(apart, target).pixels_of_vector == 1);
    }
}

}  // namespace onnx2halide
