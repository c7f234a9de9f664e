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
        add_gate(0, "new_h_$", "sum_$");
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

    void write_step() override {
        add_step("x_z_$, x_r_$, x_h_$ = Split<axis = -1, num_outputs = 3>(gates_$)");
        resets_product_ ? write_product_before_reset() : write_reset_before_product();
        add_gate(1, "candidate_$", "h_sum_$");
        if (is_first_direction()) add_scalar("one", 1.0f);
        add_step(R"(
            rest_$ = Sub(one, z_$)
            taken_$ = Mul(rest_$, candidate_$)
            kept_$ = Mul(z_$, h_$)
            new_h_$ = Add(taken_$, kept_$))");
    }

private:
    void write_product_before_reset() {
        write_product("product_$", "h_$", "recurrence_$");
        add_step("h_z_$, h_r_$, h_product_$ = Split<axis = -1, num_outputs = 3>(product_$)");
        write_gates();
        add_step(has_input("B") ? "h_h_$ = Add(h_product_$, b_r_h_$)" : "h_h_$ = Identity(h_product_$)");
        add_step(R"(
            h_reset_$ = Mul(r_gate_$, h_h_$)
            h_sum_$ = Add(x_h_$, h_reset_$))");
    }

    void write_reset_before_product() {
        add(R"(
            recurrence_z_$, recurrence_r_$, recurrence_h_$ = Split<axis = 1, num_outputs = 3>(recurrence_$)
            recurrence_zr_$ = Concat<axis = 1>(recurrence_z_$, recurrence_r_$))");
        write_product("product_$", "h_$", "recurrence_zr_$");
        add_step("h_z_$, h_r_$ = Split<axis = -1, num_outputs = 2>(product_$)");
        write_gates();
        add_step("reset_h_$ = Mul(r_gate_$, h_$)");
        write_product("h_product_$", "reset_h_$", "recurrence_h_$");
        add_step("h_sum_$ = Add(x_h_$, h_product_$)");
    }

    void write_gates() {
        add_step(R"(
            z_sum_$ = Add(x_z_$, h_z_$)
            r_sum_$ = Add(x_r_$, h_r_$))");
        add_gate(0, "z_$", "z_sum_$");
        add_gate(0, "r_gate_$", "r_sum_$");
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
        if (has_input("P")) {
            add_part("p_$", "P");
            add("p_i_$, p_o_$, p_f_$ = Split<axis = 0, num_outputs = 3>(p_$)");
        }
        write_product("product_$", "h_$", "recurrence_$");
        add_step(R"(
            sum_$ = Add(product_$, gates_$)
            i_sum_$, o_sum_$, f_sum_$, c_sum_$ = Split<axis = -1, num_outputs = 4>(sum_$))");
        write_gate("i", "c_$");
        if (couples_gates_) {
            if (is_first_direction()) add_scalar("one", 1.0f);
            add_step("f_$ = Sub(one, i_$)");
        } else {
            write_gate("f", "c_$");
        }
        add_gate(1, "candidate_$", "c_sum_$");
        add_step(R"(
            kept_$ = Mul(f_$, c_$)
            taken_$ = Mul(i_$, candidate_$)
            new_c_$ = Add(kept_$, taken_$))");
        write_gate("o", "new_c_$");
        add_activation(2, "c_out_$", "new_c_$");
        add_step("new_h_$ = Mul(o_$, c_out_$)");
    }

private:
    /// i_$, o_$ or f_$, which may look at a cell through its peephole.
    void write_gate(const std::string& gate, const std::string& cell) {
        std::string sum = gate + "_sum_$";
        if (has_input("P")) {
            add_step(gate + "_peep_$ = Mul(p_" + gate + "_$, " + cell + ")\n" +  //
                     gate + "_all_$ = Add(" + sum + ", " + gate + "_peep_$)");
            sum = gate + "_all_$";
        }
        add_gate(0, gate + "_$", sum);
    }

    bool couples_gates_;
};

/// An LSTM whose W and R are integers, transposed. X as a whole, and the state at each step, are quantised for the
/// products with them, which are scaled back.
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
        {"com.microsoft", "DynamicQuantizeLSTM", 1, expand<DynamicQuantizeLstm>},
    };
}

}  // namespace onnx2halide
