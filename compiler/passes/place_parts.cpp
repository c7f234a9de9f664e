#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/infer/infer.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// The least number of bytes per row of a part that is not dense: those of the widest vectors.
constexpr int64_t least_run_bytes = 64;

/// The number of elements along a tensor's innermost axis, the length of a row; nullopt if it is not constant.
std::optional<int64_t> run_of(const Value& value) {
    const TensorType& type = value.checked_type();
    return type.rank() == 0 ? 1 : type.extents()[0].constant();
}

class PartPlacer {
public:
    /// `open` are the open dims, which are known before the first step. `is_inside` says whether this is a subgraph.
    PartPlacer(Graph& graph, const std::map<std::string, Dim>& open, bool is_inside)
        : graph_(graph), open_(open), is_inside_(is_inside) {}

    void place(const std::vector<std::vector<const Node*>>& kernels) {
        std::set<const Node*> alone;  // nodes that are kernels by themselves
        for (const std::vector<const Node*>& kernel : kernels) {
            if (kernel.size() == 1) alone.insert(kernel.front());
        }
        std::vector<Node*> nodes;
        for (const auto& node : graph_.nodes()) {
            if (alone.contains(node.get()) && make_generator(*node)->checks().empty()) nodes.push_back(node.get());
        }
        // In reverse order, so that parts of a result that is a part itself belong to the same whole.
        for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) place_inputs(**node);
        for (Node* node : nodes) place_outputs(*node);
    }

private:
    /// Whether a dim is known before the first step.
    bool is_early(const Dim& number) const {
        const std::set<std::string> symbols = number.symbols();
        return std::all_of(symbols.begin(), symbols.end(),
                           [&](const std::string& symbol) { return open_.contains(symbol); });
    }

    /// Whether the size of a tensor is known before the first step, and its elements are plain numbers.
    bool has_early_size(const Value& value) const {
        const TensorType& type = value.checked_type();
        return type.element != ElementType::string && !type.box && is_early(type.elements());
    }

    bool has_early_shape(const Value& value) const {
        const std::vector<Dim>& shape = value.checked_type().shape;
        return std::all_of(shape.begin(), shape.end(), [this](const Dim& extent) { return is_early(extent); });
    }

    /// Whether a value, which is no view, or a view of it is an output of a subgraph, which lies in the memory of the
    /// node's result.
    bool leaves_subgraph(const Value& value) const {
        return is_inside_ && std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                                         [&](Value* output) { return &memory_of(*output) == &value; });
    }

    /// Whether a value has memory of its own that a kernel or the caller has written. The inputs and outputs of
    /// subgraphs are in the memory of other values.
    bool has_memory(const Value& value) const {
        if ((is_inside_ && !value.producer) || leaves_subgraph(value)) return false;
        const bool is_input = std::find(graph_.inputs.begin(), graph_.inputs.end(), &value) != graph_.inputs.end();
        return !value.port && (value.producer ? make_generator(*value.producer)->is_kernel() : is_input);
    }

    /// Makes the outputs of a node that splits its input parts of that, if this is possible for all of them.
    void place_outputs(Node& node) {
        const auto generator = make_generator(node);
        if (node.inputs.empty() || !node.inputs[0]) return;
        Value& input = *node.inputs[0];
        const Value& whole = input.part ? *input.part->whole : memory_of(input);
        if (!has_memory(whole) || !has_early_size(whole)) return;
        struct Place {
            Part part;
            std::vector<Value*> same_memory;
            const Value* output;
        };
        std::vector<Place> places;
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            Value* output = node.outputs[i];
            if (!output) continue;
            const auto span = generator->span_in_input(i);
            if (!span || !is_early(span->offset) || output->checked_type().elements().is(0)) return;
            Place place{part_of(input, whole, *span), {}, output};
            if (!add_views(*output, place.same_memory) || !can_all_be(place.same_memory, place.part, *output)) return;
            places.push_back(std::move(place));
        }
        for (const Place& place : places) make_parts(place.same_memory, place.part, *place.output);
        node.attributes["in_place"] = std::vector<int64_t>{0};
    }

    /// Makes inputs of a node that joins them parts of its result, where this is possible.
    void place_inputs(Node& node) {
        const Value* result = node.outputs.empty() ? nullptr : node.outputs[0];
        // Symbols that are bound to a result are read when its node has run.
        if (!result || !has_early_size(*result) || !result->bindings.empty()) return;
        if (leaves_subgraph(*result)) return;
        const auto generator = make_generator(node);
        std::vector<int64_t> in_place;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const auto span = generator->span_in_output(i);
            if (!span || !is_early(span->offset) || node.inputs[i]->checked_type().elements().is(0)) continue;
            const Part part = part_of(*result, *result, *span);
            if (place_value(*node.inputs[i], part, node)) in_place.push_back(static_cast<int64_t>(i));
        }
        if (!in_place.empty()) node.attributes["in_place"] = in_place;
    }

    /// The part that is a span of `value`, which may be a part itself, and otherwise has the memory of `memory`.
    static Part part_of(const Value& value, const Value& memory, const NodeGenerator::Span& span) {
        return value.part ? Part{value.part->whole, value.part->offset + span.offset, span.pitch}
                          : Part{&memory, span.offset, span.pitch};
    }

    bool place_value(Value& input, const Part& part, const Node& node) {
        if (std::count(node.inputs.begin(), node.inputs.end(), &input) > 1) return false;
        Value* made = &memory_of(input);
        std::vector<Value*> same_memory;
        if (!made->producer || !has_memory(*made) || !add_views(*made, same_memory) ||
            !can_all_be(same_memory, part, input))
            return false;
        make_parts(same_memory, part, input);
        return true;
    }

    /// Makes all values in `same_memory` parts. `part` describes one of them, `named`. If it is dense, so are the
    /// others, whatever the length of their rows.
    static void make_parts(const std::vector<Value*>& same_memory, const Part& part, const Value& named) {
        const bool is_dense = part.pitch == run_of(named);
        for (Value* value : same_memory) {
            value->part = part;
            if (is_dense) value->part->pitch = *run_of(*value);
        }
    }

    /// Adds a value and all its views. Returns false if a reader requires that they have memory of their own.
    bool add_views(Value& value, std::vector<Value*>& same_memory) const {
        same_memory.push_back(&value);
        return std::all_of(value.consumers.begin(), value.consumers.end(), [&](Node* consumer) {
            const auto generator = make_generator(*consumer);
            if (!generator->is_kernel() || !generator->index_checks().empty()) return false;
            if (!generator->is_view()) return true;
            return consumer->inputs[0] == &value && add_views(*consumer->outputs[0], same_memory);
        });
    }

    bool can_all_be(const std::vector<Value*>& same_memory, const Part& part, const Value& named) const {
        return std::all_of(same_memory.begin(), same_memory.end(),
                           [&](const Value* value) { return can_be(*value, part, named); });
    }

    /// Whether a value can be a part, given that `part` describes `named`, which has the same memory.
    bool can_be(const Value& value, const Part& part, const Value& named) const {
        if (value.part || value.port || !value.bindings.empty() || value.is_constant() || graph_.is_output(&value))
            return false;
        // The host program finds a part's place before the first step.
        if (!has_early_shape(value)) return false;
        const auto run = run_of(value);
        return run && (part.pitch == run_of(named) ||
                       (run == run_of(named) && *run * info(value.checked_type().element).bytes >= least_run_bytes));
    }

    Graph& graph_;
    const std::map<std::string, Dim>& open_;
    bool is_inside_;
};

}  // namespace

void place_parts(Graph& graph,
                 const std::function<std::vector<std::vector<const Node*>>(const Graph& graph)>& kernels_of) {
    for_each_graph(graph,
                   [&](Graph& each) { PartPlacer(each, graph.symbols, &each != &graph).place(kernels_of(each)); });
}

}  // namespace onnx2halide
