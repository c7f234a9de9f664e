#include "compiler/infer/fixed_dims.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// The type of an input; null if the input is omitted or has no type yet.
const TensorType* type_of(const Node& node, size_t i) {
    return node.has_input(i) && node.inputs[i]->type ? &*node.inputs[i]->type : nullptr;
}

/// Notes the value that a symbol must have if one of two equal extents is a symbol and the other a number.
void note_number(const Dim& a, const Dim& b, std::map<std::string, int64_t>& numbers) {
    const Dim &number = a.constant() ? a : b, &open = a.constant() ? b : a;
    const std::set<std::string> symbols = open.symbols();
    if (number.constant() && symbols.size() == 1 && open.text() == *symbols.begin())
        numbers.emplace(*symbols.begin(), *number.constant());
}

/// Notes the values that symbols must have for input 0 to have the shape of input 1.
void note_shape(const Node& node, std::map<std::string, int64_t>& numbers) {
    if (node.op_type != "WithShapeOf" || !type_of(node, 0) || !type_of(node, 1)) return;
    const std::vector<Dim>&a = type_of(node, 0)->shape, &b = type_of(node, 1)->shape;
    for (size_t axis = 0; axis < a.size() && axis < b.size(); ++axis) note_number(a[axis], b[axis], numbers);
}

/// An operator whose input 0 has as many channels, along axis 1, as an axis of its weights says.
struct Channels {
    std::string_view op_type;
    size_t weights, axis;
    bool is_of_group;  // whether it counts the channels of one group
};

/// Notes the value that a symbol must have for input 0 to have as many channels as the weights.
void note_channels(const Node& node, std::map<std::string, int64_t>& numbers) {
    static constexpr Channels all[] = {
        {"Conv", 1, 1, true},
        {"ConvInteger", 1, 1, true},
        {"QLinearConv", 3, 1, true},
        {"DeformConv", 1, 1, true},
        {"ConvTranspose", 1, 0, false},
        {"BatchNormalization", 1, 0, false},
        {"GroupNormalization", 1, 0, false},
        {"InstanceNormalization", 1, 0, false},
    };
    const auto row = std::ranges::find(all, node.op_type, &Channels::op_type);
    if (!node.domain.empty() || row == std::end(all)) return;
    const TensorType *data = type_of(node, 0), *weights = type_of(node, row->weights);
    if (!data || !weights || data->rank() < 2 || weights->rank() <= row->axis) return;
    note_number(data->shape[1], weights->shape[row->axis] * (row->is_of_group ? node.integer("group", 1) : 1), numbers);
}

/// Notes the value that a symbol must have for a convolution to have a bias for each channel of its result.
void note_bias(const Node& node, std::map<std::string, int64_t>& numbers) {
    const bool is_transposed = node.op_type == "ConvTranspose";
    if (!node.domain.empty() || (!is_transposed && node.op_type != "Conv")) return;
    const TensorType *weights = type_of(node, 1), *bias = type_of(node, 2);
    if (!weights || !bias || weights->rank() < 2 || bias->rank() != 1) return;
    note_number(bias->shape[0], is_transposed ? weights->shape[1] * node.integer("group", 1) : weights->shape[0],
                numbers);
}

/// Notes the value that a symbol must have for the rows of a product's A to be as long as the columns of its B.
void note_depth(const Node& node, std::map<std::string, int64_t>& numbers) {
    const bool is_gemm = node.op_type == "Gemm";
    if (!node.domain.empty() || (!is_gemm && node.op_type != "MatMul")) return;
    const TensorType *a = type_of(node, 0), *b = type_of(node, 1);
    const size_t least = is_gemm ? 2 : 1;
    if (!a || !b || a->rank() < least || b->rank() < least) return;
    const size_t of_a = is_gemm && node.integer("transA", 0) ? 0 : a->rank() - 1,
                 of_b = is_gemm && node.integer("transB", 0) ? 1 : b->rank() - std::min<size_t>(b->rank(), 2);
    note_number(a->shape[of_a], b->shape[of_b], numbers);
}

/// The number of features that the attributes of a node of ai.onnx.ml are for; 0 if they do not tell.
int64_t features_of(const Node& node) {
    const auto count = [&](const std::string& attribute) {
        return node.has(attribute) ? static_cast<int64_t>(node.reals(attribute).size()) : 0;
    };
    const auto quotient = [](int64_t elements, int64_t rows) {
        return rows > 0 && elements % rows == 0 ? elements / rows : 0;
    };
    if (node.op_type == "Scaler") return std::max(count("offset"), count("scale"));
    if (node.op_type == "Imputer" && node.has("imputed_value_int64s"))
        return static_cast<int64_t>(node.integers("imputed_value_int64s").size());
    if (node.op_type == "Imputer") return count("imputed_value_floats");
    if (node.op_type == "LinearRegressor") return quotient(count("coefficients"), node.integer("targets", 1));
    if (node.op_type != "LinearClassifier" && node.op_type != "SVMRegressor" && node.op_type != "SVMClassifier")
        return 0;
    if (node.op_type.starts_with("SVM")) {
        const auto limited = [](int64_t number) { return std::clamp<int64_t>(number, 0, INT32_MAX); };
        int64_t vectors = limited(node.integer("n_supports", 0));
        for (const int64_t of_class : node.integers("vectors_per_class", {})) vectors += limited(of_class);
        if (vectors > 0) return quotient(count("support_vectors"), vectors);
        if (node.op_type == "SVMRegressor") return count("coefficients");
    }
    int64_t classes = 0;
    if (node.has("classlabels_ints")) classes = static_cast<int64_t>(node.integers("classlabels_ints").size());
    if (node.has("classlabels_strings")) classes = static_cast<int64_t>(node.strings("classlabels_strings").size());
    // The scores of two classes may have one vector of coefficients, or two; intercepts tell which.
    const bool may_share = node.op_type == "LinearClassifier" && classes == 2;
    return quotient(count("coefficients"), may_share ? count("intercepts") : classes);
}

/// Notes the value that a symbol must have for rows to have the features that a model of ai.onnx.ml has numbers for.
void note_features(const Node& node, std::map<std::string, int64_t>& numbers) {
    if (node.domain != ml_domain) return;
    const TensorType* rows = type_of(node, 0);
    const int64_t features = rows && rows->rank() > 0 && !rows->box ? features_of(node) : 0;
    const bool is_for_all = features == 1 && (node.op_type == "Scaler" || node.op_type == "Imputer");
    if (features > 0 && !is_for_all) note_number(rows->shape.back(), features, numbers);
}

bool has_window(const Node& node) {
    static const std::set<std::string> windows = {"AveragePool", "Conv",    "ConvInteger", "DeformConv",
                                                  "LpPool",      "MaxPool", "QLinearConv"};
    return node.domain.empty() && windows.contains(node.op_type);
}

/// The smallest value of an open dim, from `least` on, for which an extent that grows with it is 1 or more; nullopt if
/// that is unknown.
std::optional<int64_t> least_for(const Dim& extent, const std::string& symbol, int64_t least) {
    constexpr int64_t most = 1 << 16;
    for (int64_t number = least; number <= most; ++number) {
        const auto size = extent.substitute({{symbol, Dim(number)}}).constant();
        if (!size) return {};
        if (*size >= 1) return number;
    }
    return {};
}

/// The values of symbols by the axes of inputs that have these symbols as extents, as `INPUT:AXIS`.
std::map<std::string, int64_t> by_axis(const Graph& graph, const std::map<std::string, int64_t>& numbers) {
    std::map<std::string, int64_t> dims;
    for (const Value* input : graph.inputs) {
        for (size_t axis = 0; input->type && axis < input->type->rank(); ++axis) {
            const auto found = numbers.find(input->type->shape[axis].text());
            if (found != numbers.end()) dims.emplace(fmt::format("{}:{}", input->name, axis), found->second);
        }
    }
    return dims;
}

}  // namespace

std::map<std::string, int64_t> fixed_dims(Graph& graph) {
    std::map<std::string, int64_t> numbers;
    for_each_graph(graph, [&](Graph& each) {
        for (const auto& node : each.nodes()) note_shape(*node, numbers);
    });
    // Branches may exist for different numbers of channels.
    for (const auto& node : graph.nodes()) {
        note_channels(*node, numbers);
        note_bias(*node, numbers);
        note_depth(*node, numbers);
        note_features(*node, numbers);
    }
    return by_axis(graph, numbers);
}

std::map<std::string, int64_t> least_dims(const Graph& graph) {
    std::map<std::string, int64_t> numbers;
    for (const auto& node : graph.nodes()) {
        const Value* output = node->outputs.empty() ? nullptr : node->outputs[0];
        if (!has_window(*node) || !output || !output->type) continue;
        for (size_t axis = 2; axis < output->type->rank(); ++axis) {
            const Dim& extent = output->type->shape[axis];
            const std::set<std::string> symbols = extent.symbols();
            if (symbols.size() != 1 || !graph.symbols.contains(*symbols.begin())) continue;
            const auto [low, high] = graph.symbols.at(*symbols.begin()).bounds();
            if (high != Dim::unbounded) continue;  // a user gave it
            const int64_t least = low.value_or(1);
            const auto wanted = least_for(extent, *symbols.begin(), least);
            if (wanted && *wanted > least) {
                int64_t& number = numbers[*symbols.begin()];
                number = std::max(number, *wanted);
            }
        }
    }
    return by_axis(graph, numbers);
}

}  // namespace onnx2halide
