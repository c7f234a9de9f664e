#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/kernel_source.h"

namespace onnx2halide {

/// A node asks for elements of an input that only a run knows. Inference answers with symbols for them, where it can.
class UnknownElements : public CompileError {
public:
    UnknownElements(const Node& node, size_t input)
        : CompileError("input {} ('{}') must be known before run time", input, node.inputs[input]->name), input(input),
          value(node.inputs[input]) {}

    const size_t input;
    Value* const value;
};

/// The layout in which a node wants its tensors of rank 3 and more.
enum class LayoutNeed {
    any,            // its text follows whatever layouts its values have
    channels_last,  // fast only with channels innermost
    row_major,      // right only in ONNX's order
};

/// A call of a function in runtime/: its name, its arguments before the tensors as C text, and how many inputs and
/// outputs it has, with those that are optional. Any number of inputs may go as a list, after their count.
struct HostCall {
    std::string function;
    std::vector<std::string> arguments;
    size_t inputs = 1, outputs = 1;
    bool inputs_are_list = false;
    bool needs_re2 = false;  // the function is in runtime/regular_expressions.cc
};

/// A number that an operand gives and that a run refuses outside of [low, high].
struct Check {
    std::string what;  // `axis`
    Dim number, low, high;
    bool or_one = false;  // whether 1 is taken too
};

/// An operand whose elements number elements of another tensor: a run refuses those outside of [-extent, extent). Where
/// there are several extents they belong to the elements along the operand's last axis.
struct IndexCheck {
    size_t input;
    std::vector<Dim> extents;
};

/// Another node that makes the same outputs, in a kernel of its own that a run calls where it takes fewer cycles.
struct Alternative {
    std::string name;         // direct
    Node node;                // an output's producer remains the node for which it may stand
    Dim cycles, node_cycles;  // its own, and those of the node for which it may stand
};

/// One ONNX node as Halide source text. Made from its node, it throws CompileError on the first attribute that it
/// cannot honour. After that every method is a pure question: the same node and target always give the same text.
class NodeGenerator {
public:
    explicit NodeGenerator(const Node& node) : node_(node) {}
    NodeGenerator(const NodeGenerator&) = delete;
    virtual ~NodeGenerator() = default;

    /// Type and shape of each output, in the operator's order, from the inputs' types. Dims may be expressions over
    /// symbols.
    virtual std::vector<TensorType> infer() const = 0;

    /// Elements of each output where inference can know them (small tensors, see KnownElements); may be shorter than
    /// the outputs.
    virtual std::vector<std::optional<KnownElements>> known() const { return {}; }

    /// Writes the statements that define this node's outputs into the kernel.
    virtual void algorithm(KernelSource& source) const = 0;

    /// Writes the statements that schedule a kernel whose anchor is this node. By default every output is vectorised
    /// over its innermost loop and parallel over its outermost; Funcs without a schedule are computed where they are
    /// used.
    virtual void schedule(KernelSource& source) const;

    /// Whether each output element depends only on the elements at its own (broadcast) place, so that the node can be
    /// computed inside the loops of a neighbour.
    virtual bool is_pointwise() const { return false; }

    /// Of a node that is pointwise, whether an element's place counts, too, as where an attribute holds a number for
    /// each feature. Its axes are not made one.
    virtual bool depends_on_place() const { return false; }

    /// Of a node that is best for some sizes that a run may have, another for the others.
    virtual std::optional<Alternative> alternative() const { return std::nullopt; }

    /// Of a node that is pointwise, the axis of output 0 that the first axis of input i goes along. By default numpy's
    /// rule: the last axes agree.
    virtual size_t first_axis(size_t i) const;

    /// Whether its loops can compute input 0, too, which a kernel with this anchor makes for it alone.
    virtual bool can_compute_input(const Node&) const { return false; }
    /// Whether they then need all of input 0 first: it is an output of the kernel, too, since memory that is planned
    /// costs a run nothing.
    virtual bool keeps_input() const { return false; }

    /// Whether an input is a number that each layer has of its own, such as a scale: where it alone keeps kernels apart
    /// they read it, known or not. Other numbers stay literals, on which formulas may depend, as that of a power does.
    virtual bool is_parameter(size_t) const { return false; }

    /// Whether the node may read and make minifloats and packed integers. Most operators are not defined for them.
    virtual bool takes_tiny() const { return false; }

    /// Whether the node may move or compare strings, whose numbers kernels hold.
    virtual bool takes_strings() const { return takes_tiny(); }

    /// Whether the node may read and make values that are no tensors.
    virtual bool takes_boxes() const { return false; }

    /// Whether an element takes many instructions and registers, as a power of e does.
    virtual bool is_long() const { return false; }

    /// Whether its outputs come from a Halide kernel. Else `host_call` tells what runs, or it is control flow.
    virtual bool is_kernel() const { return true; }

    /// Of a node that a function in runtime/ computes, which gives outputs whose extents only it knows their shapes.
    virtual HostCall host_call() const;

    /// What a run has to check before the node is computed.
    virtual std::vector<Check> checks() const { return {}; }
    virtual std::vector<IndexCheck> index_checks() const { return {}; }

    /// Whether output 0 is input 0's memory under another shape. Asked after layouts are set.
    virtual bool is_view() const { return false; }

    /// Where output i lies in input 0's memory, in elements, and input i in output 0's: parts that need no copy (see
    /// Part), with the whole's own part as it is. Nothing where there are none. Asked after layouts are set.
    struct Span {
        Dim offset;
        int64_t pitch;
    };
    virtual std::optional<Span> span_in_input(size_t) const { return std::nullopt; }
    virtual std::optional<Span> span_in_output(size_t) const { return std::nullopt; }

    /// Inputs that lie in the same memory as outputs (see Part), and that the node leaves out.
    virtual std::vector<int64_t> inputs_in_place() const { return {}; }
    /// Whether its outputs are complete without it.
    virtual bool is_done() const { return false; }

    virtual LayoutNeed layout_need() const { return LayoutNeed::any; }

    /// Whether input `i` is read as it lies, at no cost, whatever layout the node wants for its tensors.
    virtual bool reads_as_it_lies(size_t, const Target&) const { return false; }

    /// Whether output 0 is written in this layout at about the same cost as in another, so that its reader needs no
    /// further step. Asked after its inputs' layouts are set.
    virtual bool writes(const Layout&, const Target&) const { return false; }

    /// Of a node that only moves elements: output 0's axes in the order in which input 0 has them in memory, innermost
    /// first. In this layout the output is a view, or a copy that reads and writes memory in nearly the same order.
    /// Nothing where there is no such order.
    virtual std::optional<Layout> memory_order() const { return std::nullopt; }

    /// Multiplications and additions of one run, each counted as one.
    virtual Dim flops() const;

protected:
    const Node& node_;

    const Value* input(size_t i) const;   // throws CompileError where it is omitted
    const Value* output(size_t i) const;  // likewise
    bool has_input(size_t i) const { return node_.has_input(i); }
    bool has_output(size_t i) const { return node_.has_output(i); }
    const TensorType& in(size_t i) const { return input(i)->checked_type(); }
    const TensorType& out(size_t i) const { return output(i)->checked_type(); }

    /// Elements of an integer input as dims. Throws CompileError where they are not known before run time.
    const std::vector<Dim>& dims(size_t i) const;
    /// The one element of an integer input. Throws CompileError where it is not known or not alone.
    const Dim& single_dim(size_t i) const;
    /// Elements as numbers. Throws where a symbol is among them.
    std::vector<int64_t> integers(size_t i) const;
    /// Elements of a float input; throws where they are not known.
    std::vector<double> reals(size_t i) const;
    /// The one element of a float input. Throws CompileError where it is not known or not alone.
    double single_real(size_t i) const;
    /// The shape of output 0 as input i gives it or, where that is not known before run time, as the model declares it.
    /// Throws CompileError where it is known from neither, or the model declares another rank.
    std::vector<Dim> shape_operand(size_t i, std::optional<size_t> rank = {}) const;
    /// The elements where they are known, else null.
    const KnownElements* known_input(size_t i) const;
    /// The same, or ratios: for known() alone.
    const KnownElements* tracked_input(size_t i) const;

    /// Throws CompileError where input i has another element type than input 0.
    void check_type_of_first(size_t i) const;

    /// A check that input i has this extent along an axis, or 1 where it is then broadcast; none where that is certain.
    void check_extent(std::vector<Check>& checks, size_t i, size_t axis, const Dim& expected,
                      bool or_one = false) const;
    /// The same for the first `axes` axes of input i, which are broadcast to those of `result` from `first` on.
    void check_broadcast(std::vector<Check>& checks, size_t i, size_t axes, const std::vector<Dim>& result,
                         size_t first) const;

    /// A check that an axis lies in [-rank, rank); none where it is a number.
    static std::vector<Check> axis_checks(const std::vector<Dim>& axes, size_t rank);

    /// An axis in [0, rank) from one in [-rank, rank). Throws CompileError outside of it.
    static size_t normalised_axis(int64_t axis, size_t rank);

private:
    void check_single(size_t i, size_t elements) const;
};

/// The node that makes a value as another shape of its input's memory, null where there is none.
const Node* view_of(const Value* value);

/// The symbol for an extent of a value that only its node knows, when it has run: a count of what it found.
std::string extent_symbol_name(const Value& value, size_t axis);
/// The same of one of its elements.
std::string element_symbol_name(const Value& value, size_t i);
Dim extent_symbol(const Value& value, size_t axis, const Dim& max = Dim::unbounded);

/// Multidirectional (numpy) broadcasting. Throws CompileError where two dims can never be equal.
std::vector<Dim> broadcast(const std::vector<Dim>& a, const std::vector<Dim>& b);

/// One row of the table of operators.
struct Operator {
    std::string_view type;  // Conv
    int since;              // first opset (of its domain) whose version of the operator this row reads
    std::unique_ptr<NodeGenerator> (*make)(const Node& node);
    std::string_view domain = "";
};

template <typename T>
std::unique_ptr<NodeGenerator> make(const Node& node) {
    return std::make_unique<T>(node);
}

/// The row that reads a node of this operator and version, or null. Rows with a larger `since` win over smaller ones.
const Operator* find_operator(std::string_view domain, std::string_view type, int version);

/// Every row, sorted by domain, type and first opset.
std::span<const Operator> all_operators();

/// Throws CompileError `unsupported operator` where there is no row.
std::unique_ptr<NodeGenerator> make_generator(const Node& node);

}  // namespace onnx2halide
