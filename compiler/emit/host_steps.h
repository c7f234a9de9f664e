#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/plan/program.h"

namespace onnx2halide {

/// A dim as C text in functions that have a session: D(batch) * 12.
std::string session_text(const Dim& dim);
/// `EXTENTS(D(batch), 12)`: a tensor's extents in the order of memory, innermost first.
std::string extents_text(const TensorType& type, std::string (*text)(const Dim&) = session_text);
/// `float, 32`
std::string halide_type_text(ElementType type);

/// The C functions of a program's steps: one for the model, and one for each branch and each loop's turn.
class HostSteps {
public:
    HostSteps(const Program& program, const std::map<const Value*, std::string>& tensor_names);

    /// The functions, those that are called before their callers.
    std::string text();

    /// Whether a tensor's place or shape is known only when the steps run.
    bool is_late(const Value* tensor) const;

private:
    void add_function(const Block& block, const std::string& after, const std::string& comment);
    void write(const Block& block, std::string& text);
    void write(const Step& step, std::string& text);
    void write_checks(const Node& node, std::string& text);
    void write_view_checks(const Value* tensor, std::string& text);
    void write_index_checks(const Node& node, std::string& text) const;
    void write_kernel(const Step& step, std::string& text);
    void write_host_call(const Step& step, std::string& text);
    void write_branch(const Step& step, std::string& text);
    void write_repetition(const Step& step, std::string& text);
    std::string start_of_turn(const Step& step);
    std::string end_of_turn(const Step& step);
    void prepare_input(const Value* tensor, std::string& text);
    void prepare_output(const Value* tensor, std::string& text);
    void read_bindings(const Value* tensor, std::string& text) const;
    void deliver_outputs(std::string& text);
    std::string device_views(const Step& step) const;
    std::string name(const Value* tensor) const { return tensor_names_.at(tensor); }
    bool has_tensor(const Value* value) const { return tensor_names_.contains(value); }

    const Program& program_;
    const std::map<const Value*, std::string>& tensor_names_;
    std::vector<std::string> functions_;
    std::set<const Value*> ready_;  // tensors that the function that is written has set up
};

}  // namespace onnx2halide
