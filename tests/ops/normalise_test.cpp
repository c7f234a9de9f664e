#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "ops/node_generator.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

}  // namespace

TEST_CASE("the rows of normalisations") {
    const Row rows[] = {
        {"before opset 13 softmax takes all axes from one on",
         "x = input float32[2,3,4]\ny = Softmax-11(x) axis=1\noutput y", "k = RDom(0, 4, 0, 3);"},
        {"since opset 13 one axis", "x = input float32[2,3,4]\ny = Softmax-13(x) axis=1\noutput y", "k = RDom(0, 3);"},
        {"that axis is the last by default", "x = input float32[2,3,4]\ny = Softmax-13(x)\noutput y",
         "k = RDom(0, 4);"},
        {"the one behind the last makes rows of one element",
         "x = input float32[2,3]\ny = LogSoftmax-11(x) axis=2\noutput y", "y_max(x, y) = max(y_max(x, y), x"},
        {"layers: axes from one on",
         "x = input float32[2,3,4]\ns = input float32[3,4]\ny = LayerNormalization(x, s) axis=-2\noutput y",
         "k = RDom(0, 4, 0, 3);"},
        {"instances: the space of a channel",
         "x = input float32[n,3,5,4]\ns = input float32[3]\ny = InstanceNormalization(x, s, s)\noutput y",
         "k = RDom(0, 4, 0, 5);"},
        {"groups: some channels and their space",
         "x = input float32[n,6,5,4]\ns = input float32[6]\ny = GroupNormalization-21(x, s, s) num_groups=2\noutput y",
         "k = RDom(0, 4, 0, 5, 0, 3);"},
        {"any axes", "x = input float32[2,3,4]\ny = MeanVarianceNormalization(x) axes=0,-1\noutput y",
         "k = RDom(0, 4, 0, 2);"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        const std::string text_of_kernel = kernel_text(text);
        INFO(text_of_kernel);
        CHECK(text_of_kernel.find(expected) != std::string::npos);
    }
}

TEST_CASE("errors about normalisations") {
    const Row rows[] = {
        {"axis", "x = input float32[2,3]\ny = Softmax(x) axis=2\noutput y",
         "node 'y' (Softmax): axis is 2, expected one in [-2, 1]"},
        {"type", "x = input int32[2,3]\ny = Softmax(x)\noutput y",
         "node 'y' (Softmax): input 0 has type int32, expected a float type"},
        {"groups",
         "x = input float32[2,5,4]\ns = input float32[5]\ny = GroupNormalization(x, s, s) num_groups=2\noutput y",
         "node 'y' (GroupNormalization): 5 channels are not a multiple of 2 groups"},
        {"norm", "x = input float32[2,5]\ny = LpNormalization(x) p=3\noutput y",
         "node 'y' (LpNormalization): p is 3, expected 1 or 2"},
        {"window", "x = input float32[2,5,4,4]\ny = LRN(x) size=0\noutput y",
         "node 'y' (LRN): size is 0, expected 1 or more"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

TEST_CASE("batch normalisation is pointwise unless it trains") {
    const struct {
        const char* text;
        bool is_pointwise;
        size_t outputs;
    } rows[] = {
        {"x = input float32[2,3,4]\ns = input float32[3]\ny = BatchNormalization-15(x, s, s, s, s)\noutput y", true, 1},
        {"x = input float32[2,3,4]\ns = input float32[3]\ny = BatchNormalization-6(x, s, s, s, s) is_test=0\noutput y",
         true, 1},
        {"x = input float32[2,3,4]\ns = input float32[3]\ny, m, v = BatchNormalization-15(x, s, s, s, s) "
         "training_mode=1\noutput y",
         false, 5},
        {"x = input float32[2,3,4]\ns = input float32[3]\ny, m, v, a, b = BatchNormalization-9(x, s, s, s, s)\noutput "
         "y",
         false, 5},
    };
    for (const auto& [text, is_pointwise, outputs] : rows) {
        INFO(text);
        const auto graph = parse_graph(text);
        const auto generator = make_generator(*graph->outputs.at(0)->producer);
        CHECK(generator->is_pointwise() == is_pointwise);
        CHECK(generator->infer().size() == outputs);
    }
}

TEST_CASE("rows that may not be whole vectors are padded before they are reduced in strict order") {
    const auto text = [](const char* shape) {
        return kernel_text(fmt::format("x = input float32[{}]\ny = Softmax(x)\noutput y", shape));
    };
    CHECK_THAT(text("4,n"), Catch::Contains("reduce_vectors(y_max, k.x, ") &&
                                Catch::Contains("select(likely(x < n), x_2(min(likely(x), (n - 1)), y)"));
    CHECK_THAT(text("4,20"), Catch::Contains("likely(x < 20)"));
    CHECK_THAT(text("4,64"), !Catch::Contains("likely"));
    CHECK_THAT(text("4,3"), !Catch::Contains("likely"));
    CHECK_THAT(text("n"), !Catch::Contains("likely"));
}

}  // namespace onnx2halide
