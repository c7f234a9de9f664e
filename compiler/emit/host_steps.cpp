#include "compiler/emit/host_steps.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/plan/live.h"
#include "ops/control_flow.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

/// Whether a name occurs in C text as a word of its own.
bool uses(const std::string& text, const std::string& name) {
    const auto is_word = [&](size_t i) {
        return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
    };
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        if (!is_word(at - 1) && !is_word(at + name.size())) return true;
    }
    return false;
}

/// What stands in a comment.
std::string comment_text(std::string text) {
    for (size_t end = text.find("*/"); end != std::string::npos; end = text.find("*/")) text[end] = '?';
    return text;
}

std::string step_comment(const Step& step) {
    std::vector<std::string> names;
    for (const Node* node : step.nodes) names.push_back(fmt::format("{} {}", node->op_type, node->name));
    return comment_text(fmt::format("{}", fmt::join(names, ", ")));
}

/// Symbols that stand for a value's extents, as `D(symbol) = number;` from what the value is made of.
using Assignments = std::vector<std::pair<std::string, Dim>>;

void assign_extents(const TensorType& to, const TensorType& from, Assignments& assignments) {
    for (size_t axis = 0; axis < to.rank(); ++axis) {
        if (to.shape[axis] == from.shape[axis]) continue;
        assignments.emplace_back(*to.shape[axis].symbols().begin(), from.shape[axis]);
    }
}

/// One after the other where no number depends on what was set before.
std::string assignment_text(const Assignments& assignments, const std::string& indent) {
    std::string text;
    if (assignments.size() > 1) {
        for (size_t i = 0; i < assignments.size(); ++i)
            text += fmt::format("{}const int64_t next_{} = {};\n", indent, i, session_text(assignments[i].second));
        for (size_t i = 0; i < assignments.size(); ++i)
            text += fmt::format("{}D({}) = next_{};\n", indent, assignments[i].first, i);
        return text;
    }
    for (const auto& [symbol, dim] : assignments)
        text += fmt::format("{}D({}) = {};\n", indent, symbol, session_text(dim));
    return text;
}

/// What a message calls a step: `node 'loop' (Loop)`, in quotes.
std::string quoted_label(const Node& node) { return string_literal(node.label()); }

}  // namespace

std::string halide_type_text(ElementType type) {
    const ElementInfo& element = info(type);
    const std::string_view code = type == ElementType::bfloat16 ? "bfloat"
                                  : element.floating            ? "float"
                                  : is_minifloat(type)          ? "uint"
                                  : element.is_signed           ? "int"
                                                                : "uint";
    return fmt::format("{}, {}", code, element.bytes * 8);
}

std::string session_text(const Dim& dim) {
    std::map<std::string, Dim> names;
    for (const std::string& symbol : dim.symbols())
        names[symbol] = Dim::symbol(fmt::format("D({})", symbol), -Dim::unbounded);
    return dim.substitute(names).text(DimSyntax::c);
}

std::string extents_text(const TensorType& type, std::string (*text)(const Dim&)) {
    std::vector<std::string> extents;
    for (const Dim& dim : type.extents()) extents.push_back(text(dim));
    return extents.empty() ? "SCALAR" : fmt::format("EXTENTS({})", fmt::join(extents, ", "));
}

HostSteps::HostSteps(const Program& program, const std::map<const Value*, std::string>& tensor_names)
    : program_(program), tensor_names_(tensor_names) {}

std::string HostSteps::text() {
    functions_.clear();
    add_function(program_.main, "", "The model, a line a kernel.");
    return fmt::format("{}", fmt::join(functions_, "\n"));
}

bool HostSteps::is_late(const Value* tensor) const {
    return program_.storage(tensor).place == Place::heap || !program_.is_known_early(tensor->checked_type());
}

void HostSteps::add_function(const Block& block, const std::string& after, const std::string& comment) {
    const std::set<const Value*> outer = std::exchange(ready_, {});
    std::string text;
    for (const Value* input : block.graph->inputs) {
        if (has_tensor(input)) read_bindings(input, text);
    }
    write(block, text);
    text += after;
    if (&block == &program_.main) deliver_outputs(text);
    ready_ = outer;
    functions_.push_back(fmt::format("/* {} */\nstatic int {}(onnx2halide_session *session) {{\n{}    return 0;\n}}\n",
                                     comment, block.name, text));
}

void HostSteps::write(const Block& block, std::string& text) {
    for (const Step& step : block.steps) write(step, text);
}

void HostSteps::write(const Step& step, std::string& text) {
    text += fmt::format("    /* {} */\n", step_comment(step));
    switch (step.kind) {
    case Step::Kind::kernel: write_kernel(step, text); break;
    case Step::Kind::host: write_host_call(step, text); break;
    case Step::Kind::branch: write_branch(step, text); break;
    case Step::Kind::repetition: write_repetition(step, text); break;
    }
    for (const Value* output : step.outputs) {
        if (output) read_bindings(output, text);
    }
}

/// On a device a view has a handle of its own, which follows its owner's.
std::string HostSteps::device_views(const Step& step) const {
    std::string text;
    if (!program_.is_gpu()) return text;
    for (const Value* input : step.inputs) {
        const Value* owner = program_.storage(input).root;
        if (owner != input) text += fmt::format("    VIEW({}, {});\n", name(input), name(owner));
    }
    return text;
}

void HostSteps::write_checks(const Node& node, std::string& text) {
    for (const Check& check : make_generator(node)->checks()) {
        if (prove_less_equal(check.low, check.number) == Proof::yes &&
            prove_less_equal(check.number, check.high) == Proof::yes)
            continue;
        text += fmt::format("    CHECK({}, \"{}\", {}, {}, {});\n", quoted_label(node), check.what,
                            session_text(check.number), session_text(check.low), session_text(check.high));
    }
}

/// Views have no step of their own.
void HostSteps::write_view_checks(const Value* tensor, std::string& text) {
    for (const Node* view = view_of(tensor); view; view = view_of(view->inputs[0])) write_checks(*view, text);
}

/// Once their tensors are set up.
void HostSteps::write_index_checks(const Node& node, std::string& text) const {
    for (const IndexCheck& check : make_generator(node)->index_checks()) {
        const Value* indices = node.inputs[check.input];
        if (program_.is_gpu() || indices->is_constant() || !has_tensor(indices)) continue;
        std::vector<std::string> extents;
        for (const Dim& extent : check.extents) extents.push_back(session_text(extent));
        text += fmt::format("    CHECK_INDICES({}, {}, {}, {});\n", quoted_label(node), check.input, name(indices),
                            fmt::join(extents, ", "));
    }
}

void HostSteps::write_kernel(const Step& step, std::string& text) {
    for (const Value* input : step.inputs) prepare_input(input, text);
    for (const Node* node : step.nodes) {
        write_checks(*node, text);
        write_index_checks(*node, text);
    }
    for (const Value* output : step.outputs) prepare_output(output, text);
    std::vector<std::string> arguments = {program_.kernels[step.kernel].name};
    for (const Value* input : step.inputs) arguments.push_back(fmt::format("T({})", name(input)));
    for (const Dim& argument : step.arguments)
        arguments.push_back(argument.constant() ? session_text(argument)
                                                : fmt::format("(int32_t){}", session_text(argument)));
    for (const Value* output : step.outputs) arguments.push_back(fmt::format("T({})", name(output)));
    const auto may_be_empty = [](const Value* output) {
        return prove_less_equal(1, output->checked_type().elements()) != Proof::yes;
    };
    const bool is_guarded = std::all_of(step.outputs.begin(), step.outputs.end(), may_be_empty);
    text += fmt::format("{}    {}{}({});\n", device_views(step),
                        is_guarded ? fmt::format("if (HAS_ELEMENTS({})) ", name(step.outputs[0])) : "",
                        program_.targets.size() == 1 ? "STEP" : "STEP_OF_TARGET", fmt::join(arguments, ", "));
}

void HostSteps::write_host_call(const Step& step, std::string& text) {
    const HostCall call = make_generator(step.node())->host_call();
    write_checks(step.node(), text);
    std::vector<std::string> arguments = {call.function, quoted_label(step.node())};
    arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
    std::vector<std::string> inputs;
    for (size_t i = 0; i < call.inputs; ++i) {
        const Value* input = i < step.inputs.size() ? step.inputs[i] : nullptr;
        if (input) prepare_input(input, text);
        inputs.push_back(input ? fmt::format("T({})", name(input)) : "NULL");
    }
    if (call.inputs_are_list) inputs = {fmt::format("TENSORS({})", fmt::join(inputs, ", "))};
    arguments.insert(arguments.end(), inputs.begin(), inputs.end());
    for (size_t i = 0; i < call.outputs; ++i) {
        const Value* output = i < step.outputs.size() ? step.outputs[i] : nullptr;
        if (!output) {
            arguments.emplace_back("NO_RESULT");
        } else if (program_.storage(output).place == Place::heap) {
            arguments.push_back(fmt::format("HEAP_RESULT({}, {})", name(output), program_.storage(output).index));
            ready_.insert(output);
        } else {
            prepare_output(output, text);
            arguments.push_back(fmt::format("RESULT({})", name(output)));
        }
    }
    text += fmt::format("    HOST({});\n", fmt::join(arguments, ", "));
}

void HostSteps::write_branch(const Step& step, std::string& text) {
    const Value* condition = step.inputs.at(0);
    prepare_input(condition, text);
    for (const Value* output : step.outputs) {
        if (output && !is_late(output)) prepare_output(output, text);
    }
    for (const Block& block : step.blocks) {
        Assignments assignments;
        std::string after;
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            if (step.outputs[i])
                assign_extents(step.outputs[i]->checked_type(), block.graph->outputs[i]->checked_type(), assignments);
        }
        const bool is_then = &block == &step.blocks[0];
        add_function(block, assignment_text(assignments, "    "),
                     comment_text(fmt::format("If {}: where the condition is {}.", step.node().name,
                                              is_then ? "true" : "false")));
    }
    text += fmt::format("    RUN(IS_TRUE({}) ? {}(session) : {}(session));\n", name(condition), step.blocks[0].name,
                        step.blocks[1].name);
}

/// Points slices at the turn's place, and tells the body its turn.
std::string HostSteps::start_of_turn(const Step& step) {
    const Repetition repetition(step.node());
    std::string text;
    if (repetition.turn) {
        const std::string& symbol = repetition.turn->known->integers[0].text();
        if (std::find(program_.symbols.begin(), program_.symbols.end(), symbol) != program_.symbols.end())
            text += fmt::format("    D({}) = turn;\n", symbol);
        if (has_tensor(repetition.turn))
            text += fmt::format("    *(int64_t *)T({})->host = turn;\n", name(repetition.turn));
        if (has_tensor(repetition.condition_input))
            text += fmt::format("    *T({})->host = 1;\n", name(repetition.condition_input));
    }
    const auto point = [&](const Value* slice, bool is_backwards) {
        const Storage& storage = program_.storage(slice);
        if (storage.place != Place::slice) return;
        for (const Value* tensor : program_.tensors) {
            if (program_.storage_of.at(tensor) != program_.storage_of.at(slice)) continue;
            text += fmt::format("    SLICE({}, {}, {});\n", name(tensor), name(storage.whole),
                                is_backwards ? "turns - 1 - turn" : "turn");
        }
    };
    for (size_t i = 0; i < repetition.scans.size(); ++i) {
        const Value* input = repetition.scan_inputs[i];
        if (is_late(input)) prepare_input(input, text);
        point(input, repetition.scan_backwards[i]);
    }
    for (size_t i = 0; i < repetition.slices.size(); ++i) {
        if (repetition.slice_results[i]) point(repetition.slices[i], repetition.slice_backwards[i]);
    }
    return text;
}

/// Hands over what the next turn takes, and adds slices to results.
std::string HostSteps::end_of_turn(const Step& step) {
    const Repetition repetition(step.node());
    std::string text;
    for (size_t i = 0; i < repetition.slices.size(); ++i) {
        const Value *result = repetition.slice_results[i], *slice = repetition.slices[i];
        if (!result || program_.storage(slice).place == Place::slice) continue;
        prepare_input(slice, text);
        if (program_.storage(result).place == Place::heap) {
            text += fmt::format("    APPEND({}, {}, {}, {}, turn);\n", quoted_label(step.node()), name(result),
                                program_.storage(result).index, name(slice));
        } else {
            text += fmt::format("    PUT({}, {}, {});\n", name(result), name(slice),
                                repetition.slice_backwards[i] ? "turns - 1 - turn" : "turn");
        }
        Assignments extents;
        const TensorType &whole = result->checked_type(), &part = slice->checked_type();
        for (size_t axis = 0; axis < part.rank(); ++axis) {
            if (whole.shape[axis + 1] != part.shape[axis])
                extents.emplace_back(*whole.shape[axis + 1].symbols().begin(), part.shape[axis]);
        }
        text += assignment_text(extents, "    ");
    }
    Assignments assignments;
    for (size_t i = 0; i < repetition.states.size(); ++i)
        assign_extents(repetition.state_inputs[i]->checked_type(), repetition.state_outputs[i]->checked_type(),
                       assignments);
    for (const Value* output : repetition.state_outputs) prepare_input(output, text);
    text += assignment_text(assignments, "    ");
    for (size_t i = 0; i < repetition.states.size(); ++i) {
        const Value *state = repetition.state_inputs[i], *next = repetition.state_outputs[i];
        if (program_.storage_of.at(state) == program_.storage_of.at(next)) continue;
        ready_.erase(state);
        prepare_output(state, text);
        text += fmt::format("    COPY({}, {});\n", name(state), name(next));
    }
    if (repetition.condition_output) prepare_input(repetition.condition_output, text);
    return text;
}

void HostSteps::write_repetition(const Step& step, std::string& text) {
    const Repetition repetition(step.node());
    Assignments assignments;
    for (size_t i = 0; i < repetition.states.size(); ++i) {
        prepare_input(repetition.states[i], text);
        assign_extents(repetition.state_inputs[i]->checked_type(), repetition.states[i]->checked_type(), assignments);
    }
    for (const Value* scan : repetition.scans) prepare_input(scan, text);
    text += assignment_text(assignments, "    ");
    for (size_t i = 0; i < repetition.states.size(); ++i) {
        prepare_output(repetition.state_inputs[i], text);
        text += fmt::format("    COPY({}, {});\n", name(repetition.state_inputs[i]), name(repetition.states[i]));
    }
    std::string counted;  // the symbol for the number of turns
    for (const Value* result : repetition.slice_results) {
        if (!result) continue;
        const std::string turns_symbol = fmt::format("{}_{}_turns", step.node().op_type, step.node().index);
        for (const Dim& dim : result->checked_type().shape) {
            if (program_.is_known_early(dim) ||
                !dim.text().starts_with(step.node().op_type + "_" + fmt::to_string(step.node().index) + "_"))
                continue;
            text += fmt::format("    D({}) = 0;\n", dim.text());
            if (dim.text() == turns_symbol) counted = turns_symbol;
        }
        prepare_output(result, text);
    }

    const std::set<const Value*> outer = std::exchange(ready_, {});
    const Block& body = step.blocks[0];
    const std::string start = start_of_turn(step);
    // The end is written after the body, which says what it has set up.
    const size_t functions = functions_.size();
    (void)functions;
    std::string inside = start;
    for (const Value* input : body.graph->inputs) {
        if (has_tensor(input)) read_bindings(input, inside);
    }
    write(body, inside);
    inside += end_of_turn(step);
    const bool has_condition =
        repetition.condition_output && has_tensor(repetition.condition_output) &&
        !(repetition.condition_output->known && repetition.condition_output->known->integers.at(0).is(1));
    if (has_condition) inside += fmt::format("    *goes_on = IS_TRUE({});\n", name(repetition.condition_output));
    ready_ = outer;

    std::string parameters = "onnx2halide_session *session", arguments = "session";
    for (const char* parameter : {"turn", "turns"}) {
        if (!uses(inside, parameter)) continue;
        parameters += fmt::format(", int64_t {}", parameter);
        arguments += fmt::format(", {}", parameter);
    }
    if (has_condition) {
        parameters += ", int *goes_on";
        arguments += ", &goes_on";
    }
    functions_.push_back(fmt::format("/* {} {}: one turn. */\nstatic int {}({}) {{\n{}    return 0;\n}}\n",
                                     step.node().op_type, comment_text(step.node().name), body.name, parameters,
                                     inside));

    std::string turns = "INT64_MAX";
    if (!repetition.is_loop) {
        turns = session_text(repetition.scans.at(0)->checked_type().shape.at(0));
    } else if (repetition.count) {
        if (repetition.count->known) {
            turns = session_text(repetition.count->known->integers.at(0));
        } else {
            prepare_input(repetition.count, text);
            turns = fmt::format("*(const int64_t *)T({})->host", name(repetition.count));
        }
    }
    text += "    {\n";
    text += fmt::format("        const int64_t turns = {};\n        int64_t turn = 0;\n", turns);
    std::string condition = "turn < turns";
    const bool starts_known =
        !repetition.condition || (repetition.condition->known && repetition.condition->known->integers.at(0).is(1));
    if (!starts_known) {
        std::string setup;
        prepare_input(repetition.condition, setup);
        text = text + setup;
        text += fmt::format("        int goes_on = IS_TRUE({});\n", name(repetition.condition));
        condition += " && goes_on";
    } else if (has_condition) {
        text += "        int goes_on = 1;\n";
        condition += " && goes_on";
    }
    if (!has_condition && repetition.is_loop)
        text += fmt::format("        CHECK_TURNS({}, turns);\n", quoted_label(step.node()));
    text += fmt::format("        for (; {}; ++turn) RUN({}({}));\n", condition, body.name, arguments);
    if (!counted.empty()) text += fmt::format("        D({}) = turn;\n", counted);
    text += "    }\n";
    for (const Value* result : repetition.slice_results) ready_.erase(result);
}

void HostSteps::prepare_input(const Value* tensor, std::string& text) {
    if (!is_late(tensor) || !ready_.insert(tensor).second) return;
    write_view_checks(tensor, text);
    const Storage& storage = program_.storage(tensor);
    std::string address;
    switch (storage.place) {
    case Place::heap: address = fmt::format("session->heap[{}].data", storage.index); break;
    case Place::weight: address = fmt::format("session->weights + {}", storage.offset); break;
    case Place::slice: address = "NULL"; break;
    default: address = fmt::format("T({})->host", name(storage.root)); break;
    }
    text += fmt::format("    VIEW_OF({}, {}, {});\n", name(tensor), address, extents_text(tensor->checked_type()));
}

void HostSteps::prepare_output(const Value* tensor, std::string& text) {
    if (!is_late(tensor) || !ready_.insert(tensor).second) return;
    const Storage& storage = program_.storage(tensor);
    if (storage.place == Place::heap) {
        text += fmt::format("    ON_HEAP({}, {}, {});\n", name(tensor), storage.index,
                            extents_text(tensor->checked_type()));
    } else {
        ready_.erase(tensor);
        prepare_input(tensor, text);
    }
}

void HostSteps::read_bindings(const Value* tensor, std::string& text) const {
    for (const Binding& binding : tensor->bindings) {
        if (std::find(program_.symbols.begin(), program_.symbols.end(), binding.symbol) == program_.symbols.end())
            continue;
        const std::string_view c_type = info(tensor->checked_type().element).c_name;
        text += binding.kind == Binding::Kind::extent
                    ? fmt::format("    D({}) = EXTENT({}, {});\n", binding.symbol, name(tensor), binding.index)
                    : fmt::format("    D({}) = ELEMENT({}, {}, {});\n", binding.symbol, c_type, name(tensor),
                                  binding.index);
    }
}

void HostSteps::deliver_outputs(std::string& text) {
    const auto& outputs = program_.graph->outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (program_.is_gpu()) {
            text += fmt::format("    if (halide_copy_to_host(session, T({})) != 0) return onnx2halide_fail(session, "
                                "ONNX2HALIDE_FAILED, \"an output cannot be read back\");\n",
                                name(program_.storage(outputs[i]).root));
        }
        if (!is_late(outputs[i])) continue;
        prepare_input(outputs[i], text);
        text += fmt::format("    DELIVER({}, {});\n", i, name(outputs[i]));
    }
}

}  // namespace onnx2halide
