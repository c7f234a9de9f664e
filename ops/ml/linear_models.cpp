#include "ops/ml/features.h"
#include "ops/ml/score_model.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// What LinearRegressor and LinearClassifier (ai.onnx.ml) share: sums of products of features and coefficients.
class LinearModel : public ScoreModel {
protected:
    explicit LinearModel(CompositeBuilder& builder) : ScoreModel(builder) { check_transform(); }

    Value* sums(int64_t count) {
        Value* sums = products("coefficients", count);
        const std::vector<float> intercepts = reals("intercepts");
        if (intercepts.empty()) return sums;
        check_count("intercepts", intercepts.size(), count);
        return add("sums", "Add", 14, {sums, constant("intercepts", float32, {count}, intercepts)});
    }
};

class Regressor : public LinearModel {
public:
    explicit Regressor(CompositeBuilder& builder) : LinearModel(builder) {}

    Value* make() {
        const int64_t targets = node_.integer("targets", 1);
        if (targets < 1 || targets > Dim::unbounded) throw CompileError("targets is {}, expected 1 or more", targets);
        return transformed(sums(targets), targets);
    }
};

class Classifier : public LinearModel {
public:
    explicit Classifier(CompositeBuilder& builder) : LinearModel(builder) {}

    /// Labels and scores.
    std::vector<Value*> make() {
        const Constant known = read_labels();
        const int64_t classes = known.elements();
        if (classes < 2) throw CompileError("there is 1 class label, expected 2 or more");
        if (classes == 2 && static_cast<int64_t>(reals("coefficients").size()) == features_) return of_pair(known);
        Value* scores = sums(classes);
        return {labels(known, best_place(scores)), transformed(scores, classes)};
    }

private:
    /// For two classes there may be a single sum, the second one's score. LOGISTIC is the only transform that affects
    /// it.
    std::vector<Value*> of_pair(const Constant& known) {
        // onnxruntime leaves the other score uninitialised.
        if (transform_ == "PROBIT")
            throw CompileError("post_transform is 'PROBIT', expected another one as two classes have one score");
        Value* sum = sums(1);
        Value* is_second = add("is_second", "Greater", 13, {sum, real("zero", 0)});
        Value* place = add("place", "Squeeze", 11, {builder_.add("number", cast(is_second, int64))},
                           {{"axes", std::vector<int64_t>{1}}});
        Value* both = add("both", "Mul", 14, {sum, constant("signs", float32, {2}, std::vector{-1.0f, 1.0f})});
        Value* scores =
            transform_ == "LOGISTIC"
                ? transformed(both, 2)
                : add("scores", "Add", 14, {both, constant("complement", float32, {2}, std::vector{1.0f, 0.0f})});
        return {labels(known, place), scores};
    }
};

std::vector<Value*> expand_regressor(CompositeBuilder& builder) { return {Regressor(builder).make()}; }
std::vector<Value*> expand_classifier(CompositeBuilder& builder) { return Classifier(builder).make(); }

}  // namespace

std::vector<Operator> linear_model_operators() {
    return {{"LinearClassifier", 1, make<ClassifierNode<expand_classifier>>, ml_domain},
            {"LinearRegressor", 1, make_composite<expand_regressor>, ml_domain}};
}

}  // namespace onnx2halide
