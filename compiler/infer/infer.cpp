#include "compiler/infer/infer.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/node_key.h"
#include "compiler/infer/check_types.h"
#include "compiler/infer/infer_if.h"
#include "compiler/infer/infer_repetition.h"
#include "ops/axis_map.h"
#include "ops/composite.h"
#include "ops/control_flow.h"
#include "ops/known_elements.h"
#include "ops/names.h"
#include "ops/node_generator.h"

namespace onnx2halide {

Value& memory_of(Value& value) {
    const Node* view = view_of(&value);
    return view ? memory_of(*view->inputs[0]) : value;
}

namespace {

/// Whether all inputs have types. Those that depend on a node that failed have none.
bool has_typed_inputs(const Node& node) {
    for (const Value* input : node.inputs) {
        if (input && !input->type) return false;
    }
    return true;
}

/// The inputs whose elements a value consists of, if its node only moves elements.
std::vector<Value*> moved_into(const Value& value) {
    const Node* node = value.producer;
    if (!node || value.constant || is_control_flow(*node)) return {};
    const std::unique_ptr<NodeGenerator> generator = make_generator(*node);
    const auto* movement = dynamic_cast<const MovementNode*>(generator.get());
    std::vector<Value*> inputs;
    for (const size_t i : movement ? movement->moved() : std::vector<size_t>()) {
        if (node->has_input(i)) inputs.push_back(node->inputs[i]);
    }
    return inputs;
}

bool has_known_elements(const Value& value) {
    if (value.known) return value.known->size() > 0;
    const std::vector<Value*> inputs = moved_into(value);
    return std::any_of(inputs.begin(), inputs.end(), [](const Value* input) { return has_known_elements(*input); });
}

bool bind_elements(Value& value);

/// Binds symbols to the inputs of a node that only moves elements, and so makes the elements of its output known.
bool bind_moved_elements(Value& value) {
    for (Value* input : moved_into(value)) {
        if (!input->known && !bind_elements(*input)) return false;
    }
    const auto known = make_generator(*value.producer)->known();
    const auto& outputs = value.producer->outputs;
    const size_t i = std::find(outputs.begin(), outputs.end(), &value) - outputs.begin();
    if (i < known.size()) value.known = known[i];
    return value.known.has_value();
}

/// Makes the elements of a small integer tensor known as symbols, which are read at run time once the tensor is
/// computed. Returns false if it cannot do so, or if the elements are known already.
bool bind_elements(Value& value) {
    const TensorType& type = value.checked_type();
    const auto count = type.elements().constant();
    const bool is_integer = onnx2halide::is_integer(type.element) || type.element == ElementType::boolean;
    if (!is_integer || !count || *count > static_cast<int64_t>(KnownElements::limit) || value.known) return false;
    if (has_known_elements(value) && bind_moved_elements(value)) return true;
    Value& memory = memory_of(value);
    if (!memory.known) {
        memory.known = KnownElements{};
        for (size_t i = 0; i < static_cast<size_t>(*count); ++i) {
            const std::string symbol = element_symbol_name(memory, i);
            memory.bindings.push_back({symbol, Binding::Kind::element, i});
            memory.known->integers.push_back(Dim::symbol(symbol, -Dim::unbounded));
        }
    }
    value.known = memory.known;
    return true;
}

/// The generator of a node and the types of its outputs, after binding symbols to all elements that it asks for. The
/// generator is made anew each time, since its class may depend on what is known about the inputs.
std::pair<std::unique_ptr<NodeGenerator>, std::vector<TensorType>> inferred(const Node& node) {
    while (true) {
        auto generator = make_generator(node);
        check_takes(*generator, node.inputs, "input");
        try {
            std::vector<TensorType> types = generator->infer();
            check_indices(*generator, node);
            return {std::move(generator), std::move(types)};
        } catch (const UnknownElements& unknown) {
            if (unknown.value->can_be_folded || !bind_elements(*unknown.value)) throw;
        }
    }
}

/// Makes an extent (see extent_of) of every dim that might be negative because it contains an element that is read at
/// run time.
void note_signs(TensorType& type) {
    for (Dim& extent : type.shape) {
        // A dim that is negative because a window is larger than its image stays, as it says more than an extent would.
        constexpr int64_t far_below_0 = -Dim::unbounded / 2;
        if (extent.lower_bound().value_or(INT64_MIN) < far_below_0) extent = extent_of(extent);
    }
}

/// Binds the symbols of extents that are known once the node that makes the value has run.
void bind_extents(Value& value) {
    for (size_t axis = 0; axis < value.type->rank(); ++axis) {
        const std::string symbol = extent_symbol_name(value, axis);
        if (value.type->shape[axis].symbols().contains(symbol))
            value.bindings.push_back({symbol, Binding::Kind::extent, axis});
    }
}

void track_constants(const Node& node) {
    for (Value* input : node.inputs) {
        if (input && input->constant && !input->known) input->known = known_elements(*input->constant);
    }
}

/// If the node is an EarlyComposite, inserts the nodes that define it before it. Returns whether it is.
bool expand_early(Graph& graph, Node& node) {
    const std::unique_ptr<NodeGenerator> generator = make_generator(node);
    const auto* composite = dynamic_cast<const EarlyComposite*>(generator.get());
    if (!composite) return false;
    check_takes(*generator, node.inputs, "input");
    const std::vector<Value*> results = composite->expand(graph);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        Value* output = node.outputs[i];
        if (!output) continue;
        output->type = results.at(i)->type;
        check_declared(*output);
        Composite::rename(graph, results[i], output);
    }
    return true;
}

bool follows_from_constants(const Value* value) {
    const auto is_number = [](const Dim& element) { return element.constant(); };
    return !value || value->constant || value->can_be_folded ||
           (value->known && std::all_of(value->known->integers.begin(), value->known->integers.end(), is_number));
}

/// Infers the nodes of a graph. Folds those that depend on constants only, if sizes depend on their results. Merges
/// those that find the same sizes at run time.
class Inference {
public:
    Inference(Graph& graph, const FoldNode& fold) : graph_(graph), fold_(fold) {}
    ~Inference() {
        for (const auto& node : graph_.nodes()) mark(*node, false);
    }
    Inference(const Inference&) = delete;

    /// Infers a node. Returns whether other nodes or constants now replace it.
    bool infer(Node& node) {
        track_constants(node);
        while (true) {
            try {
                return infer_as_known(node);
            } catch (const UnknownElements& unknown) {
                if (!unknown.value->can_be_folded) throw;
                fold(*unknown.value);
            }
        }
    }

private:
    bool infer_as_known(Node& node) {
        if (is_control_flow(node)) {
            // A Loop's count of iterations or an If's condition; a Scan has the initial value of a state there.
            const bool decides = node.op_type != "Scan" && node.has_input(0);
            if (decides && node.inputs[0]->can_be_folded) fold(*node.inputs[0]);
            return node.op_type == "If" ? infer_if(graph_, node) : infer_repetition(graph_, node);
        }
        if (expand_early(graph_, node)) return true;
        infer_node(node);
        const bool can_be_folded = fold_ && std::all_of(node.inputs.begin(), node.inputs.end(), follows_from_constants);
        mark(node, can_be_folded);
        return has_open_extents(node) && ((can_be_folded && fold(node)) || merge(node));
    }

    /// Replaces a node by an earlier one that computes the same, if there is one: the extents that a run finds, such as
    /// the number of elements that a mask selects, are then the same ones, too, for whatever reads the results. A
    /// detector selects the boxes, the scores and the labels by one mask, for example, each with its own NonZero.
    bool merge(const Node& node) {
        const auto is_output = [this](const Value* output) { return output && graph_.is_output(output); };
        if (std::any_of(node.outputs.begin(), node.outputs.end(), is_output)) return false;
        const auto key = node_key(node, ComputedInputs::by_identity);
        if (!key) return false;
        const auto [earlier, is_new] = finders_.emplace(*key, &node);
        if (is_new) return false;
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            if (node.outputs[i]) graph_.replace_uses(node.outputs[i], earlier->second->outputs[i]);
        }
        return true;
    }

    static void mark(const Node& node, bool can_be_folded) {
        for (Value* output : node.outputs) {
            if (output) output->can_be_folded = can_be_folded && !output->known;
        }
    }

    static bool has_open_extents(const Node& node) {
        return std::any_of(node.outputs.begin(), node.outputs.end(), [](const Value* output) {
            return output && !output->bindings.empty() && output->bindings[0].kind == Binding::Kind::extent;
        });
    }

    bool fold(Node& node) {
        mark(node, false);
        if (!fold_(node)) return false;
        for (Value* output : node.outputs) {
            if (!output) continue;
            output->type = output->constant->type();
            output->known = known_elements(*output->constant);
            output->bindings.clear();
        }
        return true;
    }

    void fold(Value& value) {
        value.can_be_folded = false;
        Node* producer = value.producer;
        if (producer && fold(*producer)) graph_.remove(producer);
    }

    Graph& graph_;
    const FoldNode& fold_;
    std::unordered_map<std::string, const Node*> finders_;  // nodes that find extents, by their keys
};

}  // namespace

std::string contradicted_shapes(Graph& graph) {
    std::string first;
    size_t count = 0;
    for_each_graph(graph, [&](Graph& each) {
        for (const auto& node : each.nodes()) {
            for (const Value* output : node->outputs) {
                if (!output || !output->type || !output->declared || !contradicts(*output->declared, *output->type))
                    continue;
                if (count++ == 0)
                    first = fmt::format("{}: output '{}' is {}, but the model declares {}", node->label(), output->name,
                                        output->type->text(), output->declared->text());
            }
        }
    });
    return count > 1 ? fmt::format("{}; and {} more such shapes", first, count - 1) : first;
}

void infer_node(Node& node) {
    for (const Value* input : node.inputs) {
        if (input) check_type(*input);
    }
    track_constants(node);
    const auto [generator, types] = inferred(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        Value* output = node.outputs[i];
        if (!output || output->type) continue;
        if (i >= types.size()) throw CompileError("output {} is not supported", i);
        output->type = types[i];
        note_signs(*output->type);
        check_type(*output);
        check_declared(*output);
        bind_extents(*output);
    }
    check_takes(*generator, node.outputs, "output");
    const auto known = generator->known();
    for (size_t i = 0; i < node.outputs.size() && i < known.size(); ++i) {
        Value* output = node.outputs[i];
        if (!output || !known[i] || known[i]->size() > KnownElements::limit) continue;
        if (known[i]->ratios.empty())
            output->known = known[i];
        else
            output->tracked = known[i];
    }
}

void infer_added(Graph& graph, Node& node) {
    track_constants(node);
    if (expand_early(graph, node)) {
        graph.remove(&node);
    } else {
        infer_node(node);
    }
}

void infer_types(Graph& graph, const FoldNode& fold) {
    for (const Value* input : graph.inputs) check_type(*input);
    Inference inference(graph, fold);
    std::vector<std::string> errors;
    const auto& nodes = graph.nodes();
    for (auto place = nodes.begin(); place != nodes.end();) {
        Node& node = **place;
        bool is_replaced = false;
        try {
            if (has_typed_inputs(node)) is_replaced = inference.infer(node);
        } catch (const CompileError& error) {
            errors.push_back(fmt::format("{}: {}", node.label(), error.what()));
            for (Value* output : node.outputs) {
                if (output) output->type.reset();
            }
        } catch (const std::logic_error& error) {
            throw std::logic_error(fmt::format("{}: {}", node.label(), error.what()));
        }
        ++place;  // to the nodes that may replace it
        if (is_replaced) graph.remove(&node);
    }
    for (const Value* output : graph.outputs) {
        if (!errors.empty()) break;
        if (!output->type) throw CompileError("no node makes output '{}'", output->name);
        check_type(*output);
    }
    if (errors.size() == 1) throw CompileError(errors[0]);
    if (!errors.empty())
        throw CompileError("{} nodes cannot be compiled:\n  {}", errors.size(), fmt::join(errors, "\n  "));
}

}  // namespace onnx2halide
