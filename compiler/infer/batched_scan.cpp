#include "compiler/infer/batched_scan.h"

#include <algorithm>
#include <memory>

#include "compiler/graph/new_node.h"

namespace onnx2halide {

namespace {

/// Builds the body of the Scan over the batch.
class BatchBody {
public:
    BatchBody(const Node& node, const Graph& sequence_body) : node_(node), graph_(std::make_shared<Graph>()) {
        graph_->name = node.name;
        graph_->opset = sequence_body.opset;
        graph_->strings = sequence_body.strings;
    }

    Value* input(const std::string& name) {
        graph_->inputs.push_back(graph_->new_value(name));
        return graph_->inputs.back();
    }

    void output(Value* value) {
        graph_->outputs.push_back(value);
        graph_->output_names.push_back(value->name);
    }

    Value* integers(const std::vector<int64_t>& numbers) {
        const auto count = static_cast<int64_t>(numbers.size());
        return add_constant(*graph_, make_constant(ElementType::int64, {count}, numbers), "integers");
    }

    /// Adds a node of ONNX's own domain and returns its result.
    Value* add(const std::string& op_type, int version, std::vector<Value*> inputs,
               std::map<std::string, Attribute> attributes = {}) {
        const NewNode node{op_type, version, std::move(inputs), std::move(attributes), "", node_.index};
        return insert_node(*graph_, node, node_.name + "_" + op_type, nullptr);
    }

    std::shared_ptr<Graph> graph() const { return graph_; }

private:
    const Node& node_;
    std::shared_ptr<Graph> graph_;
};

/// The inputs of a Scan (8), in their order.
struct BatchedScan {
    Value* lengths;  // of the sequences; null: all have the full length
    std::vector<Value*> states, sequences, captures;

    explicit BatchedScan(const Node& node) {
        const auto capture_count = static_cast<size_t>(node.integer("captures", 0));
        const int64_t sequence_count = node.integer("num_scan_inputs");
        const size_t own = node.inputs.size() - capture_count;
        if (sequence_count < 1 || own < 1 + static_cast<size_t>(sequence_count))
            throw CompileError("has {} inputs, expected at least {}, and num_scan_inputs 1 or more", own,
                               sequence_count + 1);
        lengths = node.inputs[0];
        const auto first = node.inputs.begin() + 1, last = node.inputs.begin() + static_cast<int64_t>(own);
        states = {first, last - sequence_count};
        sequences = {last - sequence_count, last};
        captures = {last, node.inputs.end()};
    }
};

/// The sequences of one batch item, cut off at its length.
std::vector<Value*> cut(BatchBody& body, Value* length, const std::vector<Value*>& sequences) {
    if (!length) return sequences;
    Value *zero = body.integers({0}), *end = body.add("Unsqueeze", 13, {length, zero});
    std::vector<Value*> result;
    for (Value* sequence : sequences) result.push_back(body.add("Slice", 13, {sequence, zero, end, zero}));
    return result;
}

/// Adds the Scan over one sequence, whose outputs are the final states, then the stacked slices of all iterations.
Node* scan_sequence(BatchBody& body, const Node& node, const std::vector<Value*>& inputs) {
    Node scan;
    scan.name = node.name;
    scan.index = node.index;
    scan.op_type = "Scan";
    scan.version = 9;
    scan.attributes = {{"body", node.attributes.at("body")},
                       {"captures", node.integer("captures", 0)},
                       {"num_scan_inputs", node.integer("num_scan_inputs")},
                       {"scan_input_directions", node.integers("directions", {})}};
    scan.inputs = inputs;
    for (const Value* output : node.outputs)
        scan.outputs.push_back(body.graph()->new_value(output ? output->name : "unused"));
    return body.graph()->add(std::move(scan));
}

std::shared_ptr<Graph> batch_body(const Node& node, const BatchedScan& scan) {
    BatchBody body(node, node.graph("body"));
    std::vector<Value*> inputs, sequences, captures;
    for (const Value* state : scan.states) inputs.push_back(body.input(state->name));
    for (const Value* sequence : scan.sequences) sequences.push_back(body.input(sequence->name));
    Value* length = scan.lengths ? body.input(scan.lengths->name) : nullptr;
    for (const Value* capture : scan.captures) captures.push_back(body.input(capture->name));

    const std::vector<Value*> parts = cut(body, length, sequences);
    inputs.insert(inputs.end(), parts.begin(), parts.end());
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    const Node* over_sequence = scan_sequence(body, node, inputs);
    Value* missing = nullptr;  // the number of iterations by which the sequence is shorter than the full length
    if (length) {
        const auto length_of = [&](Value* sequence) {
            return body.add("Shape", 15, {sequence}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
        };
        missing = body.add("Sub", 14, {length_of(sequences[0]), length_of(parts[0])});
    }
    for (size_t i = 0; i < over_sequence->outputs.size(); ++i) {
        Value* result = over_sequence->outputs[i];
        if (missing && i >= scan.states.size()) {
            Value* zero = body.integers({0});
            Value* pads = body.add("Concat", 13, {zero, missing}, {{"axis", int64_t{0}}});
            result = body.add("Pad", 18, {result, pads, nullptr, zero});
        }
        body.output(result);
    }
    return body.graph();
}

}  // namespace

void split_off_batch(Node& node) {
    const BatchedScan scan(node);
    const auto is_missing = [](const Value* value) { return value == nullptr; };
    if (std::any_of(node.inputs.begin() + 1, node.inputs.end(), is_missing))
        throw CompileError("a state or scan input is missing");
    if (node.outputs.size() < scan.states.size())
        throw CompileError("has {} outputs, expected at least {}", node.outputs.size(), scan.states.size());
    const std::shared_ptr<Graph> body = batch_body(node, scan);
    node.inputs = scan.states;
    node.inputs.insert(node.inputs.end(), scan.sequences.begin(), scan.sequences.end());
    if (scan.lengths) node.inputs.push_back(scan.lengths);
    const auto count = static_cast<int64_t>(node.inputs.size());
    node.inputs.insert(node.inputs.end(), scan.captures.begin(), scan.captures.end());
    node.attributes = {
        {"body", body}, {"captures", static_cast<int64_t>(scan.captures.size())}, {"num_scan_inputs", count}};
    node.version = 9;
}

}  // namespace onnx2halide
