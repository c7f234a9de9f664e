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
        const Dim trip_count = scan_trip_count(scan);
        for (size_t i = 0; i < scan.scan_inputs.size(); ++i) {
            const Dim& slices = scan.scan_inputs[i].whole->checked_type().shape[0];
            if (prove_equal(slices, trip_count) != Proof::yes)
                checks.push_back(
                    {fmt::format("the number of slices of scan input {}", i), slices, trip_count, trip_count});
        }
        return checks;
    }
};

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
    if (is_loop) {
        trip_count = node.inputs[0];
        condition = node.inputs[1];
        iteration_number = body->inputs[0];
        condition_input = body->inputs[1];
        condition_output = body->outputs[0];
    }
    for (size_t i = 0; i < state_count; ++i)
        states.push_back(
            {node.inputs[first + i], body->inputs[first + i], body->outputs[conditions + i], node.outputs[i]});
    const std::vector<bool> inputs_backwards = directions(node, "scan_input_directions", scan_count),
                            outputs_backwards = directions(node, "scan_output_directions", slice_count);
    for (size_t i = 0; i < scan_count; ++i) {
        const size_t input = first + state_count + i;
        scan_inputs.push_back({node.inputs[input], body->inputs[input], inputs_backwards[i]});
    }
    for (size_t i = 0; i < slice_count; ++i) {
        const size_t output = state_count + i;
        scan_outputs.push_back({body->outputs[conditions + output], node.outputs[output], outputs_backwards[i]});
    }
    for (size_t i = own; i < node.inputs.size(); ++i) captures.push_back({node.inputs[i], body->inputs[i]});
}

Dim scan_trip_count(const Repetition& scan) {
    if (scan.scan_inputs.empty()) throw CompileError("has no scan inputs, expected one");
    std::optional<Dim> trip_count;
    for (const Repetition::ScanInput& input : scan.scan_inputs) {
        const TensorType& type = input.whole->checked_type();
        if (type.rank() == 0) throw CompileError("scan input '{}' is a scalar, expected an axis", input.whole->name);
        if (trip_count && prove_equal(*trip_count, type.shape[0]) == Proof::no)
            throw CompileError("scan inputs have {} and {} slices, expected as many", trip_count->text(),
                               type.shape[0].text());
        if (!trip_count || type.shape[0].constant()) trip_count = type.shape[0];
    }
    return *trip_count;
}

std::vector<Operator> control_flow_operators() {
    return {{"If", 1, make<ControlFlowNode>}, {"Loop", 1, make<ControlFlowNode>}, {"Scan", 8, make<Scan>}};
}

std::string own_symbol_name(const Node& node, const std::string& role) {
    return fmt::format("{}_{}_{}", node.op_type, node.index, role);
}

}  // namespace onnx2halide
