#include <fmt/format.h>

#include "compiler/load/recurrent_layer.h"

namespace onnx2halide {

namespace {

/// h = f(X * W + h * R + B)
class Rnn : public RecurrentLayer {
public:
    explicit Rnn(const OperatorCall& call)
        : RecurrentLayer(call, {{"X", "W", "R", "B", "sequence_lens", "initial_h"}, {"Y", "Y_h"}, {"h"}, {"Tanh"}}) {}

protected:
    void write_step() override {
        write_product("product_$", "h_$", "recurrence_$");
        add_step("sum_$ = Add(product_$, gates_$)");
        add_step(cell("new_h_$", "RnnCell", "sum_$"));
    }
};

/// Columns are those of the update gate z, the reset gate r and the candidate h:
///
///     z, r = f(...)
///     candidate = g(X * W + (r . h) * R + B), or g(X * W + B + r . (h * R + B)) with linear_before_reset
///     h = (1 - z) . candidate + z . h
class Gru : public RecurrentLayer {
public:
    explicit Gru(const OperatorCall& call)
        : RecurrentLayer(
              call, {{"X", "W", "R", "B", "sequence_lens", "initial_h"}, {"Y", "Y_h"}, {"h"}, {"Sigmoid", "Tanh"}}),
          resets_product_(call.integer("linear_before_reset", 0) != 0) {}

protected:
    void write_bias() override {
        if (!resets_product_) return RecurrentLayer::write_bias();
        add(R"(
            b_w_z_$, b_w_r_$, b_w_h_$, b_r_z_$, b_r_r_$, b_r_h_$ = Split<axis = 0, num_outputs = 6>(b_$)
            b_z_sum_$ = Add(b_w_z_$, b_r_z_$)
            b_r_sum_$ = Add(b_w_r_$, b_r_r_$)
            bias_$ = Concat<axis = 0>(b_z_sum_$, b_r_sum_$, b_w_h_$))");
    }

    void write_step() override { resets_product_ ? write_product_before_reset() : write_reset_before_product(); }

private:
    void write_product_before_reset() {
        write_product("product_$", "h_$", "recurrence_$");
        add_step(cell("new_h_$", "GruCell",
                      has_input("B") ? "product_$, gates_$, h_$, b_r_h_$" : "product_$, gates_$, h_$",
                      "linear_before_reset = 1"));
    }

    void write_reset_before_product() {
        add(R"(
            recurrence_z_$, recurrence_r_$, recurrence_h_$ = Split<axis = 1, num_outputs = 3>(recurrence_$)
            recurrence_zr_$ = Concat<axis = 1>(recurrence_z_$, recurrence_r_$))");
        write_product("product_$", "h_$", "recurrence_zr_$");
        add_step(cell("reset_h_$", "GruReset", "product_$, gates_$, h_$"));
        write_product("h_product_$", "reset_h_$", "recurrence_h_$");
        add_step(cell("new_h_$", "GruCell", "h_product_$, gates_$, h_$, product_$"));
    }

    bool resets_product_;
};

/// Columns are those of the input gate i, the output gate o, the forget gate f and the candidate c:
///
///     i, f = f(X * W + h * R + P . c + B), or f = 1 - i with input_forget
///     c = f . c + i . g(...)
///     o = f(X * W + h * R + P . new c + B)
///     h = o . h(c)
class Lstm : public RecurrentLayer {
public:
    explicit Lstm(const OperatorCall& call)
        : Lstm(call, {"X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"}) {}

protected:
    Lstm(const OperatorCall& call, std::vector<std::string> inputs)
        : RecurrentLayer(call, {std::move(inputs), {"Y", "Y_h", "Y_c"}, {"h", "c"}, {"Sigmoid", "Tanh", "Tanh"}}),
          couples_gates_(call.integer("input_forget", 0) != 0) {}

    void write_step() override {
        if (has_input("P")) add_part("p_$", "P");
        write_product("product_$", "h_$", "recurrence_$");
        add_step("sum_$ = Add(product_$, gates_$)");
        add_step(cell("new_h_$, new_c_$", "LstmCell", has_input("P") ? "sum_$, c_$, p_$" : "sum_$, c_$",
                      couples_gates_ ? "input_forget = 1" : ""));
    }

private:
    bool couples_gates_;
};

/// An LSTM whose W and R are integers, and transposed. For the products with them, X as a whole and the state of each
/// step are quantised, and the sums are scaled.
class DynamicQuantizeLstm : public Lstm {
public:
    explicit DynamicQuantizeLstm(const OperatorCall& call)
        : Lstm(call, {"X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P", "W_scale", "W_zero_point",
                      "R_scale", "R_zero_point"}) {
        hidden_axis_ = 1;
    }

protected:
    void write_projection() override {
        add_weights("W");
        add_weights("R");
        add(product("projected_$", "rows", "W"));
    }

    void write_product(const std::string& result, const std::string& state, const std::string&) override {
        add_step(product(result, state, "R"));
    }

private:
    void add_weights(const std::string& input) {
        add_part(input + "_quantised_$", input);
        add_part(input + "_scale_$", input + "_scale");
        add_part(input + "_zero_$", input + "_zero_point");
    }

    static std::string product(const std::string& result, const std::string& operand, const std::string& weights) {
        return fmt::format(R"(
            {0}_quantised, {0}_scale, {0}_zero = DynamicQuantizeLinear({1})
            {0}_integer = MatMulInteger({0}_quantised, {2}_quantised_$, {0}_zero, {2}_zero_$)
            {0}_float = Cast<to = 1>({0}_integer)
            {0}_scales = Mul({0}_scale, {2}_scale_$)
            {0} = Mul({0}_float, {0}_scales))",
                           result, operand, weights);
    }
};

template <typename Layer>
OperatorBody expand(const OperatorCall& call) {
    return Layer(call).expand();
}

}  // namespace

std::vector<ExpandedOperator> recurrent_expansions() {
    return {
        {"", "RNN", 1, expand<Rnn>},
        {"", "GRU", 1, expand<Gru>},
        {"", "LSTM", 1, expand<Lstm>},
        {microsoft_domain, "DynamicQuantizeLSTM", 1, expand<DynamicQuantizeLstm>},
    };
}

}  // namespace onnx2halide
