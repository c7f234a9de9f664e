#include "ops/control_flow.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/families.h"

namespace onnx2halide {

namespace {

/// A node that runs subgraphs. Inference, the plan and the host program handle it; kernels do not.
class ControlFlowNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override { throw std::logic_error(node_.label() + " has types of its own"); }
    bool is_kernel() const override { return false; }
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    void algorithm(KernelSource&) const override { throw std::logic_error(node_.label() + " is no kernel"); }
};

/// All inputs must have equally many slices, which is checked at run time.
class Scan : public ControlFlowNode {
public:
    using ControlFlowNode::ControlFlowNode;

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        const Repetition scan(node_);
        const Dim turns = scan_trip_count(scan);
        for (size_t i = 0; i < scan.scans.size(); ++i) {
            const Dim& slices = scan.scans[i]->checked_type().shape[0];
            if (prove_equal(slices, turns) != Proof::yes)
                checks.push_back({fmt::format("the number of slices of scan input {}", i), slices, turns, turns});
        }
        return checks;
    }
};

std::vector<Value*> part(const std::vector<Value*>& values, size_t first, size_t count) {
    std::vector<Value*> result;
    for (size_t i = first; i < first + count; ++i) result.push_back(i < values.size() ? values[i] : nullptr);
    return result;
}

std::vector<bool> directions(const Node& node, const std::string& attribute, size_t count) {
    const std::vector<int64_t> given = node.integers(attribute, {});
    if (!given.empty() && given.size() != count)
        throw CompileError("{} has {} values, expected {}", attribute, given.size(), count);
    std::vector<bool> result(count, false);
    for (size_t i = 0; i < given.size(); ++i) result[i] = given[i] != 0;
    return result;
}

}  // namespace

bool is_repetition(const Node& node) {
    return node.domain.empty() && (node.op_type == "Loop" || node.op_type == "Scan");
}

bool is_control_flow(const Node& node) { return is_repetition(node) || (node.domain.empty() && node.op_type == "If"); }

Repetition::Repetition(const Node& node) : body(&node.graph("body")), is_loop(node.op_type == "Loop") {
    const auto capture_count = static_cast<size_t>(node.integer("captures", 0));
    const size_t own = node.inputs.size() - capture_count, first = is_loop ? 2 : 0;
    const int64_t given_scans = is_loop ? 0 : node.integer("num_scan_inputs");
    if (!is_loop && given_scans < 1) throw CompileError("num_scan_inputs is {}, expected 1 or more", given_scans);
    const auto scan_count = static_cast<size_t>(given_scans);
    if (own < first + scan_count) throw CompileError("has {} inputs, expected at least {}", own, first + scan_count);
    const size_t state_count = own - first - scan_count;
    if (body->inputs.size() != node.inputs.size())
        throw CompileError("body has {} inputs, expected {}", body->inputs.size() - capture_count, own);
    const size_t conditions = is_loop ? 1 : 0;
    if (body->outputs.size() != conditions + node.outputs.size() || node.outputs.size() < state_count)
        throw CompileError("body has {} outputs, expected {}", body->outputs.size(), conditions + node.outputs.size());
    const size_t slice_count = node.outputs.size() - state_count;
    count = is_loop ? node.inputs[0] : nullptr;
    condition = is_loop ? node.inputs[1] : nullptr;
    turn = is_loop ? body->inputs[0] : nullptr;
    condition_input = is_loop ? body->inputs[1] : nullptr;
    condition_output = is_loop ? body->outputs[0] : nullptr;
    states = part(node.inputs, first, state_count);
    state_inputs = part(body->inputs, first, state_count);
    state_outputs = part(body->outputs, conditions, state_count);
    state_results = part(node.outputs, 0, state_count);
    scans = part(node.inputs, first + state_count, scan_count);
    scan_inputs = part(body->inputs, first + state_count, scan_count);
    scan_backwards = directions(node, "scan_input_directions", scan_count);
    slices = part(body->outputs, conditions + state_count, slice_count);
    slice_results = part(node.outputs, state_count, slice_count);
    slice_backwards = directions(node, "scan_output_directions", slice_count);
    captures = part(node.inputs, own, capture_count);
    captured = part(body->inputs, own, capture_count);
}

Dim scan_trip_count(const Repetition& scan) {
    if (scan.scans.empty()) throw CompileError("has no scan inputs, expected one");
    std::optional<Dim> turns;
    for (const Value* input : scan.scans) {
        const TensorType& type = input->checked_type();
        if (type.rank() == 0) throw CompileError("scan input '{}' is a scalar, expected an axis", input->name);
        if (turns && prove_equal(*turns, type.shape[0]) == Proof::no)
            throw CompileError("scan inputs have {} and {} slices, expected as many", turns->text(),
                               type.shape[0].text());
        if (!turns || type.shape[0].constant()) turns = type.shape[0];
    }
    return *turns;
}

std::vector<Operator> control_flow_operators() {
    return {{"If", 1, make<ControlFlowNode>}, {"Loop", 1, make<ControlFlowNode>}, {"Scan", 8, make<Scan>}};
}

}  // namespace onnx2halide
