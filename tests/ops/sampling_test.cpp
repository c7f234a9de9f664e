#include <catch2/catch.hpp>

#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

}  // namespace

TEST_CASE("errors about samples") {
    const Row rows[] = {
        {"mode", "x = input float32[1,2,4,4]\ng = input float32[1,3,3,2]\ny = GridSample-16(x, g) mode=best\noutput y",
         "node 'y' (GridSample): mode is 'best', expected nearest, linear or cubic"},
        {"padding",
         "x = input float32[1,2,4,4]\ng = input float32[1,3,3,2]\ny = GridSample-16(x, g) padding_mode=none\noutput y",
         "node 'y' (GridSample): padding_mode is 'none', expected zeros, border or reflection"},
        {"the grid's last axis",
         "x = input float32[1,2,4,4]\ng = input float32[1,3,3,3]\ny = GridSample-16(x, g)\noutput y",
         "node 'y' (GridSample): input and grid have shapes 1x2x4x4 and 1x3x3x3, expected NxCx… and Nx…x(axes)"},
        {"batches", "x = input float32[2,2,4,4]\ng = input float32[1,3,3,2]\ny = GridSample-16(x, g)\noutput y",
         "node 'y' (GridSample): the grid has a batch of 1, expected 2"},
        {"an empty image", "x = input float32[1,2,0,4]\ng = input float32[1,3,3,2]\ny = GridSample-16(x, g)\noutput y",
         "node 'y' (GridSample): input has shape 1x2x0x4, which holds no element to sample"},
        {"an affine map", "t = input float32[1,2,2]\ns = constant int64[4] 1 1 2 2\ny = AffineGrid(t, s)\noutput y",
         "node 'y' (AffineGrid): theta has shape 1x2x2, expected Nx2x3 or Nx3x4"},
        {"regions",
         "x = input float32[1,2,4,4]\nr = input float32[3,5]\nb = input int64[3]\ny = RoiAlign(x, r, b)\noutput y",
         "node 'y' (RoiAlign): rois have shape 3x5, expected Nx4"},
        {"bins",
         "x = input float32[1,2,4,4]\nr = input float32[3,4]\nb = input int64[3]\ny = RoiAlign(x, r, b) "
         "output_height=0\noutput y",
         "node 'y' (RoiAlign): output_height and output_width are 0x1, expected 1 or more"},
        {"offsets",
         "x = input float32[1,2,4,4]\nw = input float32[3,2,2,2]\no = input float32[1,4,3,3]\ny = DeformConv(x, w, "
         "o)\noutput y",
         "node 'y' (DeformConv): offset has shape 1x4x3x3, expected 1x8x3x3"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

TEST_CASE("errors about rows that are sorted or transformed") {
    const Row rows[] = {
        {"k", "x = input float32[2,4]\nk = constant int64[1] 5\ny, i = TopK(x, k)\noutput y",
         "node 'y' (TopK): k is 5, expected 0 to 4, the extent of axis 1"},
        {"a negative k", "x = input float32[2,4]\nk = constant int64[1] -1\ny, i = TopK(x, k)\noutput y",
         "node 'y' (TopK): k is -1, expected 0 to 4, the extent of axis 1"},
        {"bools along an open axis", "x = input bool[n,4]\nk = constant int64[1] 1\ny, i = TopK(x, k) axis=0\noutput y",
         "node 'y' (TopK): input 0 has type bool, expected numbers"},
        {"bools", "x = input bool[2,4]\nk = constant int64[1] 1\ny, i = TopK(x, k)\noutput y",
         "node 'y' (TopK): input 0 has type bool, expected numbers"},
        {"sums of bools", "x = input bool[2,4]\naxis = constant int64[1] 1\ny = CumSum(x, axis)\noutput y",
         "node 'y' (CumSum): input 0 has type bool, expected numbers"},
        {"a real signal's last axis", "x = input float32[2,4]\ny = DFT-17(x)\noutput y",
         "node 'y' (DFT): input 0 has shape 2x4, expected a last axis of 1 or 2"},
        {"a long prime", "x = input float32[1,46349,1]\ny = DFT-17(x)\noutput y",
         "node 'y' (DFT): the transform's 46349 elements are not a product of numbers up to 46340"},
        {"a short signal",
         "x = input float32[1,8,1]\ns = constant int64[1] 2\nw = input float32[16]\ny = STFT(x, s, w)\noutput y",
         "node 'y' (STFT): a signal of 8 elements is shorter than a frame of 16"},
        {"no step",
         "x = input float32[1,8,1]\ns = constant int64[1] 0\nw = input float32[4]\ny = STFT(x, s, w)\noutput y",
         "node 'y' (STFT): frame_step is 0, expected 1 or more"},
        {"no square", "x = input float32[2,3,4]\ny = Det(x)\noutput y",
         "node 'y' (Det): input has shape 2x3x4, expected square matrices"},
        {"a cache's update", "x = input float32[2,4,3]\nu = input float32[2,5,3]\ny = TensorScatter(x, u)\noutput y",
         "node 'y' (TensorScatter): update is float32 2x5x3, which does not fit a cache of float32 2x4x3"},
        {"random integers", "y = RandomUniform() shape=2,3 dtype=7\noutput y",
         "node 'y' (RandomUniform): the result's type is int64, expected a float"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

}  // namespace onnx2halide
