#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/load/expansion.h"
#include "compiler/load/recurrent_activations.h"

namespace onnx2halide {

/// RNN, GRU or LSTM as standard nodes: for each direction one product of X with W for all time steps, then a Scan over
/// time whose body multiplies the state with R and computes the gates. Text is written once for every direction: in
/// what derived classes add, '$' stands for the name of the current one.
class RecurrentLayer {
public:
    virtual ~RecurrentLayer() = default;

    OperatorBody expand();

protected:
    struct Form {
        std::vector<std::string> inputs, outputs, states;  // formal names; states are "h", and "c" of an LSTM
        std::vector<std::string> default_activations;      // of one direction
    };

    /// Reads the attributes. Throws CompileError on the first one that cannot be honoured.
    RecurrentLayer(const OperatorCall& call, Form form);

    /// Defines projected_$, which is X * W in rows of all gates, shaped [time, batch, gates * hidden], and
    /// recurrence_$ for write_product().
    virtual void write_projection();
    /// Defines bias_$, which belongs to every row of projected_$. Asked where there is an input B.
    virtual void write_bias();
    /// Writes the body of the Scan: from h_$, c_$ and gates_$, a row of projected_$ and bias_$, to new_h_$ and new_c_$.
    virtual void write_step() = 0;
    /// For the body: result = state * weights, which are recurrence_$ or some of its columns.
    virtual void write_product(const std::string& result, const std::string& state, const std::string& weights);

    void add(std::string_view text) { body_.add(in_direction(text)); }
    void add_step(std::string_view text) { step_ += in_direction(text) + "\n"; }
    /// A scalar of X's type, defined outside of the body.
    void add_scalar(std::string_view name, float value) { body_.add_scalar(in_direction(name), value, "X"); }
    /// `result` is this direction's part of an input, without the axis of directions.
    void add_part(const std::string& result, const std::string& input, int axis = 0);
    bool is_first_direction() const { return direction_ == 0; }
    /// For the body: what a cell (see ops/recurrent_cell.h) makes of operands, with this layer's activation functions.
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
    std::vector<Activation> activations_;  // of the directions, one after the other
    bool batch_first_;
    OperatorBody body_;
    std::string step_;      // the body of the current direction's Scan
    size_t direction_ = 0;  // the current one
};

}  // namespace onnx2halide
