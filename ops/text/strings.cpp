#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include "ops/families.h"
#include "ops/host_node.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

/// An operator on strings: a function declared in runtime/string_operators.h.
class StringNode : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_strings() const override { return true; }

protected:
    void check_strings(size_t i) const {
        if (in(i).element != ElementType::string)
            throw CompileError("input {} has type {}, expected string", i, info(in(i).element).name);
    }
};

/// com.microsoft.MurmurHash3: a 32-bit hash of each element.
class MurmurHash : public StringNode {
public:
    using StringNode::StringNode;

    std::vector<TensorType> infer() const override {
        const ElementType type = in(0).element;
        const size_t bytes = info(type).bytes;
        if (type != ElementType::string && bytes != 4 && bytes != 8)
            throw CompileError("input 0 has type {}, expected string or a number of 32 or 64 bits", info(type).name);
        const bool is_positive = node_.integer("positive", 1) == 1;
        return {TensorType(is_positive ? ElementType::uint32 : ElementType::int32, in(0).shape)};
    }
    HostCall host_call() const override {
        const bool are_strings = in(0).element == ElementType::string;
        return {"onnx2halide_murmur_hash",
                {are_strings ? "1" : "0", fmt::format("{}u", static_cast<uint32_t>(node_.integer("seed", 0)))}};
    }
};

/// StringConcat (20)
class StringConcat : public StringNode {
public:
    using StringNode::StringNode;

    std::vector<TensorType> infer() const override {
        check_strings(0);
        check_strings(1);
        return {TensorType(ElementType::string, broadcast(in(0).shape, in(1).shape))};
    }
    HostCall host_call() const override { return {"onnx2halide_string_concat", {}, 2}; }
};

/// StringSplit (20)
class StringSplit : public StringNode {
public:
    using StringNode::StringNode;

    std::vector<TensorType> infer() const override {
        check_strings(0);
        std::vector<Dim> shape = in(0).shape;
        shape.push_back(found(0, shape.size()));
        return {TensorType(ElementType::string, std::move(shape)), TensorType(ElementType::int64, in(0).shape)};
    }
    HostCall host_call() const override {
        const std::string delimiter = node_.string("delimiter", "");
        if (delimiter.find('\0') != std::string::npos) throw CompileError("delimiter has a null character");
        return {"onnx2halide_string_split",
                {delimiter.empty() ? "NULL" : string_literal(delimiter), fmt::to_string(node_.integer("maxsplit", -1))},
                1,
                2};
    }
};

/// A C array of strings.
std::string strings_text(const std::vector<std::string>& strings) {
    std::vector<std::string> rows;
    for (const std::string& text : strings)
        rows.push_back(fmt::format("{{{}, {}}}", string_literal(text), text.size()));
    return rows.empty() ? "NULL" : fmt::format("(const onnx2halide_string[]){{{}}}", fmt::join(rows, ", "));
}

/// StringNormalizer (10)
class StringNormalizer : public StringNode {
public:
    explicit StringNormalizer(const Node& node) : StringNode(node), change_(node.string("case_change_action", "NONE")) {
        constexpr std::string_view known[] = {"NONE", "LOWER", "UPPER"};
        if (std::find(std::begin(known), std::end(known), change_) == std::end(known))
            throw CompileError("case_change_action is '{}', expected NONE, LOWER or UPPER", change_);
    }

    std::vector<TensorType> infer() const override {
        check_strings(0);
        const std::vector<Dim>& shape = in(0).shape;
        if (shape.size() == 1) return {TensorType(ElementType::string, {found(0, 0, max(shape[0], Dim(1)))})};
        if (shape.size() != 2 || prove_equal(shape[0], 1) == Proof::no)
            throw CompileError("input has shape {}, expected strings in a row", shape_text(shape));
        return {TensorType(ElementType::string, {1, found(0, 1, max(shape[1], Dim(1)))})};
    }

    HostCall host_call() const override {
        const std::string change = change_ == "NONE" ? "SAME" : change_;
        const std::vector<std::string> words = node_.strings("stopwords");
        return {"onnx2halide_string_normalizer",
                {fmt::format("ONNX2HALIDE_{}_CASE", change), node_.integer("is_case_sensitive", 0) ? "1" : "0",
                 string_literal(node_.string("locale", "")), fmt::to_string(words.size()), strings_text(words)}};
    }

private:
    std::string change_;
};

void check_pattern(std::string_view attribute, const std::string& pattern) {
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 expression(pattern, options);
    if (!expression.ok()) throw CompileError("{} is not an expression of RE2: {}", attribute, expression.error());
}

/// RegexFullMatch (20)
class RegexFullMatch : public StringNode {
public:
    explicit RegexFullMatch(const Node& node) : StringNode(node), pattern_(node.string("pattern")) {
        check_pattern("pattern", pattern_);
    }

    std::vector<TensorType> infer() const override {
        check_strings(0);
        return {TensorType(ElementType::boolean, in(0).shape)};
    }
    HostCall host_call() const override {
        return {.function = "onnx2halide_regex_full_match",
                .arguments = {string_literal(pattern_), fmt::to_string(pattern_.size())},
                .needs_re2 = true};
    }

private:
    std::string pattern_;
};

/// Tokenizer of com.microsoft: what is between separators or, if there are none, what matches tokenexp.
class Tokenizer : public StringNode {
public:
    explicit Tokenizer(const Node& node) : StringNode(node), patterns_(node.strings("separators")) {
        are_separators_ = !patterns_.empty();
        if (!are_separators_) patterns_ = {node.string("tokenexp", "")};
        // In onnxruntime both match every character, including line ends.
        if (patterns_ == std::vector<std::string>{are_separators_ ? "" : "."}) {
            are_separators_ = false;
            patterns_ = {"(?s:.)"};
        }
        for (const std::string& pattern : patterns_) {
            if (pattern.empty()) throw CompileError("{} is empty", are_separators_ ? "a separator" : "tokenexp");
            check_pattern(are_separators_ ? "a separator" : "tokenexp", pattern);
        }
    }

    std::vector<TensorType> infer() const override {
        check_strings(0);
        std::vector<Dim> shape = in(0).shape;
        if (shape.empty() || shape.size() > 2) throw CompileError("input has rank {}, expected 1 or 2", shape.size());
        shape.push_back(found(0, shape.size()));
        return {TensorType(ElementType::string, std::move(shape))};
    }

    HostCall host_call() const override {
        const std::string pad = node_.string("pad_value");
        return {.function = "onnx2halide_tokenizer",
                .arguments = {are_separators_ ? "1" : "0", fmt::to_string(node_.integer("mincharnum")),
                              node_.integer("mark") ? "1" : "0",
                              fmt::format("(onnx2halide_string){{{}, {}}}", string_literal(pad), pad.size()),
                              fmt::to_string(patterns_.size()), strings_text(patterns_)},
                .needs_re2 = true};
    }

private:
    std::vector<std::string> patterns_;
    bool are_separators_ = false;
};

}  // namespace

std::vector<Operator> string_operators() {
    return {
        {"StringConcat", 20, make<StringConcat>},
        {"StringSplit", 20, make<StringSplit>},
        {"StringNormalizer", 10, make<StringNormalizer>},
        {"RegexFullMatch", 20, make<RegexFullMatch>},
        {"Tokenizer", 1, make<Tokenizer>, microsoft_domain},
        {"MurmurHash3", 1, make<MurmurHash>, microsoft_domain},
    };
}

}  // namespace onnx2halide
