#include "ops/product/recurrent_cell.h"

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/families.h"
#include "ops/product/matrix_product.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

std::string sum(const std::string& a, const std::string& b) { return fmt::format("onnx::strict_add({}, {})", a, b); }

std::string product(const std::string& a, const std::string& b) {
    return fmt::format("onnx::strict_mul({}, {})", a, b);
}

}  // namespace

CellFunctions::CellFunctions(const Node& node)
    : activations_(node.strings("activations")), alphas_(node.reals("activation_alpha")),
      betas_(node.reals("activation_beta")), clip_(node.real("clip", 0.0f)) {}

std::string CellFunctions::gated(size_t number, const std::string& x, ElementType type) const {
    if (clip_ == 0) return activated(number, x, type);
    const auto bound = [&](float value) { return KernelSource::literal(double{value}, type); };
    return activated(number, fmt::format("onnx::clip({}, {}, {})", x, bound(-clip_), bound(clip_)), type);
}

std::string CellFunctions::activated(size_t number, const std::string& x, ElementType type) const {
    const std::string& op = activations_.at(number);
    const float alpha = alphas_.at(number), beta = betas_.at(number);
    const auto literal = [&](float value) { return KernelSource::literal(double{value}, type); };
    if (op == "Affine") return sum(product(literal(alpha), x), literal(beta));
    if (op == "ScaledTanh") return product(literal(alpha), fmt::format("onnx::tanh({})", product(literal(beta), x)));
    Node function;
    function.op_type = op;
    function.attributes = {{"alpha", alpha}, {"beta", beta}};
    return unary_formula(function, x);
}

std::vector<TensorType> RecurrentCell::infer() const {
    return std::vector<TensorType>(node_.outputs.size(), TensorType(in(0).element, in(state_input()).shape));
}

bool RecurrentCell::can_compute_input(const Node& anchor, const Target&) const {
    const auto generator = make_generator(anchor);
    return dynamic_cast<const MatrixProduct*>(generator.get()) != nullptr;
}

void RecurrentCell::schedule(KernelSource& source) const {
    const auto product = product_before(source, node_);
    for (size_t i = 0; i < source.output_count(); ++i) {
        const Loops loops = source.output_loops(i);
        if (product && source.outputs()[i] == input(0)) {
            static_cast<const MatrixProduct&>(*product).schedule_as(source, loops);
        } else {
            schedule_loops(source, loops);
        }
    }
}

std::string RecurrentCell::gate(KernelSource& source, size_t i, int number, const Coordinates& at) const {
    const Dim first = out(0).shape.back() * number;
    return source.read(input(i), {at[0], shifted(source, at[1], first)});
}

std::string RecurrentCell::define(KernelSource& source, const std::string& role, const Coordinates& at,
                                  const std::string& element) const {
    const std::string func = source.func(fmt::format("{}_{}", output(0)->name, role));
    const std::string left = KernelSource::call(func, out(0), at);
    source.line(fmt::format("{} = {};", left, element));
    return left;
}

void LstmCell::algorithm(KernelSource& source) const {
    enum Gate { i_gate, o_gate, f_gate, c_gate };
    const Coordinates at = source.vars(2);
    const auto peeped = [&](Gate gate, int peephole, const std::string& cell) {
        const std::string own = this->gate(source, 0, gate, at);
        if (!has_input(2)) return own;
        const std::string weight = source.read(input(2), {shifted(source, at[1], out(0).shape.back() * peephole)});
        return sum(own, product(weight, cell));
    };
    const std::string c = source.read(input(1), at);
    const std::string i = define(source, "i", at, gated(0, peeped(i_gate, 0, c)));
    const std::string f = define(source, "f", at,
                                 node_.integer("input_forget", 0) != 0 ? fmt::format("strict_float(1 - {})", i)
                                                                       : gated(0, peeped(f_gate, 2, c)));
    const std::string candidate = define(source, "candidate", at, gated(1, gate(source, 0, c_gate, at)));
    source.define(output(1), at, sum(product(f, c), product(i, candidate)));
    const std::string new_c = source.read(output(1), at);
    const std::string o = define(source, "o", at, gated(0, peeped(o_gate, 1, new_c)));
    source.define(output(0), at, product(o, activated(2, new_c)));
}

void GruReset::algorithm(KernelSource& source) const {
    constexpr int r_gate = 1;
    const Coordinates at = source.vars(2);
    const std::string r = gated(0, sum(gate(source, 1, r_gate, at), gate(source, 0, r_gate, at)));
    source.define(output(0), at, product(r, source.read(input(2), at)));
}

void GruCell::algorithm(KernelSource& source) const {
    enum Gate { z_gate, r_gate, candidate_gate };
    const bool resets_product = node_.integer("linear_before_reset", 0) != 0;
    const Coordinates at = source.vars(2);
    const std::string z = define(
        source, "z", at, gated(0, sum(gate(source, 1, z_gate, at), gate(source, resets_product ? 0 : 3, z_gate, at))));
    std::string part = gate(source, 0, resets_product ? candidate_gate : 0, at);
    if (resets_product) {
        const std::string r =
            define(source, "r", at, gated(0, sum(gate(source, 1, r_gate, at), gate(source, 0, r_gate, at))));
        if (has_input(3)) part = sum(part, source.read(input(3), {at[1]}));
        part = product(r, part);
    }
    const std::string candidate =
        define(source, "candidate", at, gated(1, sum(gate(source, 1, candidate_gate, at), part)));
    source.define(
        output(0), at,
        sum(product(fmt::format("strict_float(1 - {})", z), candidate), product(z, source.read(input(2), at))));
}

std::vector<Operator> recurrent_operators() {
    return {
        {"LstmCell", 1, make<LstmCell>, own_domain},
        {"RnnCell", 1, make<RnnCell>, own_domain},
        {"GruReset", 1, make<GruReset>, own_domain},
        {"GruCell", 1, make<GruCell>, own_domain},
    };
}

}  // namespace onnx2halide
