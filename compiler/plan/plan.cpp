#include "compiler/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "compiler/io/sha256.h"
#include "compiler/plan/groups.h"
#include "compiler/plan/live.h"
#include "compiler/plan/memory.h"
#include "compiler/plan/symbolic_copy.h"
#include "compiler/plan/write_kernel.h"
#include "ops/control_flow.h"

namespace onnx2halide {

namespace {

/// A kernel is named after its anchor and its last node. A class cannot have a member of its own name, so where a value
/// of the kernel has this name, the kernel's also says the operator.
std::string kernel_name(const Group& group) {
    if (!group.anchor) return "whole";
    const std::string first = identifier(group.anchor->name), last = identifier(group.nodes.back()->name);
    constexpr size_t longest = 80;
    const std::string name = (first == last ? first : first + "_" + last).substr(0, longest);
    const auto has_name = [&](const Node* node) {
        return std::any_of(node->outputs.begin(), node->outputs.end(),
                           [&](const Value* output) { return output && identifier(output->name) == name; });
    };
    const bool is_taken = std::any_of(group.nodes.begin(), group.nodes.end(), has_name);
    return is_taken ? name + "_" + identifier(group.nodes.back()->op_type) : name;
}

class Planner {
public:
    Planner(const Graph& graph, const std::vector<Target>& targets, const PlanOptions& options) : options_(options) {
        program_.name = options.name;
        program_.graph = &graph;
        program_.targets = targets;
    }

    Program plan() {
        if (options_.grouping == Grouping::whole) check_whole();
        program_.main = plan_steps();
        drop_dead_steps();
        number_steps(program_.main);
        find_symbols();
        if (options_.grouping == Grouping::whole && !program_.is_static())
            throw CompileError("--pipeline whole: sizes depend on elements known at run time, expected constant ones");
        plan_memory(program_, options_.in_place);
        return std::move(program_);
    }

    /// Plans the steps only.
    Block plan_steps() { return plan_block(*program_.graph, "steps"); }

private:
    /// Checks that the graph can be one kernel. Halide's compile time grows steeply with the number of stages in a
    /// pipeline, and autoschedulers need constant sizes.
    void check_whole() const {
        constexpr size_t most = 64;
        const size_t count = program_.graph->nodes().size();
        if (!program_.graph->symbols.empty())
            throw CompileError("--pipeline whole: the model leaves dims open, expected none");
        if (count > most)
            throw CompileError(
                "--pipeline whole: the graph has {} nodes when constants are folded, expected at most {}", count, most);
        for (const auto& node : program_.graph->nodes()) {
            if (!make_generator(*node)->is_kernel())
                throw CompileError("--pipeline whole: {} runs outside of kernels, expected only nodes with kernels",
                                   node->label());
        }
    }

    /// Plans the steps of a graph, in order. `name` is that of the block's C function.
    Block plan_block(const Graph& graph, const std::string& name) {
        Block block{name, &graph, {}};
        for (const Group& group : cut_groups(graph, options_.grouping, program_.targets.front())) {
            const Node& node = *group.nodes.front();
            if (group.nodes.size() == 1 && !make_generator(node)->is_kernel()) {
                block.steps.push_back(host_step(node));
            } else {
                add_step(block, group);
            }
        }
        return block;
    }

    /// The step of a node that no kernel computes.
    Step host_step(const Node& node) {
        Step step;
        step.kind = is_repetition(node)     ? Step::Kind::repetition
                    : is_control_flow(node) ? Step::Kind::branch
                                            : Step::Kind::host;
        step.nodes = {&node};
        step.inputs.assign(node.inputs.begin(), node.inputs.end());
        step.outputs.assign(node.outputs.begin(), node.outputs.end());
        const std::string name = identifier(node.name);
        if (step.kind == Step::Kind::repetition) {
            step.blocks.push_back(plan_block(node.graph("body"), names_.unique(name + "_iteration")));
        } else if (step.kind == Step::Kind::branch) {
            step.blocks.push_back(plan_block(node.graph("then_branch"), names_.unique(name + "_then")));
            step.blocks.push_back(plan_block(node.graph("else_branch"), names_.unique(name + "_else")));
        }
        return step;
    }

    void add_step(Block& block, const Group& group) {
        const std::vector<const Value*> escaping = escaping_values(*block.graph, group);
        const bool is_empty = std::all_of(escaping.begin(), escaping.end(),
                                          [](const Value* value) { return value->checked_type().elements().is(0); });
        if (is_empty) return;  // kernels may assume that there are elements to compute
        Step step;
        step.nodes = group.nodes;
        step.outputs = escaping;
        add_call(step, group, kernel_name(group));
        if (const auto other = group.anchor ? make_generator(*group.anchor)->alternative() : std::nullopt) {
            Group others = group;
            others.anchor = &other->node;
            std::replace(others.nodes.begin(), others.nodes.end(), group.anchor, others.anchor);
            add_call(step, others, kernel_name(group) + "_" + other->name);
            step.choice = {other->node_cycles, other->cycles};
        }
        block.steps.push_back(std::move(step));
    }

    /// Adds a call of the kernel for a group, whose nodes may differ from those of the step.
    void add_call(Step& step, const Group& group, const std::string& name) {
        if (options_.for_any_model && add_call_for_any_size(step, group, name)) return;
        if (has_open_extents(group)) {
            add_general_call(step, group, name, SymbolicCopy::Extents::compound);
        } else {
            const auto all = [](const std::string& symbol) { return Dim::symbol(symbol); };
            add_call(step, group, step.outputs, name, all);
        }
    }

    /// Adds a call of a kernel that serves all sizes. Returns false if there is none: some nodes need a constant size,
    /// such as that of a window.
    bool add_call_for_any_size(Step& step, const Group& group, const std::string& name) {
        try {
            add_general_call(step, group, name, SymbolicCopy::Extents::all);
            return true;
        } catch (const CompileError&) {
            program_.copies.pop_back();
            return false;
        }
    }

    /// Adds a call of a kernel that is written for a copy of the group with symbols as extents.
    void add_general_call(Step& step, const Group& group, const std::string& name, SymbolicCopy::Extents extents) {
        program_.copies.push_back(
            std::make_shared<SymbolicCopy>(group, step.outputs, extents, program_.graph->symbols));
        const SymbolicCopy& copy = *program_.copies.back();
        for (const Node* node : copy.group().nodes) {
            // Some nodes have a kernel for constant sizes only, and call a function of the runtime for others.
            if (!make_generator(*node)->is_kernel())
                throw CompileError("{}: has no kernel for all sizes", node->label());
        }
        add_call(
            step, copy.group(), copy.escaping(), name, [&](const std::string& symbol) { return copy.extent(symbol); },
            [&](const Value* value) { return copy.original(value); });
    }

    /// Adds a call of the kernel for the group `written`. `original` maps its values to those of the graph, and
    /// `argument` its symbols to expressions in those of the graph.
    void add_call(
        Step& step, const Group& written, const std::vector<const Value*>& written_escaping, const std::string& name,
        const std::function<Dim(const std::string&)>& argument,
        const std::function<const Value*(const Value*)>& original = [](const Value* value) { return value; }) {
        const std::vector<KernelSource> canonical = write_kernels(
            written, written_escaping, KernelSource::Naming::canonical, [](const Target&) { return "kernel"; });
        std::vector<std::string> texts;
        for (const KernelSource& source : canonical) texts.push_back(source.text());
        const auto [known, is_new] = kernel_of_.try_emplace(texts, program_.kernels.size());
        if (is_new) {
            const auto naming = options_.for_any_model ? KernelSource::Naming::canonical : KernelSource::Naming::model;
            const std::string unique =
                options_.for_any_model ? name_for_any_model(written, texts) : names_.unique(name);
            const auto class_name = [&](const Target& target) {
                return program_.targets.size() == 1 ? unique : names_.unique(unique + "_" + target.short_name);
            };
            Dim flops;
            for (const Node* node : step.nodes) flops += make_generator(*node)->flops();
            program_.kernels.push_back(
                {unique, step.nodes, {}, write_kernels(written, written_escaping, naming, class_name), texts, flops});
        } else {
            program_.kernels[known->second].served.push_back(step.nodes.back()->name);
        }
        KernelCall call{known->second, {}, {}};
        for (const Value* input : canonical[0].inputs()) {
            call.inputs.push_back(original(input));
            if (std::find(step.inputs.begin(), step.inputs.end(), call.inputs.back()) == step.inputs.end())
                step.inputs.push_back(call.inputs.back());
        }
        // Symbols have the same names in both texts.
        for (const std::string& symbol : canonical[0].symbols()) call.arguments.push_back(argument(symbol));
        step.calls.push_back(std::move(call));
    }

    /// A kernel's name that depends on its operator and its texts only: PackConvWeights_1f2e3d4c5b6a7988
    std::string name_for_any_model(const Group& group, const std::vector<std::string>& texts) {
        const std::vector<std::string_view> parts(texts.begin(), texts.end());
        return names_.unique(fmt::format("{}_{}", group.nodes.back()->op_type, sha256(parts).substr(0, 16)));
    }

    /// The source of a kernel for each target. All must have the same arguments.
    std::vector<KernelSource> write_kernels(const Group& group, const std::vector<const Value*>& escaping,
                                            KernelSource::Naming naming,
                                            const std::function<std::string(const Target&)>& class_name) const {
        std::vector<KernelSource> sources;
        std::set<std::string> symbols;
        for (const Target& target : program_.targets) {
            sources.push_back(write_kernel(group, escaping, target, class_name(target), naming));
            if (sources.back().inputs() != sources[0].inputs())
                throw std::logic_error(sources.back().class_name() + " has other arguments than " +
                                       sources[0].class_name());
            symbols.insert(sources.back().symbols().begin(), sources.back().symbols().end());
        }
        for (KernelSource& source : sources) source.add_symbols(symbols);
        return sources;
    }

    /// Drops steps whose results were needed by inference only, such as Shape.
    void drop_dead_steps() {
        LiveValues live;
        for (const Value* output : program_.graph->outputs) live.need(output);
        // To a fixed point, as a value that an iteration makes for the next one may be needed earlier in the body.
        while (live.add_needs(program_.main)) continue;
        live.keep_live_steps(program_.main);
        drop_unused_kernels();
    }

    void drop_unused_kernels() {
        std::vector<size_t> place(program_.kernels.size(), SIZE_MAX);
        std::vector<Kernel> used;
        for_each_step(program_.main, [&](const Step& step) {
            for (const KernelCall& call : step.calls) {
                if (place[call.kernel] != SIZE_MAX) continue;
                place[call.kernel] = used.size();
                used.push_back(std::move(program_.kernels[call.kernel]));
            }
        });
        renumber_kernels(program_.main, place);
        program_.kernels = std::move(used);
    }

    static void renumber_kernels(Block& block, const std::vector<size_t>& place) {
        for (Step& step : block.steps) {
            for (KernelCall& call : step.calls) call.kernel = place[call.kernel];
            for (Block& inner : step.blocks) renumber_kernels(inner, place);
        }
    }

    void number_steps(Block& block) {
        for (Step& step : block.steps) {
            step.first = next_step_++;
            for (Block& inner : step.blocks) number_steps(inner);
            step.last = step.blocks.empty() ? step.first : next_step_++;
        }
    }

    /// Lists the open dims, and then the symbols that are set at run time, in the order of the steps.
    void find_symbols() {
        for (const auto& [symbol, dim] : program_.graph->symbols) program_.symbols.push_back(symbol);
        std::set<std::string> known(program_.symbols.begin(), program_.symbols.end());
        known.insert(thread_count_symbol);  // the session's
        const auto add = [&](const Dim& dim) {
            for (const std::string& symbol : dim.symbols()) {
                if (known.insert(symbol).second) program_.symbols.push_back(symbol);
            }
        };
        for_each_step(program_.main, [&](const Step& step) {
            for (const std::string& symbol : symbols_of(step)) add(Dim::symbol(symbol));
        });
        for (const Value* output : program_.graph->outputs) {
            for (const std::string& symbol : symbols_of(output)) add(Dim::symbol(symbol));
        }
    }

    PlanOptions options_;
    Program program_;
    Names names_;
    int next_step_ = 0;
    std::map<std::vector<std::string>, size_t> kernel_of_;  // by canonical texts
};

/// Adds the constant scalars that are parameters of a graph's nodes (see NodeGenerator::is_layer_scalar).
void add_parameters(const Graph& graph, std::set<Value*>& numbers) {
    for (const auto& node : graph.nodes()) {
        const auto generator = make_generator(*node);
        for (size_t i = 0; i < node->inputs.size(); ++i) {
            Value* input = node->inputs[i];
            if (input && input->is_constant() && is_literal(input) && generator->is_layer_scalar(i))
                numbers.insert(input);
        }
    }
}

/// The values that calls pass for each input of each kernel, by indices of kernel and input.
using PassedValues = std::map<std::pair<size_t, size_t>, std::vector<const Value*>>;

/// Those of `numbers` that kernels must read for calls to share them. If the values passed for an input are not all the
/// same number, all numbers among them are to be read. A number that is read for one input is read everywhere, so this
/// repeats until nothing changes.
std::set<const Value*> differing_scalars(const PassedValues& passed, const std::set<const Value*>& numbers) {
    const auto is_number = [&](const Value* value) { return numbers.contains(value); };
    std::set<const Value*> differing;
    for (size_t before = SIZE_MAX; before != differing.size();) {
        before = differing.size();
        for (const auto& [input, values] : passed) {
            const bool is_one = std::all_of(values.begin(), values.end(), [&](const Value* value) {
                return is_number(value) && !differing.contains(value) && value->known == values[0]->known;
            });
            if (!is_one)
                std::copy_if(values.begin(), values.end(), std::inserter(differing, differing.end()), is_number);
        }
    }
    return differing;
}

/// Kernels contain numbers as literals. Kernels that differ in parameters only, as the layers of a quantised model do
/// in their scales, are to read these instead, so that one kernel serves all layers. A trial plan in which all
/// parameters are read shows which differ.
void read_differing_scalars(Graph& graph, const std::vector<Target>& targets, const PlanOptions& options) {
    std::set<Value*> numbers;
    for_each_graph(graph, [&](Graph& each) { add_parameters(each, numbers); });
    if (numbers.empty()) return;
    for (Value* number : numbers) number->is_passed_to_kernels = true;
    Planner trial(graph, targets, options);
    PassedValues passed;
    for_each_step(trial.plan_steps(), [&](const Step& step) {
        for (const KernelCall& call : step.calls) {
            for (size_t i = 0; i < call.inputs.size(); ++i) passed[{call.kernel, i}].push_back(call.inputs[i]);
        }
    });
    const std::set<const Value*> differing = differing_scalars(passed, {numbers.begin(), numbers.end()});
    for (Value* number : numbers) number->is_passed_to_kernels = differing.contains(number);
}

/// Kernels for any model read numbers instead of containing them: scales, zero points and the like, but not sizes and
/// indices, which determine what a kernel computes.
void read_numbers(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
        for (Value* input : node->inputs) {
            if (!input || !input->is_constant() || !is_literal(input)) continue;
            const ElementType element = input->checked_type().element;
            input->is_passed_to_kernels = element != ElementType::int64 && element != ElementType::boolean;
        }
    }
}

}  // namespace

Program make_program(Graph& graph, const std::vector<Target>& targets, const PlanOptions& options) {
    if (options.for_any_model) {
        for_each_graph(graph, read_numbers);
    } else if (options.grouping == Grouping::fused) {
        read_differing_scalars(graph, targets, options);
    }
    return Planner(graph, targets, options).plan();
}

}  // namespace onnx2halide
