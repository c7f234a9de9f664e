#pragma once

#include "ops/elementwise.h"

namespace onnx2halide {

/// The functions of a recurrent layer's gates and state, as text. Attributes: `activations`, with an `activation_alpha`
/// and an `activation_beta` each, and `clip`, the largest magnitude of what functions of gates take, where there is
/// one.
class CellFunctions {
public:
    explicit CellFunctions(const Node& node);
    /// The function of this number, of an element that clip bounds; `activated` of any. Both are computed in `type`.
    std::string gated(size_t number, const std::string& x, ElementType type) const;
    std::string activated(size_t number, const std::string& x, ElementType type) const;

private:
    std::vector<std::string> activations_;
    std::vector<float> alphas_, betas_;
    float clip_;
};

/// The compiler's own operators for what one step of a recurrent layer does behind its product with the state: gates
/// and the new state, [batch, hidden]. Input 0 is that product, which their kernels compute as well. Attributes: those
/// of CellFunctions.
class RecurrentCell : public NodeGenerator {
public:
    explicit RecurrentCell(const Node& node) : NodeGenerator(node), functions_(node) {}
    std::vector<TensorType> infer() const override;
    void schedule(KernelSource& source) const override;
    bool can_compute_input(const Node& anchor) const override;
    bool keeps_input() const override { return true; }
    bool is_long() const override { return true; }

protected:
    /// The input that is the state.
    virtual size_t state_input() const = 0;

    /// Element `at` of a gate, of which input i has several side by side.
    std::string gate(KernelSource& source, size_t i, int number, const Coordinates& at) const;
    std::string gated(size_t number, const std::string& x) const { return functions_.gated(number, x, in(0).element); }
    std::string activated(size_t number, const std::string& x) const {
        return functions_.activated(number, x, in(0).element);
    }
    /// Defines a Func for a number at each place of the state, called as its role says. Returns its element at `at`.
    std::string define(KernelSource& source, const std::string& role, const Coordinates& at,
                       const std::string& element) const;

private:
    CellFunctions functions_;
};

/// RNN: the new h from the sum of all.
class RnnCell : public Elementwise {
public:
    explicit RnnCell(const Node& node) : Elementwise(node), functions_(node) {}
    bool is_long() const override { return true; }

protected:
    std::string expression(std::span<const std::string> operands) const override {
        return functions_.gated(0, operands[0], in(0).element);
    }

private:
    CellFunctions functions_;
};

/// LSTM: of the sums of its gates [batch, 4 * hidden] (i, o, f and c, see Lstm), the cells c and, where there are
/// peepholes, their weights [3 * hidden], it makes the new h and c. Attribute `input_forget`: f is 1 - i.
class LstmCell : public RecurrentCell {
public:
    using RecurrentCell::RecurrentCell;
    void algorithm(KernelSource& source) const override;

protected:
    size_t state_input() const override { return 1; }
};

/// GRU: of the product of h with R for the gates z and r [batch, 2 * hidden], the inputs' part of all gates
/// [batch, 3 * hidden], and h it makes r . h, which the product for the candidate takes.
class GruReset : public RecurrentCell {
public:
    using RecurrentCell::RecurrentCell;
    void algorithm(KernelSource& source) const override;

protected:
    size_t state_input() const override { return 2; }
};

/// GRU: of the product for the candidate, the inputs' part of all gates, h and the product for the gates z and r it
/// makes the new h. With `linear_before_reset` one product is for all gates, and input 3 the candidate's bias, which
/// may be missing.
class GruCell : public RecurrentCell {
public:
    using RecurrentCell::RecurrentCell;
    void algorithm(KernelSource& source) const override;

protected:
    size_t state_input() const override { return 2; }
};

}  // namespace onnx2halide
