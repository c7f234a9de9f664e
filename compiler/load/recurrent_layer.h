#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/load/expansion.h"
#include "compiler/load/recurrent_activations.h"

namespace onnx2halide {

/// Expands RNN, GRU or LSTM to standard nodes: for each direction, one product of X with W for all time steps, then a
/// Scan over time whose body multiplies the state with R and computes the gates. Derived classes add text for the
/// current direction, whose name replaces each '$'.
class RecurrentLayer {
public:
    virtual ~RecurrentLayer() = default;

    OperatorBody expand();

protected:
    /// The operands and defaults of an operator.
    struct Form {
        std::vector<std::string> inputs, outputs, states;  // formal names; the states are "h" and, of an LSTM, "c"
        std::vector<std::string> default_activations;      // of one direction
    };

    /// Reads the attributes. Throws CompileError on the first one that is not supported.
    RecurrentLayer(const OperatorCall& call, Form form);

    /// Defines projected_$ = X * W, of shape [time, batch, gates * hidden], and recurrence_$ for write_product().
    virtual void write_projection();
    /// Defines bias_$, which is added to every row of projected_$. Only called if there is an input B.
    virtual void write_bias();
    /// Writes the body of the Scan, which computes new_h_$ and new_c_$ from h_$, c_$ and gates_$, the sum of
    /// projected_$ and bias_$ for one step.
    virtual void write_step() = 0;
    /// Adds result = state * weights to the body; the weights are recurrence_$ or some of its columns.
    virtual void write_product(const std::string& result, const std::string& state, const std::string& weights);

    void add(std::string_view text) { body_.add(in_direction(text)); }
    void add_step(std::string_view text) { step_ += in_direction(text) + "\n"; }
    /// Defines a scalar of X's type outside of the body.
    void add_scalar(std::string_view name, float value) { body_.add_scalar(in_direction(name), value, "X"); }
    /// Defines `result`, this direction's part of an input, without the axis of directions.
    void add_part(const std::string& result, const std::string& input, int axis = 0);
    bool is_first_direction() const { return direction_ == 0; }
    /// The text of a cell (see ops/product/recurrent_cell.h) in the body, with this layer's activation functions.
    std::string cell(const std::string& results, const std::string& type, const std::string& operands,
                     const std::string& attributes = "") const;
    bool has_input(std::string_view formal) const;

    const OperatorCall& call_;
    int hidden_axis_ = 2;  // the axis of R that counts the hidden units

private:
    std::string in_direction(std::string_view text) const;
    void write_input();
    void write_masks();
    void write_direction();
    void write_initial_state(const std::string& state);
    void write_scan();
    void write_next_states();
    void write_outputs();
    void write_output(const std::string& result, const std::string& part, int axis, const std::string& order);
    bool makes_sequence() const { return call_.has_output(0); }

    Form form_;
    std::vector<std::string> directions_;  // forward, reverse
    std::vector<Activation> activations_;  // of all directions in order
    bool batch_first_;
    OperatorBody body_;
    std::string step_;      // the body of the current direction's Scan
    size_t direction_ = 0;  // the current one
};

}  // namespace onnx2halide
