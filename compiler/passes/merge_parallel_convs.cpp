#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_operands.h"

namespace onnx2halide {

namespace {

struct Term {
    Value* value;
    bool is_negative;
    bool is_merged = false;
};

bool is_sum(const Node& node) {
    const bool adds = is_operator(node, "Add") || is_operator(node, "Sub") || is_operator(node, "Sum");
    if (!adds || node.has("axis")) return false;  // of an old opset, where operands begin at that axis
    const TensorType& type = node.outputs[0]->checked_type();
    return type.rank() > 2 && (type.element == ElementType::float32 || type.element == ElementType::float64);
}

/// The sum that is the only reader of another one, and of its shape; null if there is none.
const Node* enclosing_sum(const Graph& graph, const Node& sum) {
    const Value* result = sum.outputs[0];
    if (result->consumers.size() != 1 || graph.is_output(result)) return nullptr;
    const Node* reader = result->consumers[0];
    return is_sum(*reader) && reader->outputs[0]->checked_type() == result->checked_type() ? reader : nullptr;
}

/// The terms of a sum, with those of the sums in it.
std::vector<Term> terms_of(const Graph& graph, const Node& sum) {
    std::vector<Term> terms, open = {{sum.outputs[0], false}};
    while (!open.empty()) {
        const Term term = open.back();
        open.pop_back();
        const Node* node = term.value->producer;
        if (!node || !is_sum(*node) || (node != &sum && !enclosing_sum(graph, *node))) {
            terms.push_back(term);
            continue;
        }
        for (size_t i = node->inputs.size(); i-- > 0;)
            open.push_back({node->inputs[i], term.is_negative != (i == 1 && is_operator(*node, "Sub"))});
    }
    return terms;
}

/// A term that is linear in a tensor x, apart from a bias: a convolution of x, or x times a factor per channel.
struct Branch {
    Term* term;
    Value* x;
    const Node* conv;         // null if x is scaled
    Value* factor = nullptr;  // null for 1, and for convolutions

    /// The number of taps of the convolution's kernel, 0 without one.
    int64_t taps() const {
        if (!conv) return 0;
        return *product(std::span(conv->inputs[1]->checked_type().shape).subspan(2)).constant();
    }
    Window window(size_t axes) const {
        if (conv) return window_of_conv(*conv);
        WindowAxis pixel;
        pixel.pad_begin = Dim(0);
        return Window(axes, pixel);
    }
};

/// The branch that a term is; nullopt if it is none, if it is broadcast, or if it is computed for others, too.
std::optional<Branch> branch_of(const Graph& graph, Term& term, const TensorType& type) {
    const Node* node = sole_producer(graph, term.value);
    if (!node || term.value->checked_type() != type) return {};
    if (is_operator(*node, "Conv")) {
        if (!has_constant_weights(*node) || !node->inputs[1]->checked_type().elements().constant()) return {};
        return Branch{&term, node->inputs[0], node};
    }
    if (!is_operator(*node, "Mul")) return {};
    for (const size_t i : {0, 1}) {
        Value *x = node->inputs[i], *factor = node->inputs[1 - i];
        if (x->checked_type() == type && is_per_channel(factor, type)) return Branch{&term, x, nullptr, factor};
    }
    return {};
}

/// How many taps of zero a kernel needs before and behind its own along an axis to have them where those of `wide` are;
/// nullopt if some would lie elsewhere.
std::optional<std::array<int64_t, 2>> margins(const WindowAxis& axis, const WindowAxis& wide) {
    const auto pad = axis.pad_begin.constant(), wide_pad = wide.pad_begin.constant();
    if (!pad || !wide_pad || axis.stride != wide.stride) return {};
    if (axis.kernel > 1 && axis.dilation != wide.dilation) return {};
    const int64_t distance = *wide_pad - *pad, before = distance / wide.dilation,
                  behind = wide.kernel - axis.kernel - before;
    if (distance % wide.dilation != 0 || before < 0 || behind < 0) return {};
    return std::array{before, behind};
}

/// A convolution that replaces branches which read the same tensor: it has the sum of their weights and biases, which
/// the fold program computes.
class MergedConv {
public:
    /// The taps of `wide` include those of the others.
    MergedConv(Graph& graph, const Node& sum, const Branch& wide)
        : graph_(graph), sum_(sum), conv_(*wide.conv), window_(window_of_conv(conv_)) {
        take(wide);
    }

    bool is_sum() const { return parts_.size() > 1; }

    /// Includes a branch if that is possible.
    void take(const Branch& branch) {
        if (branch.conv && branch.conv->integer("group", 1) != conv_.integer("group", 1)) return;
        const Window window = branch.window(window_.size());
        std::vector<int64_t> pads(2, 0), behind(2, 0);  // of output and input channels, and then of the kernel
        for (size_t i = 0; i < window.size(); ++i) {
            const auto around = margins(window[i], window_[i]);
            if (!around) return;
            pads.push_back((*around)[0]);
            behind.push_back((*around)[1]);
        }
        pads.insert(pads.end(), behind.begin(), behind.end());
        parts_.push_back({branch, pads});
    }

    /// Adds the convolution and returns its result.
    Value* write() {
        Value *weights = nullptr, *bias = nullptr;
        for (const Part& part : parts_) {
            const Node* conv = part.branch.conv;
            const bool is_negative = part.branch.term->is_negative;
            part.branch.term->is_merged = true;
            weights =
                plus(weights, padded(conv ? conv->inputs[1] : diagonal(part.branch.factor), part.pads), is_negative);
            if (conv && conv->has_input(2)) bias = plus(bias, conv->inputs[2], is_negative);
        }
        NewNode merged{"Conv", conv_.version, {conv_.inputs[0], weights}, conv_.attributes};
        if (bias) merged.inputs.push_back(bias);
        Value* result = add_node(graph_, merged, conv_.name + "_merged", &sum_);
        result->producer->origin = conv_.label();
        return result;
    }

private:
    struct Part {
        Branch branch;
        std::vector<int64_t> pads;  // of its weights
    };

    Value* plus(Value* sum, Value* number, bool is_negative) {
        if (sum) return add(is_negative ? "Sub" : "Add", 14, {sum, number});
        return is_negative ? add("Neg", 13, {number}) : number;
    }

    Value* padded(Value* weights, const std::vector<int64_t>& pads) {
        const bool is_any = std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; });
        return is_any ? add("Pad", 13, {weights, add_numbers(graph_, pads, "taps")}) : weights;
    }

    /// Weights of a single tap that multiply each channel by its factor.
    Value* diagonal(Value* factor) {
        const TensorType& type = conv_.inputs[1]->checked_type();
        const int64_t outputs = *type.shape[0].constant(), inputs = *type.shape[1].constant();
        std::vector<float> ones(outputs * inputs);
        for (int64_t output = 0; output < outputs; ++output) ones[output * inputs + output % inputs] = 1;
        std::vector<int64_t> shape(type.rank(), 1), column(type.rank(), 1);
        shape[0] = outputs;
        shape[1] = inputs;
        column[0] = -1;
        Value* weights = add_constant(graph_, make_constant(ElementType::float32, shape, ones), "diagonal");
        if (type.element != ElementType::float32)
            weights = add_node(graph_, cast(weights, type.element), "diagonal", &sum_);
        if (!factor) return weights;
        return add("Mul", 14, {weights, add("Reshape", 5, {factor, add_numbers(graph_, column, "column")})});
    }

    Value* add(const std::string& type, int version, std::vector<Value*> inputs) {
        return add_node(graph_, {type, version, std::move(inputs)}, conv_.name + "_weights", &sum_);
    }

    Graph& graph_;
    const Node &sum_, &conv_;
    const Window window_;
    std::vector<Part> parts_;
};

/// Merges branches of a sum that read the same tensor. Returns the results of the convolutions that replace them.
std::vector<Value*> merge_branches(Graph& graph, const Node& sum, std::vector<Term>& terms) {
    const TensorType& type = sum.outputs[0]->checked_type();
    std::vector<Branch> branches;
    for (Term& term : terms) {
        if (const auto branch = branch_of(graph, term, type)) branches.push_back(*branch);
    }
    std::ranges::stable_sort(branches, std::greater(), &Branch::taps);
    std::vector<Value*> results;
    for (auto wide = branches.begin(); wide != branches.end() && wide->conv; ++wide) {
        if (wide->term->is_merged) continue;
        MergedConv merged(graph, sum, *wide);
        for (auto other = wide + 1; other != branches.end(); ++other) {
            if (other->x == wide->x && !other->term->is_merged) merged.take(*other);
        }
        // One branch and the tensor itself are left: an element that is read costs less than one that is computed.
        if (!merged.is_sum()) continue;
        for (Term& term : terms) {
            const bool is_x = term.value == wide->x && wide->x->checked_type() == type;
            if (is_x && !term.is_merged) merged.take({&term, wide->x, nullptr});
        }
        results.push_back(merged.write());
    }
    return results;
}

/// Returns whether any terms of a sum were merged.
bool merge_terms(Graph& graph, const Node& sum) {
    std::vector<Term> terms = terms_of(graph, sum);
    const std::vector<Value*> merged = merge_branches(graph, sum, terms);
    if (merged.empty()) return false;
    std::erase_if(terms, std::mem_fn(&Term::is_merged));
    for (Value* result : merged) terms.push_back({result, false});
    // The results first, then the offsets of channels, which their bias can absorb.
    const TensorType& type = sum.outputs[0]->checked_type();
    std::ranges::stable_partition(terms, [&](const Term& term) { return is_per_channel(term.value, type); });
    std::ranges::rotate(terms, terms.end() - static_cast<ptrdiff_t>(merged.size()));
    Value* total = terms[0].value;
    for (size_t i = 1; i < terms.size(); ++i)
        total = add_node(graph, {terms[i].is_negative ? "Sub" : "Add", 14, {total, terms[i].value}}, sum.name, &sum);
    graph.replace_uses(sum.outputs[0], total);
    return true;
}

}  // namespace

bool merge_parallel_convs(Graph& graph) {
    bool is_any = false;
    for (const Node* node : graph.snapshot()) {
        if (is_sum(*node) && !enclosing_sum(graph, *node)) is_any = merge_terms(graph, *node) || is_any;
    }
    if (is_any) prune(graph);
    return is_any;
}

}  // namespace onnx2halide
