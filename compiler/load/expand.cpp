#include "compiler/load/expand.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <onnx/defs/parser.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"
#include "compiler/load/schema.h"
#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

const ExpandedOperator* find_expansion(const onnx::NodeProto& node) {
    const auto rows = expanded_operators();
    const std::string& domain = node.domain();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const ExpandedOperator& each) {
        return each.domain == domain && each.type == node.op_type();
    });
    return row == rows.end() ? nullptr : &*row;
}

Nodes parse_nodes(const std::string& text) {
    Nodes nodes;
    onnx::OnnxParser parser(text.c_str());
    while (!parser.EndOfInput()) {
        const auto status = parser.Parse(*nodes.Add());
        if (!status.IsOK()) throw std::logic_error(status.ErrorMessage() + " in the body\n" + text);
    }
    return nodes;
}

bool is_experiment(std::string_view type) {
    static const std::vector<ExpandedOperator> experiments = experimental_expansions();
    return std::any_of(experiments.begin(), experiments.end(),
                       [&](const ExpandedOperator& experiment) { return experiment.type == type; });
}

/// Whether only onnxruntime defines a node in this opset of ONNX's own domain: LayerNormalization before opset 17,
/// ONNX's former experiments before opset 9 or 10, or GroupNormalization before opset 21, which ONNX's checker now
/// rejects.
bool is_contributed(const onnx::NodeProto& node, int opset) {
    if (!node.domain().empty()) return false;
    const std::string& type = node.op_type();
    return type == "SimplifiedLayerNormalization" || (type == "LayerNormalization" && opset < 17) ||
           (type == "GroupNormalization" && opset >= 18 && opset < 21) ||
           (opset < (type == "MeanVarianceNormalization" ? 9 : 10) && is_experiment(type));
}

void adopt_nodes(onnx::GraphProto& graph, int opset) {
    for (auto& node : *graph.mutable_node()) {
        if (is_contributed(node, opset)) node.set_domain(microsoft_domain);
        visit_subgraphs(node, [&](onnx::GraphProto& inner) { adopt_nodes(inner, opset); });
    }
}

/// Adds those of the domains ai.onnx.ml and com.microsoft that nodes belong to.
void find_domains(onnx::GraphProto& graph, std::set<std::string>& domains) {
    for (auto& node : *graph.mutable_node()) {
        if (node.domain() == microsoft_domain || node.domain() == ml_domain) domains.insert(node.domain());
        visit_subgraphs(node, [&](onnx::GraphProto& inner) { find_domains(inner, domains); });
    }
}

class Expander {
public:
    void expand(onnx::GraphProto& graph) {
        collect_names(graph);
        expand_graph(graph);
    }

private:
    /// Maps the names in a body to those in the model.
    using Renaming = std::map<std::string, std::string>;

    void collect_names(onnx::GraphProto& graph) {
        for (const auto& input : graph.input()) names_.insert(input.name());
        for (const auto& constant : graph.initializer()) names_.insert(constant.name());
        for (const auto& constant : graph.sparse_initializer()) names_.insert(constant.values().name());
        for (auto& node : *graph.mutable_node()) {
            names_.insert(node.output().begin(), node.output().end());
            visit_subgraphs(node, [&](onnx::GraphProto& inner) { collect_names(inner); });
        }
    }

    void expand_graph(onnx::GraphProto& graph) {
        Nodes old;
        old.Swap(graph.mutable_node());
        for (auto& node : old) add(node, *graph.mutable_node());
    }

    /// Appends a node or, if it has a row, the expanded nodes of its body.
    void add(onnx::NodeProto& node, Nodes& nodes) {
        if (const ExpandedOperator* expansion = find_expansion(node)) {
            for (auto& inner : body_of(node, *expansion)) add(inner, nodes);
            return;
        }
        visit_subgraphs(node, [&](onnx::GraphProto& graph) { expand_graph(graph); });
        nodes.Add()->Swap(&node);
    }

    Nodes body_of(const onnx::NodeProto& node, const ExpandedOperator& expansion) {
        const std::string name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
        try {
            const OperatorBody body = expansion.expand(OperatorCall(node));
            Renaming renaming;
            bind(renaming, body.inputs, node.input(), "inputs");
            bind(renaming, body.outputs, node.output(), "outputs");
            Nodes nodes = parse_nodes(body.nodes);
            for (auto& inner : nodes) place(inner, renaming, name);
            return nodes;
        } catch (const CompileError& error) {
            const std::string domain = node.domain().empty() ? "" : node.domain() + ".";
            throw CompileError("node '{}' ({}{}): {}", name, domain, node.op_type(), error.what());
        }
    }

    /// Maps formal names to those of the call. An input that the call omits is omitted in the body, too.
    static void bind(Renaming& renaming, const std::vector<std::string>& formals,
                     const google::protobuf::RepeatedPtrField<std::string>& actuals, const char* kind) {
        if (actuals.size() > static_cast<int>(formals.size()))
            throw CompileError("has {} {}, expected at most {}", actuals.size(), kind, formals.size());
        for (size_t i = 0; i < formals.size(); ++i)
            renaming[formals[i]] = static_cast<int>(i) < actuals.size() ? actuals[static_cast<int>(i)] : "";
    }

    /// Renames the operands of a body's node, and sets its opset.
    void place(onnx::NodeProto& node, Renaming& renaming, const std::string& prefix) {
        for (auto& input : *node.mutable_input()) input = renaming.contains(input) ? renaming[input] : input;
        for (auto& output : *node.mutable_output()) define(output, renaming, prefix);
        if (node.domain().empty()) set_opset(node, body_opset);
        visit_subgraphs(node, [&](onnx::GraphProto& graph) {
            for (auto& input : *graph.mutable_input()) define(*input.mutable_name(), renaming, prefix);
            for (auto& inner : *graph.mutable_node()) place(inner, renaming, prefix);
            for (auto& output : *graph.mutable_output()) output.set_name(renaming.at(output.name()));
        });
    }

    /// Replaces a name that the body defines by that of an output of the call, or by a new one.
    void define(std::string& name, Renaming& renaming, const std::string& prefix) {
        if (name.empty()) return;
        std::string& actual = renaming[name];
        if (actual.empty()) actual = unique(prefix + "_" + name);
        name = actual;
    }

    std::string unique(const std::string& hint) {
        std::string name = hint;
        for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", hint, i);
        return name;
    }

    std::set<std::string> names_;  // of all values in the model
};

}  // namespace

bool has_expansion(const onnx::NodeProto& node) { return find_expansion(node) != nullptr; }

void adopt_operators(onnx::ModelProto& model) { adopt_nodes(*model.mutable_graph(), OpsetVersions(model).of("")); }

void import_domains(onnx::ModelProto& model) {
    // Models of older versions import nothing at all.
    constexpr int64_t first_with_imports = 3;
    if (model.ir_version() < first_with_imports) return;
    std::set<std::string> domains;
    find_domains(*model.mutable_graph(), domains);
    for (const auto& import : model.opset_import()) domains.erase(import.domain());
    const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    for (const std::string& domain : domains) {
        auto& import = *model.add_opset_import();
        import.set_domain(domain);
        import.set_version(domain == ml_domain ? known.at(domain).second : 1);
    }
}

void expand_operators(onnx::ModelProto& model) { Expander().expand(*model.mutable_graph()); }

}  // namespace onnx2halide
