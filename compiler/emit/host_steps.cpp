#include "compiler/emit/host_steps.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/plan/live.h"
#include "compiler/plan/work.h"
#include "ops/names.h"
#include "runtime/threads.h"

namespace onnx2halide {

namespace {

std::string step_comment(const Step& step) {
    std::vector<std::string> names;
    for (const Node* node : step.nodes) names.push_back(fmt::format("{} {}", node->op_type, node->name));
    return comment_text(fmt::format("{}", fmt::join(names, ", ")));
}

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
    for (const std::string& symbol : dim.symbols()) {
        const bool is_dim = symbol != thread_count_symbol;
        names[symbol] = Dim::symbol(is_dim ? fmt::format("D({})", symbol) : "session->threads", -Dim::unbounded);
    }
    return dim.substitute(names).text(DimSyntax::c);
}

std::string extents_text(const TensorType& type, std::string (*text)(const Dim&)) {
    std::vector<std::string> extents;
    for (const Dim& dim : type.extents()) extents.push_back(text(dim));
    return extents.empty() ? "SCALAR" : fmt::format("EXTENTS({})", fmt::join(extents, ", "));
}

HostSteps::HostSteps(const Program& program, const std::map<const Value*, std::string>& tensor_names)
    : program_(program), tensor_names_(tensor_names) {}

std::string quoted_label(const Node& node) { return string_literal(node.label()); }

std::string HostSteps::text() {
    functions_.clear();
    add_function(program_.main, "", "The model, with one line per kernel.");
    return fmt::format("{}", fmt::join(functions_, "\n"));
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
    functions_.push_back(fmt::format("/* {} */\nstatic int {}(onnx2halide_session* session) {{\n{}    return 0;\n}}\n",
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

/// `TO_HOST(T(a), T(b));`, which makes tensors visible to the other of host and device. Empty without a device.
std::string HostSteps::crossing(const char* macro, const std::vector<const Value*>& tensors) const {
    std::vector<std::string> arguments;
    for (const Value* tensor : tensors) {
        if (tensor) arguments.push_back(fmt::format("T({})", name(tensor)));
    }
    if (!program_.is_gpu() || arguments.empty()) return "";
    return fmt::format("    {}({});\n", macro, fmt::join(arguments, ", "));
}

std::string HostSteps::copy_text(const Value* to, const Value* from) const {
    return fmt::format("    {}({}, {});\n", program_.is_gpu() ? "COPY_TENSOR" : "COPY", name(to), name(from));
}

void HostSteps::write_checks(const Node& node, std::string& text) {
    for (const Check& check : make_generator(node)->checks()) {
        write_check(node, check, text);
    }
}

/// Checks the extents of a result that are found in elements of tensors: those may be any number.
void HostSteps::write_result_checks(const Value* output, std::string& text) {
    const std::vector<Dim>& shape = output->checked_type().shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        const Dim number = shape[axis].number_of_extent().value_or(shape[axis]);
        if (prove_less_equal(0, number) == Proof::yes) continue;
        write_check(*output->producer, {fmt::format("dim {} of the result", axis), number, 0, Dim::unbounded - 1},
                    text);
    }
}

void HostSteps::write_check(const Node& node, const Check& check, std::string& text) {
    if (prove_less_equal(check.low, check.number) == Proof::yes &&
        prove_less_equal(check.number, check.high) == Proof::yes)
        return;
    if (check.or_one) {
        text += fmt::format("    CHECK_BROADCAST({}, {}, {}, {});\n", quoted_label(node), string_literal(check.what),
                            session_text(check.number), session_text(check.high));
        return;
    }
    text += fmt::format("    CHECK({}, {}, {}, {}, {});\n", quoted_label(node), string_literal(check.what),
                        session_text(check.number), session_text(check.low), session_text(check.high));
}

/// Writes the checks of a view's nodes, which have no step of their own.
void HostSteps::write_view_checks(const Value* tensor, std::string& text) {
    for (const Node* view = view_of(tensor); view; view = view_of(view->inputs[0])) write_checks(*view, text);
}

namespace {

/// The indices to check against extent number `place`, where index i belongs to extent i % extents: the lowest and the
/// highest of a constant, else those that inference knows.
std::vector<Dim> telling_indices(const Value* indices, size_t place, size_t extents) {
    std::vector<Dim> telling;
    if (!indices->is_constant()) {
        for (size_t i = place; i < indices->known->integers.size(); i += extents)
            telling.push_back(indices->known->integers[i]);
        return telling;
    }
    std::set<int64_t> numbers;
    const std::vector<int64_t> all = indices->constant->integers();
    for (size_t i = place; i < all.size(); i += extents) numbers.insert(all[i]);
    if (!numbers.empty()) telling.push_back(*numbers.begin());
    if (numbers.size() > 1) telling.push_back(*numbers.rbegin());
    return telling;
}

}  // namespace

/// Checks the indices that are known when the model is compiled against their extents.
void HostSteps::write_known_index_checks(const Node& node, const IndexCheck& check, std::string& text) {
    const std::string what = fmt::format("an index of input {}", check.input);
    for (size_t place = 0; place < check.extents.size(); ++place) {
        const Dim& extent = check.extents[place];
        for (const Dim& index : telling_indices(node.inputs[check.input], place, check.extents.size()))
            write_check(node, {what, index, 0 - extent, extent - 1}, text);
    }
}

/// Checks the operands that hold indices, whose tensors must be set up.
void HostSteps::write_index_checks(const Node& node, std::string& text) {
    for (const IndexCheck& check : make_generator(node)->index_checks()) {
        const Value* indices = node.inputs[check.input];
        if (indices->is_constant() || (indices->known && !has_tensor(indices))) {
            write_known_index_checks(node, check, text);
            continue;
        }
        if (!has_tensor(indices)) continue;
        std::vector<std::string> extents;
        for (const Dim& extent : check.extents) extents.push_back(session_text(extent));
        text += crossing("TO_HOST", {indices});
        text += fmt::format("    CHECK_INDICES({}, {}, {}, {});\n", quoted_label(node), check.input, name(indices),
                            fmt::join(extents, ", "));
    }
}

/// `if (...) ` if all results of a kernel may be empty.
std::string HostSteps::guard_text(const std::vector<const Value*>& outputs) const {
    std::vector<std::string> conditions;
    std::vector<Dim> counts;
    for (const Value* output : outputs) {
        const Dim count = output->checked_type().elements();
        if (prove_less_equal(1, count) == Proof::yes) return "";
        if (std::find(counts.begin(), counts.end(), count) != counts.end()) continue;
        counts.push_back(count);
        conditions.push_back(fmt::format("HAS_ELEMENTS({})", name(output)));
    }
    return fmt::format("if ({}) ", fmt::join(conditions, " || "));
}

void HostSteps::write_kernel(const Step& step, std::string& text) {
    for (const Value* input : step.inputs) prepare_input(input, text);
    for (const Node* node : step.nodes) {
        write_checks(*node, text);
        write_index_checks(*node, text);
    }
    for (const Value* output : step.outputs) write_result_checks(output, text);
    if (program_.views_if_whole.contains(step.outputs[0])) return write_view_if_whole(step, text);
    for (const Value* output : step.outputs) prepare_output(output, text);
    text += crossing("TO_DEVICE", step.inputs) + crossing("MAKE_ON_DEVICE", step.outputs);
    const std::string guard = guard_text(step.outputs);
    if (!step.choice) {
        text += fmt::format("    {}{}\n", guard, call_text(step, step.calls[0]));
        return;
    }
    text += fmt::format("    {}{{ /* the faster one, by estimated cycles */\n", guard);
    text += fmt::format("        if ({} <= {})\n            {}\n        else\n            {}\n    }}\n",
                        session_text(step.choice->first_cycles), session_text(step.choice->second_cycles),
                        call_text(step, step.calls[0]), call_text(step, step.calls[1]));
}

/// A kernel that copies its input, or part of it, unless the result is a view of the whole.
void HostSteps::write_view_if_whole(const Step& step, std::string& text) {
    const Value *output = step.outputs[0], *input = program_.views_if_whole.at(output);
    const TensorType &whole = input->checked_type(), &type = output->checked_type();
    std::vector<std::string> conditions;
    for (size_t axis = 0; axis < type.rank(); ++axis) {
        if (prove_equal(whole.shape[axis], type.shape[axis]) != Proof::yes)
            conditions.push_back(
                fmt::format("{} == {}", session_text(type.shape[axis]), session_text(whole.shape[axis])));
    }
    std::string copy;
    prepare_output(output, copy);
    text += fmt::format(
        "    if ({}) {{\n        VIEW_OF({}, T({})->host, {});\n    }} else {{\n    {}        {}{}\n    }}\n",
        fmt::join(conditions, " && "), name(output), name(input), extents_text(type), copy, guard_text(step.outputs),
        call_text(step, step.calls[0]));
}

/// `STEP(conv, T(image), T(weights), (int32_t)D(height), T(result));`, inside `WORK(D(height) * 288, ...);` if there is
/// open_work.
std::string HostSteps::call_text(const Step& step, const KernelCall& call) const {
    std::vector<std::string> arguments = {program_.kernels[call.kernel].name};
    for (const Value* input : call.inputs) arguments.push_back(fmt::format("T({})", name(input)));
    for (const Dim& argument : call.arguments)
        arguments.push_back(argument.constant() ? session_text(argument)
                                                : fmt::format("(int32_t){}", session_text(argument)));
    for (const Value* output : step.outputs) arguments.push_back(fmt::format("T({})", name(output)));
    const std::string text =
        fmt::format("{}({})", program_.targets.size() == 1 ? "STEP" : "STEP_OF_TARGET", fmt::join(arguments, ", "));
    const auto work = open_work(step);
    return work ? fmt::format("WORK({}, {});", session_text(*work), text) : text + ";";
}

/// The operations and bytes of a step if they are known only at run time and may be too few to be worth sharing among
/// threads; nullopt for other steps, whose kernels decide that themselves.
std::optional<Dim> HostSteps::open_work(const Step& step) const {
    if (program_.is_gpu()) return std::nullopt;
    const Work work = work_of(step);
    const Dim amount = work.flops + work.bytes_read + work.bytes_written;
    if (amount.constant() || prove_less_equal(ONNX2HALIDE_SHARED_WORK, amount) == Proof::yes) return std::nullopt;
    return amount;
}

void HostSteps::write_host_call(const Step& step, std::string& text) {
    const HostCall call = make_generator(step.node())->host_call();
    write_checks(step.node(), text);
    std::vector<std::string> arguments = {call.function, quoted_label(step.node())};
    arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
    std::vector<std::string> inputs;
    std::vector<const Value*> read;
    for (size_t i = 0; i < call.inputs; ++i) {
        const Value* input = i < step.inputs.size() ? step.inputs[i] : nullptr;
        if (input) prepare_input(input, text);
        read.push_back(input);
        inputs.push_back(input ? fmt::format("T({})", name(input)) : "NULL");
    }
    if (call.inputs_are_list) inputs = {fmt::format("TENSORS({})", fmt::join(inputs, ", "))};
    arguments.insert(arguments.end(), inputs.begin(), inputs.end());
    for (size_t i = 0; i < call.outputs; ++i) {
        const Value* output = i < step.outputs.size() ? step.outputs[i] : nullptr;
        if (!output) {
            arguments.emplace_back("NO_RESULT");
        } else if (program_.storage(output).storage_class == StorageClass::heap) {
            arguments.push_back(fmt::format("HEAP_RESULT({}, {})", name(output), program_.storage(output).index));
            ready_.insert(output);
        } else {
            prepare_output(output, text);
            arguments.push_back(fmt::format("RESULT({})", name(output)));
        }
    }
    text += crossing("TO_HOST", read);
    text += fmt::format("    HOST({});\n", fmt::join(arguments, ", "));
    text += crossing("MADE_ON_HOST", step.outputs);
}

void HostSteps::prepare_input(const Value* tensor, std::string& text) {
    if (!ready_.insert(tensor).second) return;
    write_view_checks(tensor, text);
    if (!program_.is_late(tensor)) return;
    const Storage& storage = program_.storage(tensor);
    std::string address;
    switch (storage.storage_class) {
    case StorageClass::heap:
        address = program_.views_if_whole.contains(storage.root) ? fmt::format("T({})->host", name(storage.root))
                                                                 : fmt::format("session->heap[{}].data", storage.index);
        break;
    case StorageClass::weight: address = fmt::format("session->weights + {}", storage.offset); break;
    default: address = fmt::format("T({})->host", name(storage.root)); break;
    }
    text += fmt::format("    VIEW_OF({}, {}, {});\n", name(tensor), address, extents_text(tensor->checked_type()));
}

void HostSteps::prepare_output(const Value* tensor, std::string& text) {
    if (!program_.is_late(tensor) || !ready_.insert(tensor).second) return;
    const Storage& storage = program_.storage(tensor);
    if (storage.storage_class == StorageClass::heap) {
        text += fmt::format("    ON_HEAP({}, {}, {});\n", name(tensor), storage.index,
                            extents_text(tensor->checked_type()));
    } else {
        ready_.erase(tensor);
        prepare_input(tensor, text);
    }
}

void HostSteps::read_bindings(const Value* tensor, std::string& text) const {
    bool reads_elements = false;
    for (const Binding& binding : tensor->bindings) {
        if (!program_.has_symbol(binding.symbol)) continue;
        if (binding.kind == Binding::Kind::element && !std::exchange(reads_elements, true))
            text += crossing("TO_HOST", {tensor});
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
        if (program_.is_late(outputs[i])) prepare_input(outputs[i], text);
        text += crossing("TO_HOST", {outputs[i]});
        if (!program_.is_late(outputs[i])) continue;
        text += fmt::format("    DELIVER({}, {});\n", i, name(outputs[i]));
    }
}

}  // namespace onnx2halide
