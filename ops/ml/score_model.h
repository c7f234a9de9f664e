#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/composite.h"

namespace onnx2halide {

/// What linear models and support vector machines of ai.onnx.ml share: rows of features, their products with vectors
/// from an attribute, and the transforms of scores. Where ONNX leaves details open, they follow onnxruntime.
class ScoreModel {
public:
    explicit ScoreModel(CompositeBuilder& builder);

protected:
    CompositeBuilder& builder_;
    const Node& node_;
    Value* rows_;  // float32, two axes
    int64_t features_;
    const std::string transform_;

    Value* add(const std::string& role, const std::string& op, int version, const std::vector<Value*>& inputs,
               const std::map<std::string, Attribute>& attributes = {}, const std::string& domain = "") {
        return builder_.add(role, {op, version, inputs, attributes, domain});
    }
    template <typename T>
    Value* constant(const std::string& role, ElementType type, std::vector<int64_t> shape, const std::vector<T>& of) {
        return builder_.constant(role, make_constant(type, std::move(shape), of));
    }
    Value* real(const std::string& role, float number) {
        return constant(role, ElementType::float32, {}, std::vector{number});
    }

    /// An attribute's numbers; empty if it is missing.
    std::vector<float> reals(const std::string& attribute) const {
        return node_.has(attribute) ? node_.reals(attribute) : std::vector<float>();
    }
    static void check_count(const std::string& attribute, size_t count, int64_t expected);
    void check_transform() const;

    /// `count` vectors of an attribute as the columns of a matrix, and the products of the rows with each of them.
    Value* columns(const std::string& attribute, int64_t count);
    Value* products(const std::string& attribute, int64_t count);

    /// The scores after post_transform; for a single column only PROBIT has an effect.
    Value* transformed(Value* scores, int64_t columns);

    /// The index of each row's largest score, the first of equal ones.
    Value* best_place(Value* scores);
    /// A classifier's labels, and those at given indices.
    Constant read_labels() const;
    Value* labels(const Constant& labels, Value* places);

private:
    Value* softmax_of_nonzero(Value* scores);
    Value* row_reduced(const std::string& role, const std::string& op, int version, Value* x);
};

/// A classifier's node, whose labels may be strings.
template <Expand expand_node>
class ClassifierNode : public Composite {
public:
    explicit ClassifierNode(const Node& node) : Composite(node, expand_node) {}
    bool takes_strings() const override { return true; }
};

}  // namespace onnx2halide
