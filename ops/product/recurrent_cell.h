#pragma once

#include "ops/elementwise/elementwise.h"

namespace onnx2halide {

/// The functions of a recurrent layer's gates and state, as text. Attributes: `activations`, each with an
/// `activation_alpha` and an `activation_beta`, and optionally `clip`, the bound on the magnitude of the gates'
/// operands.
class CellFunctions {
public:
    explicit CellFunctions(const Node& node);
    /// The function of this number applied to an element that is clipped (`gated`) or not. Both are computed in `type`.
    std::string gated(size_t number, const std::string& x, ElementType type) const;
    std::string activated(size_t number, const std::string& x, ElementType type) const;

private:
    std::vector<std::string> activations_;
    std::vector<float> alphas_, betas_;
    float clip_;
};

/// The compiler's own operators for the part of a recurrent step after its product with the state: gates and the new
/// state, [batch, hidden]. Input 0 is that product, which the same kernel computes as well. Attributes: those of
/// CellFunctions.
class RecurrentCell : public NodeGenerator {
public:
    explicit RecurrentCell(const Node& node) : NodeGenerator(node), functions_(node) {}
    std::vector<TensorType> infer() const override;
    void schedule(KernelSource& source) const override;
    bool can_compute_input(const Node& anchor, const Target&) const override;
    bool keeps_input() const override { return true; }
    bool is_expensive() const override { return true; }

protected:
    /// The index of the input that is the state.
    virtual size_t state_input() const = 0;

    /// Element `at` of a gate; input i holds several gates side by side.
    std::string gate(KernelSource& source, size_t i, int number, const Coordinates& at) const;
    std::string gated(size_t number, const std::string& x) const { return functions_.gated(number, x, in(0).element); }
    std::string activated(size_t number, const std::string& x) const {
        return functions_.activated(number, x, in(0).element);
    }
    /// Defines a Func with a number for each element of the state, named after its role. Returns its element at `at`.
    std::string define(KernelSource& source, const std::string& role, const Coordinates& at,
                       const std::string& element) const;

private:
    CellFunctions functions_;
};

/// RNN: computes the new h from the sum of all terms.
class RnnCell : public Elementwise {
public:
    explicit RnnCell(const Node& node) : Elementwise(node), functions_(node) {}
    bool is_expensive() const override { return true; }

protected:
    std::string expression(std::span<const std::string> operands) const override {
        return functions_.gated(0, operands[0], in(0).element);
    }

private:
    CellFunctions functions_;
};

/// LSTM: computes the new h and c from the sums of the gates [batch, 4 * hidden] (i, o, f and c, see Lstm), the cells c
/// and, optionally, the weights of peepholes [3 * hidden]. Attribute `input_forget`: f is 1 - i.
class LstmCell : public RecurrentCell {
public:
    using RecurrentCell::RecurrentCell;
    void algorithm(KernelSource& source) const override;

protected:
    size_t state_input() const override { return 1; }
};

/// GRU: computes r . h, the operand of the candidate's product, from the product of h with R for the gates z and r
/// [batch, 2 * hidden], the inputs' part of all gates [batch, 3 * hidden], and h.
class GruReset : public RecurrentCell {
public:
    using RecurrentCell::RecurrentCell;
    void algorithm(KernelSource& source) const override;

protected:
    size_t state_input() const override { return 2; }
};

/// GRU: computes the new h from the candidate's product, the inputs' part of all gates, h, and the product for the
/// gates z and r. With `linear_before_reset` one product covers all gates, and input 3 is the candidate's bias, which
/// may be omitted.
class GruCell : public RecurrentCell {
public:
    using RecurrentCell::RecurrentCell;
    void algorithm(KernelSource& source) const override;

protected:
    size_t state_input() const override { return 2; }
};

}  // namespace onnx2halide
