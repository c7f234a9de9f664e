#include "ops/text/ngrams.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "ops/constant_rows.h"
#include "ops/families.h"
#include "ops/host_node.h"
#include "ops/replaced_node.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// The range of lengths of n-grams that are counted.
struct LengthRange {
    explicit LengthRange(const Node& node)
        : min(node.integer("min_gram_length")), max(node.integer("max_gram_length")) {
        if (min < 1 || max < min)
            throw CompileError("min_gram_length is {} and max_gram_length is {}, expected 1 <= min <= max", min, max);
    }
    const int64_t min, max;
};

void check_rest(const Node& node) {
    const int64_t skips = node.integer("max_skip_count");
    if (skips < 0) throw CompileError("max_skip_count is {}, expected 0 or more", skips);
    const std::string& mode = node.string("mode");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
        throw CompileError("mode is '{}', expected TF, IDF or TFIDF", mode);
}

/// The columns in `ngram_indexes`.
std::vector<int64_t> read_columns(const Node& node) {
    std::vector<int64_t> columns = node.integers("ngram_indexes", {});
    if (columns.empty()) throw CompileError("ngram_indexes has no values");
    const auto [low, high] = std::minmax_element(columns.begin(), columns.end());
    if (*low < 0 || *high >= Dim::unbounded)
        throw CompileError("ngram_indexes has {}, expected 0 to {}", *low < 0 ? *low : *high, Dim::unbounded - 1);
    return columns;
}

/// The number of n-grams of each length in the pool, from their starts in `ngram_counts`.
std::vector<int64_t> read_lengths(const Node& node, int64_t pool_size) {
    const std::vector<int64_t> starts = node.integers("ngram_counts", {});
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < starts.size(); ++i) {
        const int64_t end = i + 1 < starts.size() ? starts[i + 1] : pool_size, length = static_cast<int64_t>(i) + 1;
        if (starts[i] < 0 || end < starts[i] || end > pool_size || (i == 0 && starts[i] != 0))
            throw CompileError("ngram_counts has {} and then {}, expected ascending places in a pool of {} from 0",
                               starts[i], end, pool_size);
        if ((end - starts[i]) % length != 0)
            throw CompileError("the pool has {} items for n-grams of length {}, expected a multiple", end - starts[i],
                               length);
        lengths.push_back((end - starts[i]) / length);
    }
    return lengths;
}

void check_count(std::string_view attribute, size_t count, const std::vector<int64_t>& lengths) {
    const int64_t ngrams = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    if (count != static_cast<size_t>(ngrams))
        throw CompileError("{} has {} values, expected {} as there are n-grams", attribute, count, ngrams);
}

/// TfIdfVectorizer (9) of the model. A pass replaces it by WeighNgrams (see expand_encoders).
class TfIdfVectorizer : public ReplacedNode {
public:
    using ReplacedNode::ReplacedNode;
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        StringTable strings;
        const Ngrams ngrams = read_ngrams(node_, strings);
        const ElementType type = in(0).element;
        if (type != string && type != int32 && type != int64)
            throw CompileError("input 0 has type {}, expected string, int32 or int64", info(type).name);
        if ((type == string) != (ngrams.pool.element == string))
            throw CompileError("the pool has {}, but input 0 has type {}",
                               ngrams.pool.element == string ? "strings" : "integers", info(type).name);
        if (in(0).rank() != 1 && in(0).rank() != 2)
            throw CompileError("input 0 has rank {}, expected 1 or 2", in(0).rank());
        std::vector<Dim> shape = in(0).shape;
        shape.back() = ngrams.column_count;
        return {TensorType(float32, shape)};
    }
};

/// The weights of a pool's n-grams in each row of input 0, float64: the compiler's own operator, a function in
/// runtime/ngrams.c. Its further inputs are the constants of Ngrams.
class WeighNgrams : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape = in(0).shape;
        shape.back() = node_.integer("columns");
        return {TensorType(float64, shape)};
    }
    HostCall host_call() const override {
        return {"onnx2halide_weigh_ngrams",
                {node_.string("mode") == "IDF" ? "0" : "1", fmt::to_string(node_.integer("max_skip_count")),
                 fmt::to_string(node_.integer("columns"))},
                5};
    }
};

}  // namespace

Ngrams read_ngrams(const Node& node, StringTable& strings) {
    const LengthRange range(node);
    check_rest(node);
    const Constant pool = read_items(node, "pool_int64s", "pool_strings", strings);
    const std::vector<int64_t> items = pool.integers(), columns = read_columns(node),
                               lengths = read_lengths(node, pool.elements());
    const std::vector<float> weights = node.has("weights") ? node.reals("weights") : std::vector<float>();
    check_count("ngram_indexes", columns.size(), lengths);
    if (!weights.empty()) check_count("weights", weights.size(), lengths);

    std::vector<int64_t> kept, kept_lengths, kept_columns;
    std::vector<float> kept_weights;
    auto item = items.begin();
    size_t place = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
        const int64_t length = static_cast<int64_t>(i) + 1;
        std::map<std::vector<int64_t>, size_t> ascending;  // for a duplicate n-gram, the last one
        for (int64_t n = 0; n < lengths[i]; ++n, item += length) ascending[{item, item + length}] = place++;
        if (length < range.min || length > range.max) ascending.clear();
        kept_lengths.push_back(static_cast<int64_t>(ascending.size()));
        for (const auto& [ngram, number] : ascending) {
            kept.insert(kept.end(), ngram.begin(), ngram.end());
            kept_columns.push_back(columns[number]);
            if (!weights.empty()) kept_weights.push_back(weights[number]);
        }
    }
    Ngrams ngrams{row_of(int64, kept),
                  row_of(int64, kept_lengths),
                  row_of(int64, kept_columns),
                  {},
                  *std::max_element(columns.begin(), columns.end()) + 1};
    ngrams.pool.element = pool.element;
    if (!weights.empty() && node.string("mode") != "TF") ngrams.weights = row_of(float32, kept_weights);
    return ngrams;
}

std::vector<Operator> ngram_operators() {
    return {{"TfIdfVectorizer", 9, make<TfIdfVectorizer>}, {"WeighNgrams", 1, make<WeighNgrams>, own_domain}};
}

}  // namespace onnx2halide
