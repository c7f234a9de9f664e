#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/graph/domains.h"
#include "compiler/graph/error.h"
#include "compiler/graph/ratio.h"
#include "compiler/graph/string_table.h"
#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

class Graph;
struct Node;

/// The elements of a constant tensor: row-major and little-endian, like ONNX's raw_data, except that elements of packed
/// types take a byte each and strings are represented by their numbers in the graph's StringTable.
struct Constant {
    ElementType element = ElementType::undefined;
    std::vector<int64_t> shape;
    std::shared_ptr<const std::vector<std::byte>> data;
    std::vector<std::string> strings;  // their texts, if `element` is string

    /// The elements as T, which must be the C type of `element`.
    template <typename T>
    std::span<const T> as() const {
        return {reinterpret_cast<const T*>(data->data()), data->size() / sizeof(T)};
    }
    int64_t elements() const;
    TensorType type() const { return {element, std::vector<Dim>(shape.begin(), shape.end())}; }
    /// The elements of any integer, bool or float type, converted.
    std::vector<int64_t> integers() const;
    std::vector<double> reals() const;
};

/// Makes a constant from elements whose C type is that of `element`.
template <typename T>
Constant make_constant(ElementType element, std::vector<int64_t> shape, const std::vector<T>& elements) {
    const auto* bytes = reinterpret_cast<const std::byte*>(elements.data());
    return {element,
            std::move(shape),
            std::make_shared<std::vector<std::byte>>(bytes, bytes + elements.size() * sizeof(T)),
            {}};
}

/// The elements of a small tensor (`limit` or fewer), where inference can compute them: integers and bools as dims,
/// floats as doubles. Kernels contain them as literals, so nodes that only compute shapes vanish from the program.
struct KnownElements {
    static constexpr size_t limit = 64;
    std::vector<Dim> integers;       // of integer and bool tensors
    std::vector<double> reals;       // of float tensors
    std::vector<Ratio> ratios = {};  // of float tensors that depend on open dims
    size_t size() const { return integers.size() + reals.size() + ratios.size(); }
    bool operator==(const KnownElements&) const = default;
};

/// Makes a constant of strings, which it adds to the graph's table.
Constant make_constant(StringTable& table, std::vector<int64_t> shape, std::vector<std::string> strings);

/// A symbol that gets its value at run time, from an extent or an element of the tensor that it is bound to.
struct Binding {
    enum class Kind { extent, element };
    std::string symbol;
    Kind kind;
    size_t index;  // of the axis, or of the element in row-major order
};

struct Value;

/// The position of a tensor that is a part of another one in memory. Its rows, the elements along its innermost axis,
/// are `pitch` elements apart, as are the longer rows of the whole; in all other respects its layout is dense.
struct Part {
    const Value* whole;  // not a part itself
    Dim offset;          // of the first element, in elements
    int64_t pitch;       // from one row to the next, in elements; the length of a row if the part is dense
};

/// A tensor that flows along an edge of the graph. Its type is set once, by inference.
struct Value {
    std::string name;                      // the name in the model, unique in its graph
    std::optional<TensorType> type;        // always set after inference
    std::optional<TensorType> declared;    // by the model, to be checked; open dims are symbols of their own
    std::optional<TensorType> port;        // of an input or output that has another type for the caller
    std::optional<Constant> constant;      // of an initialiser or a folded value
    std::optional<KnownElements> known;    // see KnownElements
    std::optional<KnownElements> tracked;  // instead of `known`, ratios for inference only: kernels compute these
    bool can_be_folded = false;            // depends on constants only; inference computes it if it needs the elements
    size_t duplicate_index = 0;            // its index among the model's values whose names make the same identifier
    bool is_passed_to_kernels = false;     // known, but read by kernels, so that one kernel serves several such numbers
    std::optional<Part> part;              // of a value that is written directly into another
    std::vector<Binding> bindings;         // symbols that are bound to this value
    Node* producer = nullptr;              // null for inputs and constants
    std::vector<Node*> consumers;          // once for each use

    bool is_constant() const { return constant.has_value(); }
    /// The pitch of the rows of a part, if it has several and they are not dense; else nullopt.
    std::optional<int64_t> pitch() const;
    const TensorType& checked_type() const;  // throws std::logic_error before inference
    /// The type of an input or output of the graph as the caller sees it.
    const TensorType& port_type() const { return port ? *port : checked_type(); }
};

/// The value of an attribute. Only the compiler's own nodes have a TensorType.
using Attribute = std::variant<int64_t, float, std::string, Constant, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, std::shared_ptr<Graph>, TensorType>;

/// One operator applied to values.
struct Node {
    std::string name;     // the name in the model, or that of its first output
    std::string domain;   // "" is ONNX's own
    std::string op_type;  // Conv
    int version = 1;      // since_version of the operator in the model's opset
    int index =
        0;  // in the model's list of nodes; for the compiler's own nodes, that of the node they serve, or a later one
    std::map<std::string, Attribute> attributes;  // including the schema's defaults
    std::vector<Value*> inputs;                   // null where an optional one is omitted
    std::vector<Value*> outputs;                  // null where an optional one is omitted
    std::string origin = "";  // the label of the model's node that the compiler replaced by this one

    bool has_input(size_t i) const { return i < inputs.size() && inputs[i]; }
    bool has_output(size_t i) const { return i < outputs.size() && outputs[i]; }
    bool has(const std::string& attribute) const { return attributes.contains(attribute); }

    /// The value of an attribute. Throws CompileError if it has another type, or if it is missing and there is no
    /// `otherwise`.
    int64_t integer(const std::string& attribute) const;
    int64_t integer(const std::string& attribute, int64_t otherwise) const;
    float real(const std::string& attribute) const;
    float real(const std::string& attribute, float otherwise) const;
    const std::string& string(const std::string& attribute) const;
    std::string string(const std::string& attribute, const std::string& otherwise) const;
    std::vector<int64_t> integers(const std::string& attribute) const;
    std::vector<int64_t> integers(const std::string& attribute, std::vector<int64_t> otherwise) const;
    std::vector<float> reals(const std::string& attribute) const;
    std::vector<std::string> strings(const std::string& attribute) const;  // empty if it is missing
    const Constant& tensor(const std::string& attribute) const;
    Graph& graph(const std::string& attribute) const;

    /// The graphs among its attributes: branches or a body.
    std::vector<Graph*> subgraphs() const;

    /// `Conv`, or `com.example.Fancy` in a domain other than ONNX's own.
    std::string qualified_op() const;
    /// `node 'conv1' (Conv)`, for messages. For a node that replaces one of the model's, that node's label.
    std::string label() const;
    /// Makes it another operator, by default one of the compiler's own; its label stays that of the model's node.
    void become(const std::string& op_type, int version = 1, const std::string& domain = own_domain);
};

/// A model's nodes in topological order, and the values between them. A subgraph, inside an If, Loop or Scan, has
/// values of its own: those that it captures from the outer graph are the last inputs of the node and, in the same
/// order, of the subgraph.
class Graph {
public:
    std::string name;
    std::vector<Value*> inputs;  // without initialisers
    std::vector<Value*> outputs;
    std::map<std::string, Dim> symbols;                                      // the open dims by name, with their bounds
    int opset = 0;                                                           // of ONNX's own domain
    std::shared_ptr<StringTable> strings = std::make_shared<StringTable>();  // one per model

    Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    /// The value of this name, created if there is none.
    Value* value(const std::string& name);
    Value* find(const std::string& name) const;
    /// A new value whose name starts with `hint`.
    Value* new_value(const std::string& hint);

    const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
    /// The nodes at this moment, for loops that change the graph.
    std::vector<Node*> snapshot() const;
    /// An index that no node of the graph has or had.
    int next_index() const { return next_index_; }
    /// Adds a node before `before` (null: at the end) and links its values.
    Node* add(Node node, const Node* before = nullptr);
    /// The node that follows `node`, or null if that is the last. If `node` is null, the first node.
    const Node* after(const Node* node) const;
    /// Removes a node. Its outputs, which must be unused, lose their producer.
    void remove(Node* node);
    /// Replaces `from` by `to` in the inputs of all nodes and in the graph's outputs. An output keeps its public name,
    /// see `output_names`.
    void replace_uses(Value* from, Value* to);
    void set_input(Node* node, size_t i, Value* value);
    bool is_output(const Value* value) const;
    /// The values of the graph, without those of subgraphs.
    const std::unordered_map<std::string, std::unique_ptr<Value>>& values() const { return values_; }

    std::vector<std::string> output_names;  // public names, in the order of `outputs`, whose values passes may replace

private:
    using Nodes = std::list<std::unique_ptr<Node>>;

    Nodes nodes_;
    std::unordered_map<const Node*, Nodes::iterator> places_;  // of nodes_
    std::unordered_map<std::string, std::unique_ptr<Value>> values_;
    std::unordered_map<std::string, int> next_numbers_;  // the least that may be free, by the hint of a value's name
    int next_index_ = 0;
};

/// The first axis among the inputs that has an open dim as its extent, which gives the dim its value at run time.
struct OpenDim {
    std::string symbol;
    Dim dim;  // with its bounds
    size_t input, axis;
};
std::vector<OpenDim> open_dims(const Graph& graph);

/// A deep copy, subgraphs included.
std::shared_ptr<Graph> clone(const Graph& graph);

/// Inserts copies of the nodes of `inner` before `before`, with `inputs` in place of its inputs. Returns the values in
/// place of its outputs.
std::vector<Value*> inline_graph(Graph& graph, const Node* before, const Graph& inner,
                                 const std::vector<Value*>& inputs);

/// Adds copies of nodes of another graph. `copies` maps the original values to their copies: on entry those that the
/// nodes read, on return also those that they make.
void copy_nodes(Graph& graph, const std::vector<Node*>& nodes, std::map<const Value*, Value*>& copies);

/// Calls `visit` for each subgraph, innermost first, and then for the graph itself.
void for_each_graph(Graph& graph, const std::function<void(Graph&)>& visit);

/// The number of elements in all constants, those of subgraphs included. One that subgraphs capture counts once.
int64_t constant_elements(Graph& graph);

}  // namespace onnx2halide
