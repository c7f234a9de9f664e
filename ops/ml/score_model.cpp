#include "ops/ml/score_model.h"

#include <algorithm>

#include "ops/composite_shapes.h"
#include "ops/ml/maps.h"

namespace onnx2halide {

using enum ElementType;

ScoreModel::ScoreModel(CompositeBuilder& builder)
    : builder_(builder), node_(builder.node()), transform_(node_.string("post_transform", "NONE")) {
    const TensorType& type = builder.input(0)->checked_type();
    constexpr ElementType known[] = {float32, float64, int32, int64};
    if (std::find(std::begin(known), std::end(known), type.element) == std::end(known))
        throw CompileError("input 0 has type {}, expected float32, float64, int32 or int64", info(type.element).name);
    if (type.rank() < 1 || type.rank() > 2 || !type.shape.back().constant() || type.shape.back().is(0))
        throw CompileError("input 0 is {}, expected rows of features", type.text());
    features_ = *type.shape.back().constant();
    rows_ = builder.input(0);
    if (type.rank() == 1) rows_ = reshaped(builder, "row", rows_, {1, features_});
    if (type.element != float32) rows_ = builder_.add("real", cast(rows_, float32));
}

void ScoreModel::check_count(const std::string& attribute, size_t count, int64_t expected) {
    if (static_cast<int64_t>(count) != expected)
        throw CompileError("{} has {} value{}, expected {}", attribute, count, count == 1 ? "" : "s", expected);
}

void ScoreModel::check_transform() const {
    constexpr std::string_view known[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};
    if (std::find(std::begin(known), std::end(known), transform_) == std::end(known))
        throw CompileError("post_transform is '{}', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT",
                           transform_);
}

Value* ScoreModel::columns(const std::string& attribute, int64_t count) {
    const std::vector<float> vectors = reals(attribute);
    check_count(attribute, vectors.size(), count * features_);
    std::vector<float> columns(vectors.size());
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t f = 0; f < features_; ++f) columns[f * count + i] = vectors[i * features_ + f];
    }
    return constant(attribute, float32, {features_, count}, columns);
}

Value* ScoreModel::products(const std::string& attribute, int64_t count) {
    return add("products", "MatMul", 13, {rows_, columns(attribute, count)});
}

Value* ScoreModel::transformed(Value* scores, int64_t columns) {
    if (transform_ == "PROBIT") return add("scores", "Probit", 1, {scores}, {}, own_domain);
    if (columns < 2 || transform_ == "NONE") return add("scores", "Identity", 16, {scores});
    if (transform_ == "LOGISTIC") return add("scores", "Sigmoid", 13, {scores});
    if (transform_ == "SOFTMAX") return add("scores", "Softmax", 13, {scores}, {{"axis", int64_t{1}}});
    return softmax_of_nonzero(scores);
}

/// A softmax over the scores other than 0; zeros are kept.
Value* ScoreModel::softmax_of_nonzero(Value* scores) {
    Value* largest = row_reduced("largest", "ReduceMax", 13, scores);
    Value* powers = add("powers", "Exp", 13, {add("lowered", "Sub", 14, {scores, largest})});
    Value* is_zero = add("is_zero", "LessOrEqual", 16, {add("size", "Abs", 13, {scores}), real("nearly_zero", 1e-7f)});
    Value* nonzero = add("nonzero", "Where", 16, {is_zero, real("nothing", 0), powers});
    Value* sum = row_reduced("sum", "ReduceSum", 11, nonzero);
    Value* scale = add("scale", "Exp", 13, {add("negative", "Neg", 13, {largest})});
    Value* kept = add("kept", "Where", 16, {is_zero, add("scaled_scores", "Mul", 14, {scores, scale}), powers});
    return add("scores", "Div", 14, {kept, sum});
}

Value* ScoreModel::row_reduced(const std::string& role, const std::string& op, int version, Value* x) {
    return add(role, op, version, {x}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
}

Value* ScoreModel::best_place(Value* scores) {
    return add("place", "ArgMax", 13, {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
}

Constant ScoreModel::read_labels() const {
    StringTable strings;  // the graph's own table numbers them when they are added
    return onnx2halide::read_labels(node_, strings, "classlabels_ints");
}

Value* ScoreModel::labels(const Constant& labels, Value* places) {
    Value* table = labels.element == string ? builder_.constant("labels", labels.shape, labels.strings)
                                            : builder_.constant("labels", labels);
    return add("label", "Gather", 13, {table, places}, {{"axis", int64_t{0}}});
}

}  // namespace onnx2halide
