#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/plan/program.h"
#include "ops/control_flow.h"

namespace onnx2halide {

/// A dim as C text in functions that have a session: `D(batch) * 12`.
std::string session_text(const Dim& dim);
/// `EXTENTS(D(batch), 12)`: a tensor's extents, innermost first.
std::string extents_text(const TensorType& type, std::string (*text)(const Dim&) = session_text);
/// `float, 32`: a type for the macros that take Halide's code and bits.
std::string halide_type_text(ElementType type);

/// The name of a step in messages, `node 'loop' (Loop)`, as a C string literal.
std::string quoted_label(const Node& node);

/// The C functions of a program's steps: one for the model, one for each branch, and one for each loop's body.
class HostSteps {
public:
    HostSteps(const Program& program, const std::map<const Value*, std::string>& tensor_names);

    /// The text of the functions. Each comes before its callers.
    std::string text();

private:
    /// The function of a loop's body.
    struct IterationFunction {
        std::string call;    // body(session, iteration)
        bool has_condition;  // whether it sets `goes_on`
    };

    void add_function(const Block& block, const std::string& after, const std::string& comment);
    void write(const Block& block, std::string& text);
    void write(const Step& step, std::string& text);
    void write_checks(const Node& node, std::string& text);
    void write_result_checks(const Value* output, std::string& text);
    void write_check(const Node& node, const Check& check, std::string& text);
    void write_view_checks(const Value* tensor, std::string& text);
    void write_index_checks(const Node& node, std::string& text);
    void write_known_index_checks(const Node& node, const IndexCheck& check, std::string& text);
    std::string guard_text(const std::vector<const Value*>& outputs) const;
    void write_kernel(const Step& step, std::string& text);
    void write_view_if_whole(const Step& step, std::string& text);
    std::string call_text(const Step& step, const KernelCall& call) const;
    std::optional<Dim> open_work(const Step& step) const;
    void write_host_call(const Step& step, std::string& text);
    void write_branch(const Step& step, std::string& text);
    void write_repetition(const Step& step, std::string& text);
    void write_first_states(const Repetition& repetition, std::string& text);
    void write_scanned(const Step& step, std::string& text) const;
    void write_empty_slices(const Step& step, std::string& text);
    std::string trip_count_text(const Repetition& repetition, std::string& text);
    IterationFunction add_iteration_function(const Step& step);
    std::string start_of_iteration(const Step& step);
    std::string end_of_iteration(const Step& step);
    void append_slices(const Step& step, std::string& text);
    void hand_over_states(const Repetition& repetition, std::string& text);
    void prepare_input(const Value* tensor, std::string& text);
    void prepare_output(const Value* tensor, std::string& text);
    void read_bindings(const Value* tensor, std::string& text) const;
    void deliver_outputs(std::string& text);
    std::string crossing(const char* macro, const std::vector<const Value*>& tensors) const;
    std::string copy_text(const Value* to, const Value* from) const;
    std::string name(const Value* tensor) const { return tensor_names_.at(tensor); }
    bool has_tensor(const Value* value) const { return tensor_names_.contains(value); }

    const Program& program_;
    const std::map<const Value*, std::string>& tensor_names_;
    std::vector<std::string> functions_;
    std::set<const Value*> ready_;  // tensors that the function being written has set up
};

}  // namespace onnx2halide
