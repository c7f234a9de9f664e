#include "compiler/infer/infer_repetition.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/graph/box_type.h"
#include "compiler/infer/add_node.h"
#include "compiler/infer/batched_scan.h"
#include "compiler/infer/infer.h"
#include "compiler/infer/loop_invariants.h"
#include "compiler/infer/subgraph.h"
#include "ops/control_flow.h"

namespace onnx2halide {

namespace {

std::set<std::string> symbols_of(const std::vector<Value*>& values) {
    std::set<std::string> result;
    for (const Value* value : values) {
        if (!value) continue;
        for (const Dim& dim : value->checked_type().shape) result.merge(dim.symbols());
        if (!value->known) continue;
        for (const Dim& element : value->known->integers) result.merge(element.symbols());
    }
    return result;
}

bool uses_only(const Dim& dim, const std::set<std::string>& symbols) {
    const std::set<std::string> used = dim.symbols();
    return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

/// Transposes the inputs that a Scan goes over along another axis than the first.
void normalise_scan_axes(Graph& graph, Node& node) {
    const Repetition scan(node);
    const auto permutation = [](int64_t axis, size_t rank) {
        std::vector<int64_t> order(rank);
        std::iota(order.begin(), order.end(), 0);
        const auto place = order.begin() + static_cast<std::ptrdiff_t>(normalised_axis(axis, rank, "a scan axis"));
        std::rotate(order.begin(), place, place + 1);
        return order;
    };
    const std::vector<int64_t> axes = node.integers("scan_input_axes", {});
    const size_t first = scan.states.size();
    for (size_t i = 0; i < axes.size() && i < scan.scan_inputs.size(); ++i) {
        if (axes[i] == 0) continue;
        Value* input = scan.scan_inputs[i].whole;
        const std::vector<int64_t> order = permutation(axes[i], input->checked_type().rank());
        const NewNode transpose{"Transpose", 1, {input}, {{"perm", order}}, "", node.index};
        Value* moved = add_node(graph, transpose, input->name + "_steps", &node);
        graph.set_input(&node, first + i, moved);
    }
    node.attributes.erase("scan_input_axes");
}

/// The same for the results, once the ranks of slices are known.
void denormalise_result_axes(Graph& graph, Node& node) {
    const std::vector<int64_t> axes = node.integers("scan_output_axes", {});
    node.attributes.erase("scan_output_axes");
    const Repetition scan(node);
    const Node* next = graph.after(&node);
    for (size_t i = 0; i < axes.size() && i < scan.scan_outputs.size(); ++i) {
        Value* result = scan.scan_outputs[i].whole;
        if (axes[i] == 0 || !result) continue;
        std::vector<int64_t> order(result->checked_type().rank());
        const size_t axis = normalised_axis(axes[i], order.size(), "a scan axis");
        std::iota(order.begin(), order.end(), 0);
        // The axis of steps comes first, and goes where the result has it.
        std::rotate(order.begin(), order.begin() + 1, order.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
        // The result keeps its name; the iterations write another value.
        Value* stacked = graph.new_value(result->name + "_steps");
        stacked->type = std::exchange(result->type, std::nullopt);
        stacked->producer = &node;
        node.outputs[scan.states.size() + i] = stacked;
        Node transpose;
        transpose.name = result->name;
        transpose.op_type = "Transpose";
        transpose.index = node.index;
        transpose.attributes["perm"] = std::move(order);
        transpose.inputs = {stacked};
        transpose.outputs = {result};
        graph.add(std::move(transpose), next);
    }
}

/// Replaces a Scan of one iteration by its body; slices are views.
bool inline_iteration(Graph& graph, Node& node, const Repetition& scan) {
    const Node* next = graph.after(&node);
    const auto add = [&](const char* op_type, Value* input, const std::string& name) {
        const NewNode node_of_step{op_type, 1, {input}, {{"axes", std::vector<int64_t>{0}}}, "", node.index};
        return insert_node(graph, node_of_step, name, next);
    };
    std::vector<Value*> inputs;
    for (const Repetition::State& state : scan.states) inputs.push_back(state.initial);
    for (const Repetition::ScanInput& input : scan.scan_inputs)
        inputs.push_back(add("Squeeze", input.whole, input.whole->name + "_step"));
    for (const Repetition::Capture& capture : scan.captures) inputs.push_back(capture.outer);
    const std::vector<Value*> results = inline_graph(graph, next, *scan.body, inputs);
    const size_t states = scan.states.size();
    for (size_t i = 0; i < states; ++i) replace(graph, scan.states[i].result, results[i]);
    for (size_t i = 0; i < scan.scan_outputs.size(); ++i) {
        Value* whole = scan.scan_outputs[i].whole;
        if (whole) replace(graph, whole, add("Unsqueeze", results[states + i], whole->name));
    }
    return true;
}

/// The number of a Loop's iterations, or nullopt if it is not known before the loop starts.
std::optional<Dim> loop_iterations(const Repetition& loop) {
    const bool starts = !loop.condition || known_condition(loop.condition) == true;
    const bool goes_on = known_condition(loop.condition_output) == true;
    const Value* count = loop.trip_count;
    if (!count || !starts || !goes_on || !count->known || count->known->integers.size() != 1) return std::nullopt;
    return max(count->known->integers[0], Dim(0));
}

/// Sets the types of the body's inputs; `state_types` are those of the loop-carried values.
void type_inputs(const Node& node, const Repetition& repetition, const std::vector<TensorType>& state_types) {
    if (repetition.is_loop) {
        repetition.iteration_number->type = TensorType(ElementType::int64, {});
        repetition.iteration_number->known = KnownElements{{fresh_symbol(node, "iteration")}, {}};
        // The body only runs if it is true.
        repetition.condition_input->type = TensorType(ElementType::boolean, {});
        repetition.condition_input->known = KnownElements{{1}, {}};
    }
    for (size_t i = 0; i < state_types.size(); ++i) repetition.states[i].input->type = state_types[i];
    for (const Repetition::ScanInput& input : repetition.scan_inputs) {
        const TensorType& type = input.whole->checked_type();
        input.slice->type = TensorType(type.element, {type.shape.begin() + 1, type.shape.end()});
    }
    for (const Repetition::Capture& capture : repetition.captures) pass_on(capture.outer, capture.inner);
}

/// Generalises the type `before` of a loop-carried value to cover the type `now` after an iteration: dims that differ
/// become symbols. Returns whether that changed it.
bool widen(const Node& node, size_t state, TensorType& before, const TensorType& now) {
    if (const auto box = joined(before, now)) return std::exchange(before, *box) != *box;
    if (before.box || before.element != now.element || before.rank() != now.rank())
        throw CompileError("value {} is {} before an iteration and {} after it, expected the same type and rank", state,
                           before.text(), now.text());
    bool is_wider = false;
    for (size_t axis = 0; axis < before.rank(); ++axis) {
        Dim& dim = before.shape[axis];
        const Dim symbol = fresh_symbol(node, fmt::format("state_{}_{}", state, axis));
        if (dim == now.shape[axis] || dim == symbol) continue;
        dim = symbol;
        is_wider = true;
    }
    return is_wider;
}

bool differ_in_rank_only(const TensorType& a, const TensorType& b) {
    return !a.box && !b.box && a.element == b.element && a.rank() != b.rank();
}

/// Starts a loop-carried value with one of the type that it has after an iteration, whose dims are constants; an open
/// one becomes 0. `start` makes it from these dims. Returns its type.
template <typename Start>
TensorType start_with(Graph& graph, Node& node, size_t state, const TensorType& now, const Start& start) {
    std::vector<int64_t> shape;
    for (const Dim& dim : now.shape) shape.push_back(dim.constant().value_or(0));
    const auto rank = static_cast<int64_t>(shape.size());
    const std::string name = fmt::format("{}_state_{}", node.name, state);
    Value* dims = add_constant(graph, make_constant(ElementType::int64, {rank}, shape), name + "_shape");
    NewNode first = start(dims);
    first.index = node.index;
    const size_t input = state + (node.op_type == "Loop" ? 2 : 0);
    graph.set_input(&node, input, add_node(graph, first, name, &node));
    return node.inputs[input]->checked_type();
}

/// Gives a loop-carried value the rank before the loop that it has after an iteration, where onnxruntime lets these
/// differ. The body may never read it, as exporters write it for variables that the body defines; or it is a number, as
/// a scalar that becomes a vector of one element. Returns its type before the loop then.
std::optional<TensorType> with_rank_of_body(Graph& graph, Node& node, const Repetition& repetition, size_t state,
                                            const TensorType& before) {
    const Repetition::State& carried = repetition.states[state];
    const TensorType now = *carried.output->type;
    if (!differ_in_rank_only(before, now)) return {};
    const bool is_read = !carried.input->consumers.empty() || repetition.body->is_output(carried.input);
    if (!is_read && now.element != ElementType::string) {
        const Constant zero{now.element, {1}, std::make_shared<std::vector<std::byte>>(info(now.element).bytes), {}};
        return start_with(graph, node, state, now, [&](Value* dims) {
            return NewNode{"ConstantOfShape", 9, {dims}, {{"value", zero}}};
        });
    }
    if (!before.elements().is(1) || !now.elements().is(1)) return {};
    return start_with(graph, node, state, now, [&](Value* dims) {
        return NewNode{"Reshape", 14, {carried.initial, dims}};
    });
}

/// Infers the body with more and more general types, until an iteration's results have the types of its inputs.
std::vector<TensorType> infer_body(Graph& graph, Node& node) {
    const auto pristine = node.attributes.at("body");
    std::vector<TensorType> types;
    std::set<size_t> reshaped;  // states: each once, as a body may add an axis in each iteration
    for (const Repetition::State& state : Repetition(node).states) {
        if (!state.initial) throw CompileError("a loop-carried value is missing");
        types.push_back(state.initial->checked_type());
    }
    while (true) {
        node.attributes["body"] = clone(*std::get<std::shared_ptr<Graph>>(pristine));
        type_inputs(node, Repetition(node), types);
        infer_types(node.graph("body"));
        const Repetition repetition(node);  // anew, as inference may have replaced the body's outputs
        if (repetition.is_loop) is_one_element(*repetition.condition_output, "the body's cond", ElementType::boolean);
        std::vector<Value*> outer, inner;
        for (const Repetition::Capture& capture : repetition.captures) {
            outer.push_back(capture.outer);
            inner.push_back(capture.inner);
        }
        bind_outside(outer, inner);
        bool is_wider = false;
        for (size_t i = 0; i < types.size(); ++i) {
            const TensorType now = *repetition.states[i].output->type;
            const auto before =
                reshaped.contains(i) ? std::nullopt : with_rank_of_body(graph, node, repetition, i, types[i]);
            if (before) {
                types[i] = *before;
                reshaped.insert(i);
                is_wider = true;
            }
            is_wider |= widen(node, i, types[i], now);
        }
        if (!is_wider) return types;
    }
}

}  // namespace

bool infer_repetition(Graph& graph, Node& node) {
    if (node.op_type == "Scan" && node.version == 8) split_off_batch(node);
    const bool is_loop = node.op_type == "Loop";
    if (is_loop && node.has_input(0)) require_one_element(graph, node, 0, "M", ElementType::int64);
    if (is_loop && node.has_input(1)) require_one_element(graph, node, 1, "cond", ElementType::boolean);
    capture_loop_invariants(graph, node);
    if (node.op_type == "Scan") normalise_scan_axes(graph, node);
    const bool is_scan = node.op_type == "Scan";
    if (is_scan && scan_trip_count(Repetition(node)).is(1) && node.integers("scan_output_axes", {}).empty())
        return inline_iteration(graph, node, Repetition(node));
    const std::vector<TensorType> types = infer_body(graph, node);
    const Repetition repetition(node);
    for (size_t i = 0; i < types.size(); ++i) {
        if (repetition.states[i].result) repetition.states[i].result->type = types[i];
    }
    const auto trip_count = is_scan ? scan_trip_count(repetition) : loop_iterations(repetition);
    std::set<std::string> outer = symbols_of(node.inputs);
    for (size_t i = 0; i < repetition.scan_outputs.size(); ++i) {
        if (!repetition.scan_outputs[i].whole) continue;
        const TensorType& slice = *repetition.scan_outputs[i].slice->type;
        std::vector<Dim> shape = {trip_count ? *trip_count : fresh_symbol(node, "iterations")};
        for (size_t axis = 0; axis < slice.rank(); ++axis) {
            const Dim& dim = slice.shape[axis];
            shape.push_back(uses_only(dim, outer) ? dim : fresh_symbol(node, fmt::format("slice_{}_{}", i, axis)));
        }
        repetition.scan_outputs[i].whole->type = TensorType(slice.element, std::move(shape));
    }
    denormalise_result_axes(graph, node);
    return false;
}

}  // namespace onnx2halide
