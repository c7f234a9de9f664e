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

/// Thrown when a node needs elements of an input that are known only at run time. Inference replaces them by symbols,
/// where it can.
class UnknownElements : public CompileError {
public:
    UnknownElements(const Node& node, size_t input)
        : CompileError("input {} ('{}') must be known before run time", input, node.inputs[input]->name), input(input),
          value(node.inputs[input]) {}

    const size_t input;
    Value* const value;
};

/// The element types that an operator takes.
enum class Takes { floats, integers, numbers, booleans, anything };

/// The layout that a node requires for its tensors of rank 3 and more.
enum class LayoutNeed {
    any,            // its text follows the layouts of its values
    channels_last,  // fast only with channels innermost
    row_major,      // correct only in ONNX's order
};

/// A call of a function in runtime/: its name, its arguments before the tensors as C text, and the number of inputs and
/// outputs, including optional ones. A variable number of inputs may be passed as a list, after their count.
struct HostCall {
    std::string function;
    std::vector<std::string> arguments;
    size_t inputs = 1, outputs = 1;
    bool inputs_are_list = false;
    bool needs_re2 = false;  // the function is in runtime/regular_expressions.cc
};

/// A number from an operand that is an error at run time outside of [low, high].
struct Check {
    std::string what;  // `axis`
    Dim number, low, high;
    bool or_one = false;  // whether 1 is valid, too
};

/// An operand of indices into another tensor, which are an error at run time outside of [-extent, extent). If there are
/// several extents, they belong to the elements along the operand's last axis.
struct IndexCheck {
    size_t input;
    std::vector<Dim> extents;
};

/// Another node with the same outputs, in a kernel of its own, which is called at run time if it takes fewer cycles.
struct Alternative {
    std::string name;         // direct
    Node node;                // the outputs' producer remains the node that it may replace
    Dim cycles, node_cycles;  // of this node, and of the one that it may replace
};

/// Adjacent axes of output 0, from the first to the last.
struct AxisRun {
    size_t first, last;
    int shift = 0;                       // an operand's axis less that of output 0
    std::vector<size_t> operands = {0};  // the inputs that have these axes
};

/// One ONNX node as Halide source text. The constructor throws CompileError on the first attribute that it cannot
/// honour. After that every method is a pure function: the same node and target always yield the same text.
class NodeGenerator {
public:
    explicit NodeGenerator(const Node& node) : node_(node) {}
    NodeGenerator(const NodeGenerator&) = delete;
    virtual ~NodeGenerator() = default;

    // Types and checks. Asked by inference, before layouts are set. Any of these may throw CompileError.

    /// Type and shape of each output, in the operator's order, from the inputs' types. Dims may be expressions of
    /// symbols.
    virtual std::vector<TensorType> infer() const = 0;

    /// Elements of each output that inference can compute (small tensors, see KnownElements); may be shorter than the
    /// outputs.
    virtual std::vector<std::optional<KnownElements>> known() const { return {}; }

    /// What must be checked at run time before the node is computed: numbers, and tensors of indices.
    virtual std::vector<Check> checks() const { return {}; }
    virtual std::vector<IndexCheck> index_checks() const { return {}; }

    /// Whether the node accepts minifloats and packed integers as inputs and outputs. Most operators do not define
    /// them.
    virtual bool takes_packed_types() const { return false; }

    /// Whether the node accepts strings, which it may copy or compare. Kernels see them as numbers.
    virtual bool takes_strings() const { return takes_packed_types(); }

    /// Whether the node accepts values other than tensors (sequences, optionals and maps).
    virtual bool takes_non_tensors() const { return false; }

    // Text. Asked of kernels' nodes, after layouts are set.

    /// Whether the node is computed by a Halide kernel. Otherwise it is a `host_call` or control flow.
    virtual bool is_kernel() const { return true; }

    /// Writes the statements that define this node's outputs into the kernel.
    virtual void algorithm(KernelSource& source) const = 0;

    /// Writes the statements that schedule a kernel whose anchor is this node. By default, every output is vectorised
    /// along its innermost loop and parallel along its outermost; Funcs without a schedule are inlined.
    virtual void schedule(KernelSource& source) const;

    /// Another node that is faster for some of the sizes that are possible at run time; nullopt if there is none.
    virtual std::optional<Alternative> alternative() const { return std::nullopt; }

    /// Multiplications and additions of one run, each counted as one.
    virtual Dim flops() const;

    // Placement: which nodes share a kernel.

    /// Whether each output element depends only on the input elements at the same (broadcast) index, so that the node
    /// can be computed inside the loops of a neighbour.
    virtual bool is_pointwise() const { return false; }

    /// For a pointwise node, whether results also depend on the index itself, for instance because an attribute has one
    /// number per feature. The axes of such a node are never merged.
    virtual bool depends_on_index() const { return false; }

    /// For a pointwise node, the axis of output 0 to which the first axis of input i corresponds. By default, the last
    /// axes are aligned, as in numpy.
    virtual size_t first_axis(size_t i) const;

    /// For a pointwise node, whether attributes or operands name a certain axis of the result, such as the channels',
    /// whatever the number of axes after it.
    virtual bool has_own_axis() const { return node_.attributes.contains("axis"); }

    /// Whether an element takes many instructions and registers, such as an exponential.
    virtual bool is_expensive() const { return false; }

    /// Whether the loops of a kernel whose anchor is this node can also compute input 0, which the group of another
    /// anchor makes and only this node reads, and are no slower than two kernels.
    virtual bool can_compute_input(const Node&, const Target&) const { return false; }
    /// Whether they need all of input 0 first. It is then an output of the kernel, too, as planned memory is free at
    /// run time.
    virtual bool keeps_input() const { return false; }

    /// Whether an input is a scalar, such as a scale, that differs from layer to layer. If kernels differ only in such
    /// scalars, one kernel reads them, though they are constants. Other scalars stay literals, on which formulas may
    /// depend, such as that of a power.
    virtual bool is_layer_scalar(size_t) const { return false; }

    /// The axes of output 0 that are faster when they are merged into one, and those of the input that has them;
    /// nullopt if there are none. Asked after layouts are set.
    virtual std::optional<AxisRun> axes_gaining_as_one(const Target&) const { return std::nullopt; }

    // Layout: the order of elements in memory, and which values share it.

    virtual LayoutNeed layout_need() const { return LayoutNeed::any; }

    /// Whether input `i` is read at no extra cost in the layout that it has, whatever `layout_need` is.
    virtual bool reads_any_layout(size_t, const Target&) const { return false; }

    /// Whether writing output 0 in this layout costs about the same as in another, which saves its reader a conversion.
    /// Asked after the inputs' layouts are set.
    virtual bool writes(const Layout&, const Target&) const { return false; }

    /// For a node that only moves elements: output 0's axes in the order that they have in input 0's memory, innermost
    /// first. In this layout the output is a view, or a copy that reads and writes memory in nearly the same order.
    /// nullopt if there is no such order.
    virtual std::optional<Layout> memory_order() const { return std::nullopt; }

    /// Whether output 0 aliases input 0, with another shape. Asked after layouts are set.
    virtual bool is_view() const { return false; }
    /// Whether output 0 could alias input 0 in a run in which both have the same shape.
    virtual bool is_view_if_whole() const { return false; }

    /// The part of input 0's memory that could be output i, and the part of output 0's that could be input i, so that
    /// no copy is needed (see Part): its offset and row pitch, in elements. nullopt if there is none. Asked after
    /// layouts are set.
    struct Span {
        Dim offset;
        int64_t pitch;
    };
    virtual std::optional<Span> span_in_input(size_t) const { return std::nullopt; }
    virtual std::optional<Span> span_in_output(size_t) const { return std::nullopt; }

    /// Inputs that alias outputs (see Part), so that the node does not copy them.
    virtual std::vector<int64_t> inputs_in_place() const { return {}; }
    /// Whether no copies are left, so that the node needs no kernel.
    virtual bool is_elided() const { return false; }

    // Host.

    /// The call for a node that is computed by a function in runtime/, which sets the shapes of outputs whose extents
    /// are known only when it has run. Asked only if there is one.
    virtual HostCall host_call() const;

protected:
    const Node& node_;

    const Value* input(size_t i) const;   // throws CompileError if it is omitted
    const Value* output(size_t i) const;  // likewise
    bool has_input(size_t i) const { return node_.has_input(i); }
    bool has_output(size_t i) const { return node_.has_output(i); }
    const TensorType& in(size_t i) const { return input(i)->checked_type(); }
    const TensorType& out(size_t i) const { return output(i)->checked_type(); }

    /// Elements of an integer input as dims. Throws UnknownElements if they are known only at run time.
    const std::vector<Dim>& dims(size_t i) const;
    /// The only element of an integer input. Throws CompileError if it is not known, or there are several.
    const Dim& single_dim(size_t i) const;
    /// Elements of an integer input as numbers. Throws UnknownElements like `dims`, CompileError if one has symbols.
    std::vector<int64_t> integers(size_t i) const;
    /// Elements of a float input. Throws CompileError if they are known only at run time.
    std::vector<double> reals(size_t i) const;
    /// The only element of a float input. Throws CompileError if it is not known, or there are several.
    double single_real(size_t i) const;
    /// The shape of output 0 as given by input i or, if that is known only at run time, as declared by the model.
    /// Throws CompileError if neither is known, or the model declares another rank.
    std::vector<Dim> shape_operand(size_t i, std::optional<size_t> rank = {}) const;
    /// The elements of input i if they are known, else null.
    const KnownElements* known_input(size_t i) const;
    /// The same, including ratios. Only for known().
    const KnownElements* tracked_input(size_t i) const;

    /// Throws CompileError if the element type of input i is not that of input 0.
    void check_type_of_first(size_t i) const;
    /// Throws CompileError if the element type of input i is not among these.
    void check_element_type(Takes takes, size_t i = 0) const;

    /// Appends a check that input i has this extent along an axis, or 1 with `or_one`, unless that is certain.
    void check_extent(std::vector<Check>& checks, size_t i, size_t axis, const Dim& expected,
                      bool or_one = false) const;
    /// The same for the first `axes` axes of input i, which are broadcast to the axes of `result` from `first` on.
    void check_broadcast(std::vector<Check>& checks, size_t i, size_t axes, const std::vector<Dim>& result,
                         size_t first) const;

    /// Checks that axes are in [-rank, rank); none for numbers.
    static std::vector<Check> axis_checks(const std::vector<Dim>& axes, size_t rank);

private:
    void check_single(size_t i, size_t elements) const;
};

/// The producer of a value that is a view of its input, else null.
const Node* view_of(const Value* value);

/// The name of the symbol for an extent of a value that is known only when its node has run, such as a count of what it
/// found.
std::string extent_symbol_name(const Value& value, size_t axis);
/// The same for one of its elements.
std::string element_symbol_name(const Value& value, size_t i);
Dim extent_symbol(const Value& value, size_t axis, const Dim& max = Dim::unbounded);

/// Multidirectional (numpy) broadcasting. Throws CompileError if two dims can never be equal.
std::vector<Dim> broadcast(const std::vector<Dim>& a, const std::vector<Dim>& b);

/// One row of the table of operators.
struct Operator {
    std::string_view type;  // Conv
    int since;              // first opset (of its domain) whose version of the operator this row handles
    std::unique_ptr<NodeGenerator> (*make)(const Node& node);
    std::string_view domain = "";
};

template <typename T>
std::unique_ptr<NodeGenerator> make(const Node& node) {
    return std::make_unique<T>(node);
}

/// The row that handles this version of an operator, the one with the largest `since`; null if there is none.
const Operator* find_operator(std::string_view domain, std::string_view type, int version);

/// Every row, sorted by domain, type and first opset.
std::span<const Operator> all_operators();

/// Throws CompileError `unsupported operator` if there is no row.
std::unique_ptr<NodeGenerator> make_generator(const Node& node);

}  // namespace onnx2halide
