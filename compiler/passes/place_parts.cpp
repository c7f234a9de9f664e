#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/infer/infer.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Bytes that follow each other without a gap, at least: what the widest vectors hold.
constexpr int64_t least_run_bytes = 64;

/// The elements of a tensor along its innermost axis; nothing where only a run knows.
std::optional<int64_t> run_of(const Value& value) {
    const TensorType& type = value.checked_type();
    return type.rank() == 0 ? 1 : type.extents()[0].constant();
}

class PartPlacer {
public:
    /// `open` are the dims that are known before the first step, and `is_inside` tells a graph inside a node.
    PartPlacer(Graph& graph, const std::map<std::string, Dim>& open, bool is_inside)
        : graph_(graph), open_(open), is_inside_(is_inside) {}

    void place(const std::vector<std::vector<const Node*>>& kernels) {
        std::set<const Node*> alone;  // nodes that are a kernel of their own
        for (const std::vector<const Node*>& kernel : kernels) {
            if (kernel.size() == 1) alone.insert(kernel.front());
        }
        std::vector<Node*> nodes;
        for (const auto& node : graph_.nodes()) {
            if (alone.contains(node.get()) && make_generator(*node)->checks().empty()) nodes.push_back(node.get());
        }
        // From the last to the first: what becomes a part of a result that is one itself lies in the same whole.
        for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) place_inputs(**node);
        for (Node* node : nodes) place_outputs(*node);
    }

private:
    /// Whether a number is known before the first step.
    bool is_early(const Dim& number) const {
        const std::set<std::string> symbols = number.symbols();
        return std::all_of(symbols.begin(), symbols.end(),
                           [&](const std::string& symbol) { return open_.contains(symbol); });
    }

    /// Whether the size of a tensor is known before the first step, and its memory holds the elements themselves.
    bool has_early_size(const Value& value) const {
        const TensorType& type = value.checked_type();
        return type.element != ElementType::string && !type.box && is_early(type.elements());
    }

    /// Whether a kernel makes a value, or the caller. What graphs inside take and give has its place in others' memory.
    bool has_memory(const Value& value) const {
        if (is_inside_ && (!value.producer || graph_.is_output(&value))) return false;
        const bool is_input = std::find(graph_.inputs.begin(), graph_.inputs.end(), &value) != graph_.inputs.end();
        return !value.port && (value.producer ? make_generator(*value.producer)->is_kernel() : is_input);
    }

    /// Lets the outputs of a node that takes its input apart be parts of the input, if all can.
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

    /// Lets inputs of a node that joins them be parts of its result, those that can.
    void place_inputs(Node& node) {
        const Value* result = node.outputs.empty() ? nullptr : node.outputs[0];
        // What a run reads off a result it reads when its node is computed.
        if (!result || !has_early_size(*result) || !result->bindings.empty()) return;
        if (is_inside_ && graph_.is_output(result)) return;
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

    /// What spans this of a value with the memory of another, which may be a part itself.
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

    /// Makes parts of a value, which lies as `part` says, and of all others with its memory: where it is dense, these
    /// are, whatever their runs.
    static void make_parts(const std::vector<Value*>& same_memory, const Part& part, const Value& named) {
        const bool is_dense = part.pitch == run_of(named);
        for (Value* value : same_memory) {
            value->part = part;
            if (is_dense) value->part->pitch = *run_of(*value);
        }
    }

    /// A value and all its views; false where one is read by what counts on a memory of its own.
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

    /// Whether a value that has the memory of `named` can be a part.
    bool can_be(const Value& value, const Part& part, const Value& named) const {
        if (value.part || value.port || !value.bindings.empty() || value.is_constant() || graph_.is_output(&value))
            return false;
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
