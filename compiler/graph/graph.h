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

#include "compiler/graph/error.h"
#include "compiler/graph/ratio.h"
#include "compiler/graph/string_table.h"
#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

class Graph;
struct Node;

/// The elements of a constant tensor, row-major and little-endian, as ONNX's raw_data, but those of packed types a byte
/// each and of strings their numbers in the graph's StringTable.
struct Constant {
    ElementType element = ElementType::undefined;
    std::vector<int64_t> shape;
    std::shared_ptr<const std::vector<std::byte>> data;
    std::vector<std::string> strings;

    /// The elements as T, which must be the C type of `element`.
    template <typename T>
    std::span<const T> as() const {
        return {reinterpret_cast<const T*>(data->data()), data->size() / sizeof(T)};
    }
    int64_t elements() const;
    TensorType type() const { return {element, std::vector<Dim>(shape.begin(), shape.end())}; }
    /// Elements converted, whatever the (integer, bool or float) type.
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

/// Elements of a small tensor (up to 64) that inference knows: integers and bools as dims, floats as doubles.
/// Kernels print them as literals, so whatever only computes shapes vanishes from the program.
struct KnownElements {
    static constexpr size_t limit = 64;
    std::vector<Dim> integers;       // of integer and bool tensors
    std::vector<double> reals;       // of float tensors
    std::vector<Ratio> ratios = {};  // of float tensors that follow from open dims
    size_t size() const { return integers.size() + reals.size() + ratios.size(); }
    bool operator==(const KnownElements&) const = default;
};

/// Makes a constant of strings, which are entered in the graph's table.
Constant make_constant(StringTable& table, std::vector<int64_t> shape, std::vector<std::string> strings);

/// A symbol whose number only a run knows: an extent of a value, or one of its elements.
struct Binding {
    enum class Kind { extent, element };
    std::string symbol;
    Kind kind;
    size_t index;  // the axis, or the element's place in row-major order
};

struct Value;

/// Where a tensor lies in another one's memory. Its runs of elements along its innermost axis lie there as far apart as
/// those of the whole, which has more, and otherwise follow each other as ever.
struct Part {
    const Value* whole;  // that is no part itself
    Dim offset;          // of the first element, in elements
    int64_t pitch;       // from one run to the next; the length of one where it is dense
};

/// A tensor that flows along an edge of the graph. Its type is set once, by inference.
struct Value {
    std::string name;                     // ONNX's name, unique in its graph
    std::optional<TensorType> type;       // after inference always set
    std::optional<TensorType> declared;   // what the model says of it, to be checked; dims may be symbols of their own
    std::optional<TensorType> port;       // of an input or output of the graph whose type outside is another
    std::optional<Constant> constant;     // of an initialiser or a folded value
    std::optional<KnownElements> known;   // see KnownElements
    std::optional<KnownElements> ratios;  // in place of `known`, to inference alone: kernels compute them
    bool can_be_folded = false;     // it follows from constants, and inference computes it where its elements matter
    size_t namesake = 0;            // its place among the model's values whose names make the same identifier
    bool is_read = false;           // of a known number that kernels read, so that those for others are equal
    std::optional<Part> part;       // of a value that is made in its place in another
    std::vector<Binding> bindings;  // symbols that a run reads off this value
    Node* producer = nullptr;       // null for inputs and constants
    std::vector<Node*> consumers;   // once for each use

    bool is_constant() const { return constant.has_value(); }
    /// From one run along the innermost axis to the next, where these do not follow each other.
    std::optional<int64_t> pitch() const;
    const TensorType& checked_type() const;  // throws std::logic_error before inference
    /// The type of an input or output of the graph as the model has it.
    const TensorType& port_type() const { return port ? *port : checked_type(); }
};

using Attribute = std::variant<int64_t, float, std::string, Constant, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, std::shared_ptr<Graph>, TensorType>;

/// One operator applied to values.
struct Node {
    std::string name;                             // ONNX's name or, where it has none, its first output's
    std::string domain;                           // "" is ONNX's own
    std::string op_type;                          // Conv
    int version = 1;                              // since_version of the operator in the model's opset
    int index = 0;                                // place in the model's list of nodes
    std::map<std::string, Attribute> attributes;  // defaults of the schema filled in
    std::vector<Value*> inputs;                   // null where an optional one is omitted
    std::vector<Value*> outputs;                  // null where an optional one is not asked for
    std::string origin = "";  // the label of the model's node in whose place the compiler put this one

    bool has_input(size_t i) const { return i < inputs.size() && inputs[i]; }
    bool has_output(size_t i) const { return i < outputs.size() && outputs[i]; }
    bool has(const std::string& attribute) const { return attributes.contains(attribute); }

    /// The attribute's value. Throws CompileError where it is missing or of another type.
    int64_t integer(const std::string& attribute) const;
    int64_t integer(const std::string& attribute, int64_t otherwise) const;
    float real(const std::string& attribute) const;
    float real(const std::string& attribute, float otherwise) const;
    const std::string& string(const std::string& attribute) const;
    std::string string(const std::string& attribute, const std::string& otherwise) const;
    std::vector<int64_t> integers(const std::string& attribute) const;
    std::vector<int64_t> integers(const std::string& attribute, std::vector<int64_t> otherwise) const;
    std::vector<float> reals(const std::string& attribute) const;
    std::vector<std::string> strings(const std::string& attribute) const;  // none where it is missing
    const Constant& tensor(const std::string& attribute) const;
    Graph& graph(const std::string& attribute) const;

    /// The graphs that it runs: a branch, a body.
    std::vector<Graph*> subgraphs() const;

    /// `Conv`, or `com.example.Fancy` of another domain than ONNX's own.
    std::string qualified_op() const;
    /// `node 'conv1' (Conv)`, as messages say it: of the model's node where this one is the compiler's own.
    std::string label() const;
};

/// A model's nodes in topological order, and the values between them. A graph inside a node (If, Loop, Scan) stands for
/// itself: what it reads of the graph around it are further inputs of the node and, in the same order, of the graph.
class Graph {
public:
    std::string name;
    std::vector<Value*> inputs;  // without initialisers
    std::vector<Value*> outputs;
    std::map<std::string, Dim> symbols;  // named dims that stay open, with their bounds
    int opset = 0;                       // of ONNX's own domain
    std::shared_ptr<StringTable> strings = std::make_shared<StringTable>();  // that of the model

    Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    /// The value of this name, made if there is none.
    Value* value(const std::string& name);
    Value* find(const std::string& name) const;
    /// A new value whose name starts with `hint`.
    Value* new_value(const std::string& hint);

    const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
    /// An index that no node of the graph has or had.
    int next_index() const { return next_index_; }
    /// Adds a node before `before` (null: at the end) and links its values.
    Node* add(Node node, const Node* before = nullptr);
    /// The node behind one, null behind the last; the first node where there is none.
    const Node* after(const Node* node) const;
    /// Removes a node; its outputs, which nobody may use any more, lose their producer.
    void remove(Node* node);
    /// Lets every consumer of `from` and the graph's outputs read `to` instead. An output keeps its public name by
    /// its place in `outputs`, see `output_names`.
    void replace_uses(Value* from, Value* to);
    void set_input(Node* node, size_t i, Value* value);
    bool is_output(const Value* value) const;
    /// Elements of all constants together.
    int64_t constant_elements() const;

    std::vector<std::string> output_names;  // public names; a pass may put another value behind one

private:
    std::list<std::unique_ptr<Node>> nodes_;
    std::unordered_map<std::string, std::unique_ptr<Value>> values_;
    int next_index_ = 0;
};

/// Where a run reads an open dim off the inputs: the first axis that has it.
struct OpenDim {
    std::string symbol;
    Dim dim;  // with its bounds
    size_t input, axis;
};
std::vector<OpenDim> open_dims(const Graph& graph);

/// A graph of nodes and values of its own that says the same.
std::shared_ptr<Graph> clone(const Graph& graph);

/// Puts the nodes of `inner` before `before`, where `inputs` stand for its inputs. Returns what stands for its outputs.
std::vector<Value*> inline_graph(Graph& graph, const Node* before, const Graph& inner,
                                 const std::vector<Value*>& inputs);

/// Adds copies of nodes of another graph. `copies` tells what stands for the values that they read, and is told what
/// stands for those that they make.
void copy_nodes(Graph& graph, const std::vector<Node*>& nodes, std::map<const Value*, Value*>& copies);

/// Calls `visit` for each graph inside, innermost first, then for the graph itself.
void for_each_graph(Graph& graph, const std::function<void(Graph&)>& visit);

}  // namespace onnx2halide
