#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// The indices of the inputs of MoE and QMoE for one layer of the experts.
struct ExpertLayer {
    std::string_view name;
    int weights, bias;
    int scales = -1, zero_points = -1;  // of QMoE
};

/// A mixture of experts (Shazeer et al., 2017): for each token, a row, the weighted sum of the k experts with the
/// highest router probabilities. A loop over the experts computes each for its tokens only.
class Experts {
public:
    Experts(const OperatorCall& call, std::vector<std::string> inputs, ExpertLayer first, ExpertLayer second,
            ExpertLayer gate)
        : call_(call), body_{std::move(inputs), {"output"}, {}}, first_(first), second_(second), gate_(gate),
          activation_(call.string("activation_type", "relu")), fusion_(call.integer("swiglu_fusion", 0)) {
        call.refuse_flag("use_sparse_mixer");
        if (fusion_ < 0 || fusion_ > 2)
            throw CompileError("attribute swiglu_fusion is {}, expected 0, 1 or 2", fusion_);
        if (activation_ == "swiglu" && (fusion_ == 0) != has_gate())
            throw CompileError("swiglu_fusion is {} and fc3_experts_weights {}, expected one of both", fusion_,
                               has_gate() ? "given" : "missing");
    }

    OperatorBody make(std::string_view router_weights = "") {
        body_.add(R"(
            zero = Constant<value_ints = [0]>()
            one = Constant<value_ints = [1]>()
            last = Constant<value_ints = [-1]>()
            all = Constant<value_ints = [2147483647]>()
            two = Constant<value_ints = [2]>()
            nought = Constant<value_float = 0.0>()
            index_0 = Constant<value_int = 0>()
            index_1 = Constant<value_int = 1>()
            input_shape = Shape(input)
            width = Shape<start = -1>(input)
            rows_shape = Concat<axis = 0>(last, width)
            x = Reshape(input, rows_shape))");
        route(router_weights);
        for (const ExpertLayer& layer : layers()) dequantise(layer);
        add_loop();
        body_.add(R"(
            rows = CastLike(sums, input)
            output = Reshape(rows, input_shape))");
        return std::move(body_);
    }

private:
    bool has_gate() const { return call_.has_input(gate_.weights); }
    std::vector<ExpertLayer> layers() const {
        if (has_gate()) return {first_, second_, gate_};
        return {first_, second_};
    }
    const std::string& operand(int i) const { return body_.inputs[static_cast<size_t>(i)]; }

    /// Defines `experts`, the chosen ones for each token, and `shares`, their weights.
    void route(std::string_view router_weights) {
        body_.add(fmt::format(R"(
            scores = Cast<to = 1>(router_probs)
            probabilities = Softmax<axis = -1>(scores)
            count_row = Shape<start = -1>(router_probs)
            count = Squeeze(count_row, zero)
            k = Constant<value_ints = [{}]>()
            chosen, experts = TopK<axis = -1>(probabilities, k))",
                              call_.integer("k", 1)));
        std::string_view shares = "chosen";
        if (!router_weights.empty()) {
            body_.add(fmt::format(R"(
                given = GatherElements<axis = -1>({}, experts)
                given_shares = Cast<to = 1>(given))",
                                  router_weights));
            shares = "given_shares";
        }
        // In onnxruntime's QMoE the softmax is over the chosen experts only.
        const bool always = first_.scales >= 0 && router_weights.empty();
        if (!always && call_.integer("normalize_routing_weights", 0) == 0) {
            body_.add(fmt::format("shares = Identity({})", shares));
        } else {
            body_.add(fmt::format(R"(
                share_sum = ReduceSum({0}, last)
                shares = Div({0}, share_sum))",
                                  shares));
        }
    }

    /// The number of bits per weight of a layer.
    int64_t bits(const ExpertLayer& layer) const {
        const int64_t all = call_.integer("expert_weight_bits", 4);
        const int64_t bits = call_.integer(fmt::format("{}_expert_weight_bits", layer.name), all);
        if (bits != 2 && bits != 4 && bits != 8)
            throw CompileError("experts have weights of {} bits, expected 2, 4 or 8", bits);
        return bits;
    }

    /// Unpacks the elements in the bytes of `packed` along its last axis, as floats.
    void unpack(const std::string& result, const std::string& packed, int64_t bits, bool is_matrix) {
        if (bits == 8) return body_.add(fmt::format("{} = Cast<to = 1>({})", result, packed));
        std::vector<int64_t> shifts;
        for (int64_t shift = 0; shift < 8; shift += bits) shifts.push_back(shift);
        body_.add(fmt::format(R"(
            {0}_shifts = Constant<value = uint8[{2}] {{{3}}}>()
            {0}_mask = Constant<value = uint8[1] {{{4}}}>()
            {0}_bytes = Unsqueeze({1}, last)
            {0}_shifted = BitShift<direction = "RIGHT">({0}_bytes, {0}_shifts)
            {0}_low = BitwiseAnd({0}_shifted, {0}_mask)
            {0}_shape = Constant<value_ints = [{5}]>()
            {0}_codes = Reshape({0}_low, {0}_shape)
            {0} = Cast<to = 1>({0}_codes))",
                              result, packed, shifts.size(), fmt::join(shifts, ", "), (1 << bits) - 1,
                              is_matrix ? "0, -1" : "0, 0, -1"));
    }

    /// Defines the weights of a layer as floats, `W_fc1`. QMoE has scales and zero points per row or, with a block
    /// size, per block of a row.
    void dequantise(const ExpertLayer& layer) {
        if (layer.scales < 0) {
            body_.add(fmt::format("W_{} = Identity({})", layer.name, operand(layer.weights)));
            return;
        }
        if (!call_.has_input(layer.scales)) throw CompileError("input {} is missing", operand(layer.scales));
        const int64_t bits = this->bits(layer), block = call_.integer("block_size", 0);
        const std::string name(layer.name), codes = name + "_codes_of_weights", zeros = name + "_zeros";
        unpack(codes, operand(layer.weights), bits, false);
        body_.add(fmt::format(R"(
            {0}_blocks_shape = Constant<value_ints = [0, 0, -1, {1}]>()
            {0}_scales_shape = Constant<value_ints = [0, 0, -1, 1]>()
            {0}_rows_shape = Constant<value_ints = [0, 0, -1]>()
            {0}_rows = Reshape({2}, {0}_rows_shape)
            {0}_scale_numbers = Cast<to = 1>({3})
            {0}_scale = Reshape({0}_scale_numbers, {0}_scales_shape))",
                              name, block, codes, operand(layer.scales)));
        if (block > 0)
            body_.add(fmt::format("{0}_blocks = Reshape({0}_rows, {0}_blocks_shape)", name));
        else
            body_.add(fmt::format("{0}_blocks = Unsqueeze({0}_rows, two)", name));
        if (call_.has_input(layer.zero_points)) {
            // The last byte of a row may be partly filled.
            unpack(zeros + "_in_bytes", operand(layer.zero_points), bits, block <= 0);
            body_.add(fmt::format(R"(
                {0}_zeros_count = Shape<start = -1>({1})
                {2}_numbers = Slice({2}_in_bytes, zero, {0}_zeros_count, last)
                {2} = Reshape({2}_numbers, {0}_scales_shape))",
                                  name, operand(layer.scales), zeros));
        } else {
            body_.add(fmt::format("{} = Constant<value_float = {}.0>()", zeros, 1 << (bits - 1)));
        }
        body_.add(fmt::format(R"(
            {0}_centred = Sub({0}_blocks, {1})
            {0}_real = Mul({0}_centred, {0}_scale)
            {0}_whole = Reshape({0}_real, {0}_rows_shape)
            W_{0} = CastLike({0}_whole, input))",
                              name, zeros));
    }

    /// Adds a layer of expert `i` for its tokens: `fc1_i = x_i W' + b`.
    void add_layer(const ExpertLayer& layer, std::string_view x) {
        const bool has_bias = call_.has_input(layer.bias);
        body_.add(fmt::format("{0}_W_i = Gather(W_{0}, i)", layer.name));
        if (has_bias) body_.add(fmt::format("{0}_b_i = Gather({1}, i)", layer.name, operand(layer.bias)));
        body_.add(fmt::format("{0}_i = Gemm<transB = 1>({1}, {0}_W_i{2})", layer.name, x,
                              has_bias ? fmt::format(", {}_b_i", layer.name) : ""));
    }

    /// Defines `hidden`, the activation of the first layer's result.
    void activate() {
        if (activation_ == "swiglu") return add_swiglu();
        const std::string result = has_gate() ? "activated" : "hidden";
        if (activation_ == "relu")
            body_.add(result + " = Relu(fc1_i)");
        else if (activation_ == "gelu")
            body_.add(result + " = Gelu<approximate = \"tanh\">(fc1_i)");
        else if (activation_ == "silu")
            body_.add(fmt::format("sigmoid = Sigmoid(fc1_i)\n{} = Mul(fc1_i, sigmoid)", result));
        else if (activation_ == "identity")
            body_.add(result + " = Identity(fc1_i)");
        else
            throw CompileError("attribute activation_type is '{}', expected relu, gelu, silu, swiglu or identity",
                               activation_);
        if (has_gate()) body_.add("hidden = Mul(activated, fc3_i)");
    }

    /// g sigmoid(alpha g) (l + beta). The two parts may come from one product, interleaved or one after the other.
    void add_swiglu() {
        if (fusion_ == 0) body_.add("g_open = Identity(fc1_i)\nl_open = Identity(fc3_i)");
        if (fusion_ == 1)
            body_.add("g_open = Slice(fc1_i, zero, all, last, two)\nl_open = Slice(fc1_i, one, all, last, two)");
        if (fusion_ == 2) body_.add("g_open, l_open = Split<axis = -1, num_outputs = 2>(fc1_i)");
        const bool is_limited = call_.has("swiglu_limit");
        if (is_limited) {
            body_.add_scalar("high", call_.real("swiglu_limit", 0), "input");
            body_.add("low = Neg(high)");
        }
        body_.add(is_limited ? "g = Min(g_open, high)\nl = Clip(l_open, low, high)"
                             : "g = Identity(g_open)\nl = Identity(l_open)");
        body_.add_scalar("alpha", call_.real("activation_alpha", 1.0f), "input");
        body_.add_scalar("beta", call_.real("activation_beta", 0.0f), "input");
        body_.add(R"(
            steep = Mul(g, alpha)
            sigmoid = Sigmoid(steep)
            swish = Mul(g, sigmoid)
            moved = Add(l, beta)
            hidden = Mul(swish, moved))");
    }

    void add_loop() {
        body_.add(R"(
            x_shape = Shape(x)
            nothing = Expand(nought, x_shape)
            sums = Loop(count, , nothing) <body = expert (int64 i, bool on, float[tokens, features] sum)
                    => (bool goes_on, float[tokens_out, features_out] sum_out) {
                goes_on = Identity(on)
                is_chosen = Equal(experts, i)
                found = NonZero(is_chosen)
                places = Transpose(found)
                share = GatherND(shares, places)
                tokens_i = Gather(found, index_0)
                x_i = Gather(x, tokens_i))");
        add_layer(first_, "x_i");
        if (has_gate()) add_layer(gate_, "x_i");
        activate();
        add_layer(second_, "hidden");
        body_.add(R"(
                result = Cast<to = 1>(fc2_i)
                share_column = Unsqueeze(share, last)
                weighted = Mul(result, share_column)
                token_column = Unsqueeze(tokens_i, last)
                sum_out = ScatterND<reduction = "add">(sum, token_column, weighted)
            }>)");
    }

    const OperatorCall& call_;
    OperatorBody body_;
    const ExpertLayer first_, second_, gate_;
    const std::string activation_;
    const int64_t fusion_;
};

OperatorBody moe(const OperatorCall& call) {
    return Experts(call,
                   {"input", "router_probs", "fc1_experts_weights", "fc1_experts_bias", "fc2_experts_weights",
                    "fc2_experts_bias", "fc3_experts_weights", "fc3_experts_bias"},
                   {"fc1", 2, 3}, {"fc2", 4, 5}, {"fc3", 6, 7})
        .make();
}

OperatorBody quantised_moe(const OperatorCall& call) {
    const std::string type = call.string("quant_type", "int");
    if (type != "int") throw CompileError("attribute quant_type is '{}', expected int", type);
    if (call.integer("weights_prepacked", -1) == 1)
        throw CompileError("weights_prepacked is 1: they are laid out for one processor, expected 0");
    return Experts(call,
                   {"input", "router_probs", "fc1_experts_weights", "fc1_scales", "fc1_experts_bias",
                    "fc2_experts_weights", "fc2_scales", "fc2_experts_bias", "fc3_experts_weights", "fc3_scales",
                    "fc3_experts_bias", "fc1_zero_points", "fc2_zero_points", "fc3_zero_points", "router_weights"},
                   {"fc1", 2, 4, 3, 11}, {"fc2", 5, 7, 6, 12}, {"fc3", 8, 10, 9, 13})
        .make(call.has_input(14) ? "router_weights" : "");
}

}  // namespace

std::vector<ExpandedOperator> expert_expansions() {
    return {
        {microsoft_domain, "MoE", 1, moe},
        {microsoft_domain, "QMoE", 1, quantised_moe},
    };
}

}  // namespace onnx2halide
