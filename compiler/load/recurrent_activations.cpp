#include "compiler/load/recurrent_activations.h"

#include <algorithm>
#include <cmath>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

constexpr float none = NAN;  // for a parameter without a default

const Activation table[] = {
    {"Relu", 0, none, none},       {"Tanh", 0, none, none},        {"Sigmoid", 0, none, none},
    {"Softsign", 0, none, none},   {"Softplus", 0, none, none},    {"LeakyRelu", 1, 0.01f, none},
    {"Elu", 1, 1.0f, none},        {"Affine", 2, none, none},      {"ThresholdedRelu", 1, 1.0f, none},
    {"ScaledTanh", 2, none, none}, {"HardSigmoid", 2, 0.2f, 0.5f},
};

bool is_same_letter(char a, char b) { return std::tolower(a) == std::tolower(b); }

/// Case does not matter, as exporters do not agree on it.
const Activation& find_activation(const std::string& name) {
    for (const Activation& row : table) {
        if (std::equal(row.op.begin(), row.op.end(), name.begin(), name.end(), is_same_letter)) return row;
    }
    throw CompileError("attribute activations has '{}', which is not an activation function", name);
}

/// Hands out the values of activation_alpha or activation_beta in order.
class Parameters {
public:
    Parameters(const OperatorCall& call, const std::string& attribute)
        : attribute_(attribute), values_(call.reals(attribute)) {}

    void take(float& parameter, const std::string& op) {
        if (next_ < values_.size()) {
            parameter = values_[next_++];
        } else if (std::isnan(parameter)) {
            throw CompileError("attribute {} has {} values, and {} has no default", attribute_, values_.size(), op);
        }
    }

private:
    std::string attribute_;
    std::vector<float> values_;
    size_t next_ = 0;
};

}  // namespace

std::vector<Activation> read_activations(const OperatorCall& call, const std::vector<std::string>& defaults,
                                         size_t count) {
    std::vector<std::string> names = call.strings("activations");
    if (names.empty()) {
        while (names.size() < count) names.insert(names.end(), defaults.begin(), defaults.end());
    }
    if (names.size() < count)
        throw CompileError("attribute activations has {} values, expected {}", names.size(), count);
    Parameters alphas(call, "activation_alpha"), betas(call, "activation_beta");
    std::vector<Activation> result;
    for (size_t i = 0; i < count; ++i) {
        Activation activation = find_activation(names[i]);
        if (activation.parameters > 0) alphas.take(activation.alpha, activation.op);
        if (activation.parameters > 1) betas.take(activation.beta, activation.op);
        result.push_back(activation);
    }
    return result;
}

}  // namespace onnx2halide
