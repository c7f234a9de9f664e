// Makes objects that most compilations need, in the cache: the runtime for this machine's kind of processor, with and
// without a GPU, and the kernels that fold the constants of usual networks. The build of the compiler runs this with a
// cache of its own, in which every compilation looks, too.

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include <Halide.h>

#include "compiler/build/runtime_objects.h"
#include "compiler/driver/fold_programs.h"
#include "compiler/driver/options.h"
#include "compiler/driver/transform.h"
#include "compiler/infer/infer.h"
#include "compiler/io/files.h"

using namespace onnx2halide;

namespace {

/// Layers that are not connected, each with an input of its own and with constant weights.
class Layers {
public:
    struct Conv {
        int64_t inputs, outputs, width, size, stride = 1, group = 1;  // of a square image and a square kernel
    };

    /// A convolution with a bias, and one without that is normalised.
    void add(const Conv& conv) {
        Value* image = input({1, conv.inputs, conv.width, conv.width});
        const std::vector<int64_t> shape = {conv.outputs, conv.inputs / conv.group, conv.size, conv.size};
        const std::map<std::string, Attribute> attributes = {
            {"strides", std::vector(2, conv.stride)}, {"pads", std::vector(4, conv.size / 2)}, {"group", conv.group}};
        const auto parameter = [&] { return weights({conv.outputs}); };
        add_output(add("Conv", {image, weights(shape), parameter()}, attributes));
        Value* sum = add("Conv", {image, weights(shape)}, attributes);
        add_output(add("BatchNormalization", {sum, parameter(), parameter(), parameter(), parameter()}, {}));
    }

    /// A convolution of bytes by weights with a scale for each channel, as quantisers write it: as one node, and
    /// between nodes that dequantise and quantise.
    void add_quantised(const Conv& conv) {
        Value* image = input({1, conv.inputs, conv.width, conv.width}, ElementType::uint8);
        Value *kernel = bytes({conv.outputs, conv.inputs / conv.group, conv.size, conv.size}),
              *zeros = constant<int8_t>(ElementType::int8, {conv.outputs}, 0),
              *bias = constant<int32_t>(ElementType::int32, {conv.outputs}, 1), *scales = weights({conv.outputs}),
              *scale = weights({}), *zero = constant<uint8_t>(ElementType::uint8, {}, 0);
        const std::map<std::string, Attribute> attributes = {
            {"strides", std::vector(2, conv.stride)}, {"pads", std::vector(4, conv.size / 2)}, {"group", conv.group}};
        graph_.outputs.push_back(
            add("QLinearConv", {image, scale, zero, kernel, scales, zeros, scale, zero, bias}, attributes, 10));
        const std::map<std::string, Attribute> by_channel = {{"axis", int64_t{0}}};
        Value* real = add("Conv",
                          {add("DequantizeLinear", {image, scale, zero}, {}),
                           add("DequantizeLinear", {kernel, scales, zeros}, by_channel),
                           add("DequantizeLinear", {bias, scales}, by_channel)},
                          attributes);
        graph_.outputs.push_back(add("QuantizeLinear", {real, scale, zero}, {}));
    }

    /// A vector's product as classifiers end with, and one of many rows as in transformers.
    void add_products(int64_t inputs, int64_t outputs) {
        for (const int64_t is_transposed : {0, 1}) {
            Value* matrix = is_transposed ? weights({outputs, inputs}) : weights({inputs, outputs});
            add_output(add("Gemm", {input({1, inputs}), matrix, weights({outputs})}, {{"transB", is_transposed}}));
        }
        add_output(add("MatMul", {input({1, 128, inputs}), weights({inputs, outputs})}, {}));
    }

    /// With types.
    Graph& finish() {
        for (const Value* output : graph_.outputs) graph_.output_names.push_back(output->name);
        infer_types(graph_);
        return graph_;
    }

private:
    Value* input(const std::vector<Dim>& shape, ElementType element = ElementType::float32) {
        Value* value = graph_.new_value("image");
        value->type = TensorType(element, shape);
        graph_.inputs.push_back(value);
        return value;
    }

    /// Consecutive numbers, so that passes do not simplify what has equal elements.
    template <typename T>
    Value* constant(ElementType element, const std::vector<int64_t>& shape, T first, T step = {}) {
        std::vector<T> elements(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies()));
        for (T& each : elements) each = std::exchange(first, static_cast<T>(first + step));
        Value* value = graph_.new_value("weights");
        value->constant = make_constant(element, shape, elements);
        value->type = value->constant->type();
        return value;
    }

    Value* weights(const std::vector<int64_t>& shape) { return constant(ElementType::float32, shape, 1.0f, 1.0f); }
    Value* bytes(const std::vector<int64_t>& shape) { return constant<int8_t>(ElementType::int8, shape, -100, 7); }

    /// Each passes an activation.
    void add_output(Value* value) { graph_.outputs.push_back(add("Relu", {value}, {})); }

    Value* add(const std::string& op_type, std::vector<Value*> inputs, std::map<std::string, Attribute> attributes,
               int version = 13) {
        Value* output = graph_.new_value(op_type);
        Node node;
        node.name = output->name;
        node.op_type = op_type;
        node.version = version;
        node.attributes = std::move(attributes);
        node.inputs = std::move(inputs);
        node.outputs = {output};
        graph_.add(std::move(node));
        return output;
    }

    Graph graph_;
};

/// Layers of usual networks for images, of the widths and numbers of channels between which the best form of weights
/// changes, and products.
void add_usual(Layers& layers) {
    constexpr int64_t picture = 224;
    for (const int64_t stride : {1, 2}) {
        for (const int64_t size : {3, 5, 7}) layers.add(Layers::Conv{3, 96, picture, size, stride});
        for (const int64_t size : {3, 7}) layers.add_quantised({3, 96, picture, size, stride});
        for (const auto [width, channels] :
             {std::pair{112, 72}, {80, 96}, {56, 128}, {40, 192}, {28, 256}, {20, 320}, {14, 512}, {7, 512}}) {
            for (const int64_t size : {1, 3}) {
                layers.add(Layers::Conv{channels, channels, width, size, stride});
                layers.add(Layers::Conv{channels / 4, channels, width, size, stride});
            }
            layers.add_quantised({channels, channels, width, 3, stride});
            layers.add_quantised({channels / 4, channels, width, 1, stride});
            layers.add_quantised({channels, channels, width, 3, stride, channels});
            for (const int64_t size : {3, 5}) {
                layers.add(Layers::Conv{channels, channels, width, size, stride, channels});
                layers.add(Layers::Conv{channels / 8, channels / 4, width, size, stride});
            }
        }
    }
    layers.add_products(512, 1000);
    layers.add_products(768, 2);
}

/// Builds the kernels that fold the constants of some layers for this machine.
void prepare_folding(int parallel) {
    Layers layers;
    add_usual(layers);
    Graph& graph = layers.finish();
    const std::vector<Target> targets = parse_targets("host");
    transform(graph, targets, {});
    FoldJob job{cut_fold_program(graph)};
    run_fold_programs(std::array{&job}, parallel, nullptr);
    if (const auto& fault = job.build.fault) throw std::runtime_error("constants: " + fault->text);
}

void prepare_runtime(int parallel) {
    const Halide::Target host = Halide::get_host_target();
    const std::string processor = Halide::Target(host.os, host.arch, host.bits).to_string();
    for (const char* gpu : {"", "-opencl", "-cuda"}) {
        const TemporaryFolder objects;
        build_runtime({CompileOptions().cc, processor + gpu, objects.path(), parallel});
    }
}

}  // namespace

int main() {
    try {
        const int parallel = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        prepare_runtime(parallel);
        prepare_folding(parallel);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
