#include "compiler/load/recurrent_layer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

std::vector<std::string> read_directions(const OperatorCall& call) {
    const std::string direction = call.string("direction", "forward");
    if (direction == "bidirectional") return {"forward", "reverse"};
    if (direction == "forward" || direction == "reverse") return {direction};
    throw CompileError("attribute direction is '{}', expected forward, reverse or bidirectional", direction);
}

bool read_batch_first(const OperatorCall& call) {
    const int64_t layout = call.integer("layout", 0);
    if (layout != 0 && layout != 1) throw CompileError("attribute layout is {}, expected 0 or 1", layout);
    return layout == 1;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

}  // namespace

RecurrentLayer::RecurrentLayer(const OperatorCall& call, Form form)
    : call_(call), form_(std::move(form)), directions_(read_directions(call)),
      activations_(
          read_activations(call, form_.default_activations, directions_.size() * form_.default_activations.size())),
      batch_first_(read_batch_first(call)), body_{form_.inputs, form_.outputs, {}} {
    const float clip = call.real("clip", 1.0f);
    if (!(clip > 0.0f)) throw CompileError("attribute clip is {}, expected a positive number", clip);
}

std::string RecurrentLayer::in_direction(std::string_view text) const {
    return replace_all(std::string(text), "$", directions_[direction_]);
}

bool RecurrentLayer::has_input(std::string_view formal) const {
    const auto found = std::find(form_.inputs.begin(), form_.inputs.end(), formal);
    return found != form_.inputs.end() && call_.has_input(static_cast<int>(found - form_.inputs.begin()));
}

OperatorBody RecurrentLayer::expand() {
    for (const char* required : {"X", "W", "R"}) {
        if (!has_input(required)) throw CompileError("input {} is missing", required);
    }
    write_input();
    for (direction_ = 0; direction_ < directions_.size(); ++direction_) write_direction();
    direction_ = 0;
    write_outputs();
    return body_;
}

/// Writes the nodes that all directions share.
void RecurrentLayer::write_input() {
    add(R"(
        axis_0 = Constant<value_ints = [0]>()
        axis_1 = Constant<value_ints = [1]>())");
    add(batch_first_ ? "x = Transpose<perm = [1, 0, 2]>(X)" : "x = Identity(X)");
    add_scalar("zero", 0.0f);
    // In the product with W, all steps of all sequences are rows of one matrix.
    add(fmt::format(R"(
        rows = Flatten<axis = 2>(x)
        steps_and_batch = Shape<start = 0, end = 2>(x)
        batch = Shape<start = 1, end = 2>(x)
        hidden = Shape<start = {}, end = {}>(R)
        state_shape = Concat<axis = 0>(batch, hidden)
        zeros = Expand(zero, state_shape))",
                    hidden_axis_, hidden_axis_ + 1));
    if (has_input("sequence_lens")) write_masks();
}

/// Defines `live`: for each time step, which sequences of the batch have not ended yet.
void RecurrentLayer::write_masks() {
    add(R"(
        first = Constant<value_int = 0>()
        one_step = Constant<value_int = 1>()
        steps_vector = Shape<start = 0, end = 1>(x)
        steps = Squeeze(steps_vector)
        times = Range(first, steps, one_step)
        times_axes = Constant<value_ints = [1, 2]>()
        times_column = Unsqueeze(times, times_axes)
        lengths = Cast<to = 7>(sequence_lens)
        lengths_column = Unsqueeze(lengths, axis_1)
        live = Less(times_column, lengths_column))");
}

void RecurrentLayer::write_direction() {
    step_.clear();
    write_projection();
    if (has_input("B")) {
        add_part("b_$", "B");
        write_bias();
        add("input_rows_$ = Add(projected_$, bias_$)");
    } else {
        add("input_rows_$ = Identity(projected_$)");
    }
    add(R"(
        columns_$ = Shape<start = 1>(input_rows_$)
        input_shape_$ = Concat<axis = 0>(steps_and_batch, columns_$)
        input_$ = Reshape<allowzero = 1>(input_rows_$, input_shape_$))");
    for (const std::string& state : form_.states) write_initial_state(state);
    write_step();
    write_next_states();
    write_scan();
}

void RecurrentLayer::write_projection() {
    add_part("w_$", "W");
    add_part("r_$", "R");
    add(R"(
        weights_$ = Transpose<perm = [1, 0]>(w_$)
        recurrence_$ = Transpose<perm = [1, 0]>(r_$)
        projected_$ = MatMul(rows, weights_$))");
}

void RecurrentLayer::write_bias() {
    add(R"(
        b_w_$, b_r_$ = Split<axis = 0, num_outputs = 2>(b_$)
        bias_$ = Add(b_w_$, b_r_$))");
}

void RecurrentLayer::write_initial_state(const std::string& state) {
    const std::string input = "initial_" + state;
    if (has_input(input)) {
        add_part(fmt::format("given_{}_$", state), input, batch_first_ ? 1 : 0);
        add(fmt::format("{0}_0_$ = onnx2halide.WithShapeOf(given_{0}_$, zeros)", state));
    } else {
        add(fmt::format("{}_0_$ = Identity(zeros)", state));
    }
}

void RecurrentLayer::write_product(const std::string& result, const std::string& state, const std::string& weights) {
    add_step(fmt::format("{} = MatMul({}, {})", result, state, weights));
}

/// A sequence that has ended keeps its states, and its outputs are zeros.
void RecurrentLayer::write_next_states() {
    if (has_input("sequence_lens")) {
        for (const std::string& state : form_.states)
            add_step(fmt::format("next_{0}_$ = Where(live_$, new_{0}_$, {0}_$)", state));
        add_step("y_step_$ = Where(live_$, new_h_$, zero)");
    } else if (makes_sequence()) {
        add_step("y_step_$ = Identity(new_h_$)");
    }
}

void RecurrentLayer::write_scan() {
    const bool is_masked = has_input("sequence_lens");
    std::vector<std::string> results, formals, made, initial;
    for (const std::string& state : form_.states) {
        results.push_back(fmt::format("last_{}_$", state));
        formals.push_back(fmt::format("{}_$", state));
        made.push_back(fmt::format("{}_{}_$", is_masked ? "next" : "new", state));
        initial.push_back(fmt::format("{}_0_$", state));
    }
    if (makes_sequence()) {
        results.push_back("y_$");
        made.push_back("y_step_$");
    }
    std::vector<std::string> sequences = {"input_$"};
    formals.push_back("gates_$");
    if (is_masked) {
        sequences.push_back("live");
        formals.push_back("live_$");
    }
    const int order = directions_[direction_] == "reverse" ? 1 : 0;
    const std::vector<int> orders(sequences.size(), order);
    add(fmt::format(R"(
        {} = Scan<num_scan_inputs = {}, scan_input_directions = [{}]{}, body = step_$ ({}) => ({}) {{{}}}>({}, {}))",
                    fmt::join(results, ", "), sequences.size(), fmt::join(orders, ", "),
                    makes_sequence() ? fmt::format(", scan_output_directions = [{}]", order) : "",
                    fmt::join(formals, ", "), fmt::join(made, ", "), step_, fmt::join(initial, ", "),
                    fmt::join(sequences, ", ")));
}

void RecurrentLayer::write_outputs() {
    if (makes_sequence()) write_output("Y", "y", 1, "2, 0, 1, 3");
    for (size_t i = 0; i < form_.states.size(); ++i) {
        if (call_.has_output(static_cast<int>(i) + 1))
            write_output(form_.outputs[i + 1], "last_" + form_.states[i], 0, "1, 0, 2");
    }
}

/// Joins the results of all directions along a new axis, and transposes them if the batch comes first.
void RecurrentLayer::write_output(const std::string& result, const std::string& part, int axis,
                                  const std::string& order) {
    std::vector<std::string> parts;
    for (const std::string& direction : directions_) {
        parts.push_back(fmt::format("{}_all_{}", result, direction));
        add(fmt::format("{} = Unsqueeze({}_{}, axis_{})", parts.back(), part, direction, axis));
    }
    const std::string joined = batch_first_ ? result + "_rows" : result;
    add(fmt::format("{} = Concat<axis = {}>({})", joined, axis, fmt::join(parts, ", ")));
    if (batch_first_) add(fmt::format("{} = Transpose<perm = [{}]>({})", result, order, joined));
}

void RecurrentLayer::add_part(const std::string& result, const std::string& input, int axis) {
    std::string part = input;
    if (directions_.size() > 1) {
        part = fmt::format("{}_$_part", input);
        if (is_first_direction())
            add(fmt::format("{0}_forward_part, {0}_reverse_part = Split<axis = {1}, num_outputs = 2>({0})", input,
                            axis));
    }
    add(fmt::format("{} = Squeeze({}, axis_{})", result, part, axis));
}

std::string RecurrentLayer::cell(const std::string& results, const std::string& type, const std::string& operands,
                                 const std::string& attributes) const {
    const size_t count = form_.default_activations.size();
    std::vector<std::string> functions, alphas, betas, all;
    const auto parameter = [](float value) { return fmt::format("{:e}", std::isnan(value) ? 0.0f : value); };
    for (size_t i = 0; i < count; ++i) {
        const Activation& activation = activations_[direction_ * count + i];
        functions.push_back(fmt::format("\"{}\"", activation.op));
        alphas.push_back(parameter(activation.alpha));
        betas.push_back(parameter(activation.beta));
    }
    all = {fmt::format("activations = [{}]", fmt::join(functions, ", ")),
           fmt::format("activation_alpha: floats = [{}]", fmt::join(alphas, ", ")),
           fmt::format("activation_beta: floats = [{}]", fmt::join(betas, ", "))};
    if (call_.has("clip")) all.push_back(fmt::format("clip: float = {:e}", call_.real("clip", 0.0f)));
    if (!attributes.empty()) all.push_back(attributes);
    return fmt::format("{} = onnx2halide.{}<{}>({})", results, type, fmt::join(all, ", "), operands);
}

}  // namespace onnx2halide
