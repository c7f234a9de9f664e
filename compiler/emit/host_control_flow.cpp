#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/emit/host_steps.h"
#include "ops/names.h"

// Branches and loops.

namespace onnx2halide {

namespace {

/// Symbols and the dims that are assigned to them, as `D(symbol) = dim;`.
using Assignments = std::vector<std::pair<std::string, Dim>>;

/// Assigns the extents of `from` to the symbols that are extents of `to`.
void assign_extents(const TensorType& to, const TensorType& from, Assignments& assignments) {
    for (size_t axis = 0; axis < to.rank(); ++axis) {
        if (to.shape[axis] == from.shape[axis]) continue;
        assignments.emplace_back(*to.shape[axis].symbols().begin(), from.shape[axis]);
    }
}

/// Assigns all symbols at once: every dim is computed before the first symbol is set.
std::string assignment_text(const Assignments& assignments) {
    if (assignments.empty()) return "";
    if (assignments.size() == 1)
        return fmt::format("    D({}) = {};\n", assignments[0].first, session_text(assignments[0].second));
    std::string text = "    {\n";
    for (size_t i = 0; i < assignments.size(); ++i)
        text += fmt::format("        const int64_t next_{} = {};\n", i, session_text(assignments[i].second));
    for (size_t i = 0; i < assignments.size(); ++i)
        text += fmt::format("        D({}) = next_{};\n", assignments[i].first, i);
    return text + "    }\n";
}

/// The index of the slice that an iteration reads or makes.
std::string_view slice_index(bool is_backwards) { return is_backwards ? "trip_count - 1 - iteration" : "iteration"; }

bool is_known_true(const Value* condition) { return condition->known && condition->known->integers.at(0).is(1); }

}  // namespace

void HostSteps::write_branch(const Step& step, std::string& text) {
    const Value* condition = step.inputs.at(0);
    prepare_input(condition, text);
    for (const Value* output : step.outputs) {
        if (output && !program_.is_late(output)) prepare_output(output, text);
    }
    for (const Block& block : step.blocks) {
        Assignments assignments;
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            if (step.outputs[i])
                assign_extents(step.outputs[i]->checked_type(), block.graph->outputs[i]->checked_type(), assignments);
        }
        const bool is_then = &block == &step.blocks[0];
        add_function(
            block, assignment_text(assignments),
            comment_text(fmt::format("If {}: the condition is {}.", step.node().name, is_then ? "true" : "false")));
    }
    text += crossing("TO_HOST", {condition});
    text += fmt::format("    RUN(IS_TRUE({}) ? {}(session) : {}(session));\n", name(condition), step.blocks[0].name,
                        step.blocks[1].name);
}

/// Points slices at those of this iteration, and sets the body's iteration number and condition.
std::string HostSteps::start_of_iteration(const Step& step) {
    const Repetition repetition(step.node());
    std::string text;
    if (const Value* number = repetition.iteration_number) {
        const std::string& symbol = number->known->integers[0].text();
        if (program_.has_symbol(symbol)) text += fmt::format("    D({}) = iteration;\n", symbol);
        if (has_tensor(number))
            text += fmt::format("    *(int64_t*)T({})->host = iteration;\n", name(number)) +
                    crossing("MADE_ON_HOST", {number});
        if (has_tensor(repetition.condition_input))
            text += fmt::format("    *T({})->host = 1;\n", name(repetition.condition_input)) +
                    crossing("MADE_ON_HOST", {repetition.condition_input});
    }
    const auto point = [&](const Value* slice, bool is_backwards) {
        const Storage& storage = program_.storage(slice);
        if (storage.storage_class != StorageClass::slice) return;
        for (const Value* tensor : program_.tensors) {
            if (program_.storage_of.at(tensor) != program_.storage_of.at(slice)) continue;
            // Another tensor whose shape is not known yet is set up later, from the slice.
            if (program_.is_late(tensor) && tensor != slice) continue;
            text +=
                fmt::format("    SLICE({}, {}, {});\n", name(tensor), name(storage.whole), slice_index(is_backwards));
        }
    };
    for (const Repetition::ScanInput& input : repetition.scan_inputs) {
        if (program_.is_late(input.slice)) prepare_input(input.slice, text);
        point(input.slice, input.is_backwards);
        if (program_.is_gpu())
            text += fmt::format("    TAKE_SLICE({}, {}, {});\n", name(input.slice), name(input.whole),
                                slice_index(input.is_backwards));
    }
    for (const Repetition::ScanOutput& output : repetition.scan_outputs) {
        if (output.whole) point(output.slice, output.is_backwards);
    }
    return text;
}

/// Copies the slices that an iteration made into results that it did not write in place.
void HostSteps::append_slices(const Step& step, std::string& text) {
    for (const auto& [slice, result, is_backwards] : Repetition(step.node()).scan_outputs) {
        if (!result) continue;
        // On a device a slice has memory of its own.
        if (program_.storage(slice).storage_class == StorageClass::slice && !program_.is_gpu()) continue;
        prepare_input(slice, text);
        if (program_.storage(result).storage_class == StorageClass::heap) {
            text += crossing("TO_HOST", {slice});
            text += fmt::format("    APPEND({}, {}, {}, {}, iteration);\n", quoted_label(step.node()), name(result),
                                program_.storage(result).index, name(slice));
        } else {
            text += fmt::format("    {}({}, {}, {});\n", program_.is_gpu() ? "PUT_SLICE" : "PUT", name(result),
                                name(slice), slice_index(is_backwards));
        }
        Assignments extents;
        const TensorType &whole = result->checked_type(), &part = slice->checked_type();
        for (size_t axis = 0; axis < part.rank(); ++axis) {
            if (whole.shape[axis + 1] != part.shape[axis])
                extents.emplace_back(*whole.shape[axis + 1].symbols().begin(), part.shape[axis]);
        }
        text += assignment_text(extents);
    }
}

/// Passes the states on to the next iteration.
void HostSteps::hand_over_states(const Repetition& repetition, std::string& text) {
    Assignments assignments;
    for (const Repetition::State& state : repetition.states)
        assign_extents(state.input->checked_type(), state.output->checked_type(), assignments);
    for (const Repetition::State& state : repetition.states) prepare_input(state.output, text);
    text += assignment_text(assignments);
    for (const Repetition::State& state : repetition.states) {
        if (program_.storage_of.at(state.input) == program_.storage_of.at(state.output)) continue;
        ready_.erase(state.input);
        prepare_output(state.input, text);
        text += copy_text(state.input, state.output);
    }
}

std::string HostSteps::end_of_iteration(const Step& step) {
    const Repetition repetition(step.node());
    std::string text;
    append_slices(step, text);
    hand_over_states(repetition, text);
    if (repetition.condition_output) prepare_input(repetition.condition_output, text);
    return text;
}

HostSteps::IterationFunction HostSteps::add_iteration_function(const Step& step) {
    const Repetition repetition(step.node());
    const Block& body = step.blocks[0];
    const Value* condition = repetition.condition_output;
    const bool has_condition = condition && has_tensor(condition) && !is_known_true(condition);
    const std::set<const Value*> outer = std::exchange(ready_, {});
    std::string text = start_of_iteration(step);
    for (const Value* input : body.graph->inputs) {
        if (has_tensor(input)) read_bindings(input, text);
    }
    write(body, text);
    text += end_of_iteration(step);
    if (has_condition)
        text += crossing("TO_HOST", {condition}) + fmt::format("    *goes_on = IS_TRUE({});\n", name(condition));
    ready_ = outer;

    std::string parameters = "onnx2halide_session* session", arguments = "session";
    for (const char* parameter : {"iteration", "trip_count"}) {
        if (!mentions(text, parameter)) continue;
        parameters += fmt::format(", int64_t {}", parameter);
        arguments += fmt::format(", {}", parameter);
    }
    if (has_condition) {
        parameters += ", int* goes_on";
        arguments += ", &goes_on";
    }
    functions_.push_back(fmt::format("/* {} {}: one iteration. */\nstatic int {}({}) {{\n{}    return 0;\n}}\n",
                                     step.node().op_type, comment_text(step.node().name), body.name, parameters, text));
    return {fmt::format("{}({})", body.name, arguments), has_condition};
}

void HostSteps::write_first_states(const Repetition& repetition, std::string& text) {
    Assignments assignments;
    for (const Repetition::State& state : repetition.states) {
        prepare_input(state.initial, text);
        assign_extents(state.input->checked_type(), state.initial->checked_type(), assignments);
    }
    for (const Repetition::ScanInput& input : repetition.scan_inputs) prepare_input(input.whole, text);
    text += assignment_text(assignments);
    for (const Repetition::State& state : repetition.states) {
        prepare_output(state.input, text);
        text += copy_text(state.input, state.initial);
    }
}

/// Makes the tensors whose slices the iterations read visible to the side, host or device, that reads them.
void HostSteps::write_scanned(const Step& step, std::string& text) const {
    std::set<size_t> read;  // storages that kernels read
    for_each_step(step.blocks[0], [&](const Step& inner) {
        if (inner.kind != Step::Kind::kernel) return;
        for (const Value* input : inner.inputs) {
            for (const Value* part = input; part; part = program_.storage(part).whole)
                read.insert(program_.storage_of.at(part));
        }
    });
    for (const Repetition::ScanInput& input : Repetition(step.node()).scan_inputs) {
        const bool is_for_kernels = read.contains(program_.storage_of.at(input.slice));
        text += crossing(is_for_kernels ? "TO_DEVICE" : "TO_HOST", {input.whole});
    }
}

/// Empties the results that grow with each iteration.
void HostSteps::write_empty_slices(const Step& step, std::string& text) {
    for (const Repetition::ScanOutput& output : Repetition(step.node()).scan_outputs) {
        const Value* result = output.whole;
        if (!result) continue;
        for (const Dim& dim : result->checked_type().shape) {
            if (!program_.is_known_before_run(dim) && dim.text().starts_with(own_symbol_name(step.node(), "")))
                text += fmt::format("    D({}) = 0;\n", dim.text());
        }
        prepare_output(result, text);
        if (program_.storage(result).storage_class != StorageClass::heap) text += crossing("START", {result});
    }
}

/// The most iterations, as C text.
std::string HostSteps::trip_count_text(const Repetition& repetition, std::string& text) {
    if (!repetition.is_loop) return session_text(repetition.scan_inputs.at(0).whole->checked_type().shape.at(0));
    const Value* count = repetition.trip_count;
    if (!count) return "INT64_MAX";
    if (count->known) return session_text(count->known->integers.at(0));
    prepare_input(count, text);
    text += crossing("TO_HOST", {count});
    return fmt::format("*(const int64_t*)T({})->host", name(count));
}

void HostSteps::write_repetition(const Step& step, std::string& text) {
    const Repetition repetition(step.node());
    write_checks(step.node(), text);
    write_first_states(repetition, text);
    write_scanned(step, text);
    write_empty_slices(step, text);
    const auto [call, has_condition] = add_iteration_function(step);
    const bool asks_first = repetition.condition && !is_known_true(repetition.condition);
    if (asks_first) {
        prepare_input(repetition.condition, text);
        text += crossing("TO_HOST", {repetition.condition});
    }

    const std::string trip_count = trip_count_text(repetition, text);
    text += fmt::format("    {{\n        const int64_t trip_count = {};\n        int64_t iteration = 0;\n", trip_count);
    if (asks_first || has_condition) {
        const std::string first = asks_first ? fmt::format("IS_TRUE({})", name(repetition.condition)) : "1";
        text += fmt::format("        int goes_on = {};\n", first);
    }
    if (!has_condition && repetition.is_loop)
        text += fmt::format("        CHECK_TRIP_COUNT({}, trip_count);\n", quoted_label(step.node()));
    text += fmt::format("        for (; iteration < trip_count{}; ++iteration) RUN({});\n",
                        asks_first || has_condition ? " && goes_on" : "", call);
    const std::string iterations = own_symbol_name(step.node(), "iterations");
    if (program_.has_symbol(iterations)) text += fmt::format("        D({}) = iteration;\n", iterations);
    text += "    }\n";
    for (const Repetition::ScanOutput& output : repetition.scan_outputs) {
        if (!output.whole) continue;
        if (program_.storage(output.whole).storage_class == StorageClass::heap) {
            text += crossing("MADE_ON_HOST", {output.whole});
            if (output.is_backwards) text += fmt::format("    REVERSE({});\n", name(output.whole));
        }
        ready_.erase(output.whole);
    }
}

}  // namespace onnx2halide
