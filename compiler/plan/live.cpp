#include "compiler/plan/live.h"

#include <algorithm>

#include "ops/control_flow.h"

namespace onnx2halide {

namespace {

void add_symbols(const Value* value, std::set<std::string>& symbols) {
    if (!value) return;
    for (const Dim& dim : value->checked_type().shape) symbols.merge(dim.symbols());
}

void add_check_symbols(const Node& node, std::set<std::string>& symbols) {
    const auto generator = make_generator(node);
    for (const Check& check : generator->checks()) {
        for (const Dim& dim : {check.number, check.low, check.high}) symbols.merge(dim.symbols());
    }
    for (const IndexCheck& check : generator->index_checks()) {
        for (const Dim& extent : check.extents) symbols.merge(extent.symbols());
        const auto& known = node.inputs[check.input]->known;
        if (!known) continue;
        for (const Dim& index : known->integers) symbols.merge(index.symbols());
    }
}

void add_call_symbols(const Step& step, std::set<std::string>& symbols) {
    for (const KernelCall& call : step.calls) {
        for (const Dim& argument : call.arguments) symbols.merge(argument.symbols());
    }
    if (!step.choice) return;
    for (const Dim& cycles : {step.choice->first_cycles, step.choice->second_cycles}) symbols.merge(cycles.symbols());
}

void add_view_symbols(const Value* value, std::set<std::string>& symbols) {
    for (const Node* view = view_of(value); view; view = view_of(view->inputs[0])) add_check_symbols(*view, symbols);
}

/// Whether a control-flow node sets one of these symbols: an extent of a result that does not occur in its inputs.
bool sets_any(const Step& step, const std::set<std::string>& symbols) {
    if (step.blocks.empty()) return false;
    std::set<std::string> given, made;
    for (const Value* input : step.inputs) add_symbols(input, given);
    for (const Value* output : step.outputs) add_symbols(output, made);
    return std::any_of(made.begin(), made.end(),
                       [&](const std::string& symbol) { return symbols.contains(symbol) && !given.contains(symbol); });
}

}  // namespace

std::set<std::string> symbols_of(const Value* value) {
    std::set<std::string> symbols;
    add_symbols(value, symbols);
    add_view_symbols(value, symbols);
    return symbols;
}

std::set<std::string> symbols_of(const Step& step) {
    std::set<std::string> symbols;
    for (const Node* node : step.nodes) add_check_symbols(*node, symbols);
    for (const Value* input : step.inputs) add_view_symbols(input, symbols);
    add_call_symbols(step, symbols);
    for (const Value* input : step.inputs) add_symbols(input, symbols);
    for (const Value* output : step.outputs) add_symbols(output, symbols);
    for (const Block& block : step.blocks) {
        for (const Value* input : block.graph->inputs) add_symbols(input, symbols);
        for (const Value* output : block.graph->outputs) add_symbols(output, symbols);
        for (const Step& inner : block.steps) symbols.merge(symbols_of(inner));
    }
    if (step.kind == Step::Kind::repetition) {
        const Repetition repetition(step.node());
        if (repetition.trip_count && repetition.trip_count->known) {
            for (const Dim& element : repetition.trip_count->known->integers) symbols.merge(element.symbols());
        }
    }
    return symbols;
}

void LiveValues::need(const Value* value) {
    while (value) {
        values_.insert(value);
        for (const Dim& dim : value->checked_type().shape) symbols_.merge(dim.symbols());
        const Node* view = view_of(value);
        if (view) add_check_symbols(*view, symbols_);
        if (!view && value->producer) {
            for (const int64_t i : make_generator(*value->producer)->inputs_in_place())
                need(value->producer->inputs[i]);
        }
        value = view ? view->inputs[0] : nullptr;
    }
}

bool LiveValues::add_needs(const Block& block) {
    const size_t before = values_.size() + symbols_.size();
    for (const Value* input : block.graph->inputs) {
        for (const Binding& binding : input->bindings) {
            if (symbols_.contains(binding.symbol)) need(input);
        }
    }
    for (auto step = block.steps.rbegin(); step != block.steps.rend(); ++step) {
        if (is_live(*step)) add_needs(*step);
    }
    return values_.size() + symbols_.size() > before;
}

bool LiveValues::is_live(const Step& step) const {
    if (step.outputs.empty() || sets_any(step, symbols_)) return true;  // a step without outputs is a check
    return std::any_of(step.outputs.begin(), step.outputs.end(), [&](const Value* output) {
        if (!output) return false;
        const auto is_used = [&](const Binding& binding) { return symbols_.contains(binding.symbol); };
        return values_.contains(output) || std::any_of(output->bindings.begin(), output->bindings.end(), is_used);
    });
}

void LiveValues::add_needs(const Step& step) {
    add_call_symbols(step, symbols_);
    for (const Node* node : step.nodes) add_check_symbols(*node, symbols_);
    for (const Value* output : step.outputs) {
        for (const Dim& dim : output ? output->checked_type().shape : std::vector<Dim>()) symbols_.merge(dim.symbols());
    }
    for (const Value* input : step.inputs) {
        if (step.blocks.empty()) need(input);
    }
    if (step.kind == Step::Kind::branch) need(step.inputs.at(0));
    if (step.kind == Step::Kind::repetition) add_needs_of_repetition(step);
    for (const Block& block : step.blocks) {
        // A control-flow node makes all of its results, needed or not.
        for (const Value* output : block.graph->outputs) need(output);
        add_needs(block);
        const size_t own = step.inputs.size() - static_cast<size_t>(step.node().integer("captures"));
        const size_t inner = block.graph->inputs.size() - static_cast<size_t>(step.node().integer("captures"));
        for (size_t i = own; i < step.inputs.size(); ++i) {
            if (values_.contains(block.graph->inputs[inner + i - own])) need(step.inputs[i]);
        }
    }
}

void LiveValues::add_needs_of_repetition(const Step& step) {
    const Repetition repetition(step.node());
    if (repetition.condition) need(repetition.condition);
    if (repetition.trip_count && !repetition.trip_count->known) need(repetition.trip_count);
    if (repetition.trip_count && repetition.trip_count->known) {
        for (const Dim& element : repetition.trip_count->known->integers) symbols_.merge(element.symbols());
    }
    for (const Repetition::State& state : repetition.states) need(state.initial);
    for (const Repetition::ScanInput& input : repetition.scan_inputs) need(input.whole);
}

void LiveValues::keep_live_steps(Block& block) const {
    std::erase_if(block.steps, [&](const Step& step) { return !is_live(step); });
    for (Step& step : block.steps) {
        for (Block& inner : step.blocks) keep_live_steps(inner);
    }
}

}  // namespace onnx2halide
