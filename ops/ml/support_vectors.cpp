#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ops/composite_shapes.h"
#include "ops/host_node.h"
#include "ops/ml/features.h"
#include "ops/ml/score_model.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// What SVMClassifier and SVMRegressor (ai.onnx.ml) share: a kernel function of each row and each support vector, and
/// weighted sums of these.
class SupportVectorMachine : public ScoreModel {
public:
    using ScoreModel::ScoreModel;

protected:
    /// Products plus rho: a machine with one support vector per result, its weights.
    Value* linear_scores(int64_t count) {
        return add("linear", "Add", 14, {products("coefficients", count), real("rho", reals("rho").front())});
    }
    /// The kernel function of the rows and each of `count` support vectors.
    Value* kernels(int64_t count);
};

Value* SupportVectorMachine::kernels(int64_t count) {
    const std::string type = node_.string("kernel_type", "LINEAR");
    if (type == "LINEAR") return products("support_vectors", count);
    if (type != "POLY" && type != "RBF" && type != "SIGMOID")
        throw CompileError("kernel_type is '{}', expected LINEAR, POLY, RBF or SIGMOID", type);
    const std::vector<float> numbers = reals("kernel_params");
    check_count("kernel_params", numbers.size(), 3);
    const float gamma = numbers[0], coef0 = numbers[1], degree = numbers[2];
    if (type == "RBF") {
        Value* squares =
            add("squares", "SquaredDistances", 1, {rows_, columns("support_vectors", count)}, {}, own_domain);
        return add("kernels", "Exp", 13, {add("powers", "Mul", 14, {squares, real("gamma", -gamma)})});
    }
    Value* scaled = add("scaled", "Mul", 14, {products("support_vectors", count), real("gamma", gamma)});
    Value* moved = add("moved", "Add", 14, {scaled, real("coef0", coef0)});
    if (type == "SIGMOID") return add("kernels", "Tanh", 13, {moved});
    return add("kernels", "Pow", 15, {moved, real("degree", degree)});
}

/// SVMRegressor: a sum for each row or, with one_class, whether it is above 0. As in onnxruntime, post_transform has no
/// effect.
class Regressor : public SupportVectorMachine {
public:
    using SupportVectorMachine::SupportVectorMachine;

    Value* make() {
        check_count("rho", reals("rho").size(), 1);
        const int64_t count = node_.integer("n_supports", 0);
        Value* sums = count > 0 ? weighted_sums(count) : linear_scores(1);
        if (node_.integer("one_class", 0) == 0) return sums;
        Value* is_inside = add("is_inside", "Greater", 13, {sums, real("zero", 0)});
        return add("class", "Where", 16, {is_inside, real("inside", 1), real("outside", -1)});
    }

private:
    Value* weighted_sums(int64_t count) {
        const std::vector<float> weights = reals("coefficients");
        check_count("coefficients", weights.size(), count);
        Value* sums =
            add("sums", "MatMul", 13, {kernels(count), constant("coefficients", float32, {count, 1}, weights)});
        return add("moved_sums", "Add", 14, {sums, real("rho", reals("rho").front())});
    }
};

/// SVMClassifier. With support vectors, a machine for each pair of classes votes for one of the two; without them, each
/// class has a score, and the largest wins.
class Classifier : public SupportVectorMachine {
public:
    explicit Classifier(CompositeBuilder& builder)
        : SupportVectorMachine(builder), labels_(read_labels()), classes_(labels_.elements()),
          pairs_(classes_ * (classes_ - 1) / 2), vectors_(node_.integers("vectors_per_class", {})),
          count_(sum(vectors_)), has_probabilities_(!reals("prob_a").empty()) {
        check_transform();
        if (reals("rho").empty()) throw CompileError("rho has no values");
    }

    /// Labels and scores.
    std::vector<Value*> make() {
        if (count_ == 0) {
            Value* scores = linear_scores(classes_);
            return {labels(labels_, best_score(scores)), transformed(scores, classes_)};
        }
        check_pairs();
        Value* sums = pair_sums();
        Value* is_first = add("is_first", "Greater", 13, {sums, constant("zero", float64, {}, std::vector{0.0})});
        return {labels(labels_, most_votes(is_first)), pair_scores(builder_.add("pair_scores", cast(sums, float32)))};
    }

private:
    const Constant labels_;
    const int64_t classes_, pairs_;
    const std::vector<int64_t> vectors_;  // of each class
    const int64_t count_;                 // of all vectors
    const bool has_probabilities_;

    static int64_t sum(const std::vector<int64_t>& vectors);
    void check_pairs() const;
    Value* pair_sums();
    Value* most_votes(Value* is_first);
    Value* best_score(Value* scores);
    Value* pair_scores(Value* sums);
    Value* two_scores(Value* score);
    Value* probabilities(Value* sums);
};

int64_t Classifier::sum(const std::vector<int64_t>& vectors) {
    for (const int64_t count : vectors) {
        if (count < 0 || count > Dim::unbounded)
            throw CompileError("vectors_per_class has the value {}, expected 0 or more", count);
    }
    return std::accumulate(vectors.begin(), vectors.end(), int64_t{0});
}

void Classifier::check_pairs() const {
    if (classes_ < 2) throw CompileError("there is 1 class label, expected 2 or more");
    check_count("vectors_per_class", vectors_.size(), classes_);
    check_count("coefficients", reals("coefficients").size(), (classes_ - 1) * count_);
    check_count("rho", reals("rho").size(), pairs_);
    const size_t probabilities = reals("prob_a").size();
    if (has_probabilities_) check_count("prob_a", probabilities, pairs_);
    check_count("prob_b", reals("prob_b").size(), static_cast<int64_t>(probabilities));
}

/// The sum for each pair of classes, in float64 as in onnxruntime: its sign is a vote. Row j - 1 of the coefficients
/// holds those of class i < j against j, row i those of class j against i. Vectors of other classes contribute 0: one
/// product with a wide matrix takes more multiplications than many with narrow ones, but less time.
Value* Classifier::pair_sums() {
    const std::vector<float> given = reals("coefficients"), rho = reals("rho");
    std::vector<double> weights(count_ * pairs_);
    std::vector<int64_t> starts(classes_);
    std::exclusive_scan(vectors_.begin(), vectors_.end(), starts.begin(), int64_t{0});
    int64_t pair = 0;
    const auto put = [&](int64_t of, int64_t row) {
        for (int64_t m = starts[of]; m < starts[of] + vectors_[of]; ++m)
            weights[m * pairs_ + pair] = given[row * count_ + m];
    };
    for (int64_t i = 0; i < classes_; ++i) {
        for (int64_t j = i + 1; j < classes_; ++j, ++pair) {
            put(i, j - 1);
            put(j, i);
        }
    }
    Value* wide = builder_.add("wide", cast(kernels(count_), float64));
    Value* sums = add("sums", "MatMul", 13, {wide, constant("weights", float64, {count_, pairs_}, weights)});
    return add("pair_sums", "Add", 14,
               {sums, constant("rho", float64, {pairs_}, std::vector<double>(rho.begin(), rho.end()))});
}

/// The index of the class with the most votes, the first of equal ones. A class has one vote for each pair in which it
/// is second, plus one for each that it wins as the first, minus one for each that it loses as the second.
Value* Classifier::most_votes(Value* is_first) {
    std::vector<float> changes(pairs_ * classes_), as_second(classes_);
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i) {
        for (int64_t j = i + 1; j < classes_; ++j, ++pair) {
            changes[pair * classes_ + i] = 1;
            changes[pair * classes_ + j] = -1;
            as_second[j] += 1;
        }
    }
    Value* changed =
        add("changed_votes", "MatMul", 13,
            {builder_.add("wins", cast(is_first, float32)), constant("changes", float32, {pairs_, classes_}, changes)});
    Value* votes = add("votes", "Add", 14, {changed, constant("as_second", float32, {classes_}, as_second)});
    return best_place(votes);
}

/// The index of the class with the largest score. Of two classes without probabilities, the second one also wins if
/// that score is above 0 or, if no coefficient is negative, at least a half.
Value* Classifier::best_score(Value* scores) {
    Value* place = best_place(scores);
    if (classes_ != 2 || has_probabilities_) return place;
    const std::vector<float> weights = reals("coefficients");
    const bool all_positive = std::all_of(weights.begin(), weights.end(), [](float weight) { return weight >= 0; });
    Value* best = add("best", "ReduceMax", 13, {scores}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
    Value* is_second = all_positive ? add("is_second", "GreaterOrEqual", 16, {best, real("half", 0.5f)})
                                    : add("is_second", "Greater", 13, {best, real("zero", 0)});
    return add("either_place", "Where", 16, {is_second, constant("second", int64, {}, std::vector<int64_t>{1}), place});
}

Value* Classifier::pair_scores(Value* sums) {
    if (has_probabilities_) return transformed(probabilities(sums), classes_);
    return classes_ == 2 ? two_scores(sums) : transformed(sums, pairs_);
}

/// Both scores for a single pair's sum. onnxruntime sets only one if PROBIT transforms it; here the other one is 0.
Value* Classifier::two_scores(Value* score) {
    if (transform_ == "PROBIT") {
        Value* is_set = constant("is_set", boolean, {2}, std::vector<uint8_t>{1, 0});
        return add("two_scores", "Where", 16, {is_set, transformed(score, 2), real("unset", 0)});
    }
    Value* both = add("both", "Mul", 14, {score, constant("signs", float32, {2}, std::vector{-1.0f, 1.0f})});
    if (transform_ == "NONE" || transform_ == "LOGISTIC") return transformed(both, 2);
    return add("two_scores", "Add", 14, {both, constant("complement", float32, {2}, std::vector{1.0f, 0.0f})});
}

/// The probabilities of the classes, computed from those of the first classes of pairs.
Value* Classifier::probabilities(Value* sums) {
    const auto row = [&](const char* attribute) { return constant(attribute, float32, {pairs_}, reals(attribute)); };
    Value* sloped = add("sloped", "Add", 14, {add("scaled_sums", "Mul", 14, {sums, row("prob_a")}), row("prob_b")});
    Value* of_second = add("of_second", "Sigmoid", 13, {sloped});
    Value* of_first = add("of_first", "Sub", 14, {real("one", 1), of_second});
    Value* pairs = add("pairs", "Clip", 13, {of_first, real("least", 1e-7f), real("most", 1 - 1e-7f)});
    Value* coupled = add("coupled", "CouplePairs", 1, {pairs}, {{"classes", classes_}}, own_domain);
    return part(builder_, "probabilities", coupled, 1, 0, classes_);
}

/// The probabilities of classes that agree best with those of the first classes of all pairs, [rows, pairs], by the
/// iteration of Wu, Lin and Weng (2004, second method): the compiler's own operator. The number of iterations depends
/// on the row, and an iteration's steps on each other's elements, so that a kernel would be no faster than a scalar
/// loop: it is a function in runtime/. A row's probabilities are followed by scratch memory for the function, as a run
/// does not allocate any.
class CouplePairs : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        return {TensorType(float32, {in(0).shape[0], 3 * node_.integer("classes")})};
    }
    HostCall host_call() const override {
        return {"onnx2halide_couple_pairs", {fmt::to_string(node_.integer("classes"))}, 1};
    }
};

std::vector<Value*> expand_regressor(CompositeBuilder& builder) { return {Regressor(builder).make()}; }
std::vector<Value*> expand_classifier(CompositeBuilder& builder) { return Classifier(builder).make(); }

}  // namespace

std::vector<Operator> support_vector_operators() {
    return {{"SVMClassifier", 1, make<ClassifierNode<expand_classifier>>, ml_domain},
            {"SVMRegressor", 1, make_composite<expand_regressor>, ml_domain},
            {"CouplePairs", 1, make<CouplePairs>, own_domain}};
}

}  // namespace onnx2halide
