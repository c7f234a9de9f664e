#include <numeric>

#include "ops/composite.h"
#include "ops/image/resize.h"

namespace onnx2halide {

namespace {

/// Resizes by scales, or by a common scale that follows from sizes: nodes compute the sizes, and the compiler's own
/// Resize takes both.
class ResizeExpansion {
public:
    explicit ResizeExpansion(CompositeBuilder& builder)
        : builder_(builder), node_(builder.node()), attributes_(node_.attributes) {}

    Value* resized() {
        const bool is_first = node_.op_type == "Upsample" || node_.version < 11;  // versions without sizes
        if (is_first) {
            attributes_["coordinate_transformation_mode"] = "asymmetric";
            attributes_["nearest_mode"] = node_.op_type == "Upsample" ? "floor" : "by_scale";
        }
        Value* scales = given_scales(is_first ? 1 : 2);
        const bool has_scales = scales != nullptr;
        if (has_scales) attributes_.erase("keep_aspect_ratio_policy");
        find_extents();
        if (!has_scales) scales = common_scale();
        Value *roi = is_first ? nullptr : builder_.optional_input(1),
              *sizes = has_scales ? scaled(scales) : rounded(scales);
        return builder_.add("by_size",
                            {"Resize", 13, {builder_.input(0), roi, scales, sizes}, attributes_, own_domain});
    }

private:
    CompositeBuilder& builder_;
    const Node& node_;
    std::map<std::string, Attribute> attributes_;
    Value* extents_ = nullptr;  // of the axes that are resized, int64

    /// Null if there are none. Known scales are limited to those that change an extent, so that other extents stay
    /// known.
    Value* given_scales(size_t input) {
        Value* scales = builder_.optional_input(input);
        if (scales && scales->checked_type().elements().is(0)) return nullptr;
        std::vector<double> known;
        if (node_.has("scales")) {
            const std::vector<float> numbers = node_.reals("scales");
            known.assign(numbers.begin(), numbers.end());
            attributes_.erase("scales");
        } else if (scales && scales->constant) {
            known = scales->constant->reals();
        } else if (scales && scales->known) {
            known = scales->known->reals;
        }
        const bool crops = node_.string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
        return known.empty() || (scales && crops) ? scales : other_than_one(known);
    }

    Value* other_than_one(const std::vector<double>& scales) {
        std::vector<int64_t> axes(scales.size());
        std::iota(axes.begin(), axes.end(), 0);
        axes = node_.integers("axes", axes);
        std::vector<int64_t> kept_axes;
        std::vector<float> kept;
        for (size_t i = 0; i < scales.size(); ++i) {
            if (scales[i] == 1) continue;
            kept_axes.push_back(axes[i]);
            kept.push_back(static_cast<float>(scales[i]));
        }
        attributes_["axes"] = kept_axes;
        return builder_.constant("scales",
                                 make_constant(ElementType::float32, {static_cast<int64_t>(kept.size())}, kept));
    }

    void find_extents() {
        extents_ = builder_.add("shape", {"Shape", 13, {builder_.input(0)}});
        if (!attributes_.contains("axes")) return;
        const auto axes = std::get<std::vector<int64_t>>(attributes_["axes"]);
        Value* named =
            builder_.constant("axes", make_constant(ElementType::int64, {static_cast<int64_t>(axes.size())}, axes));
        extents_ = builder_.add("extents", {"Gather", 13, {extents_, named}, {{"axis", int64_t{0}}}});
    }

    /// floor(extent * scale), in float as in the standard's own inference.
    Value* scaled(Value* scales) {
        Value* extents = builder_.add("real_extents", cast(extents_, ElementType::float32));
        Value* product = builder_.add(
            "scaled", {"Mul", 14, {extents, builder_.add("real_scales", cast(scales, ElementType::float32))}});
        return builder_.add("sizes", cast(builder_.add("floor", {"Floor", 13, {product}}), ElementType::int64));
    }

    /// The smallest or largest of the axes' scales that follow from the sizes, for each axis.
    Value* common_scale() {
        const bool is_larger = node_.string("keep_aspect_ratio_policy", "") == "not_smaller";
        Value *sizes = builder_.add("real_sizes", cast(builder_.input(3), ElementType::float64)),
              *extents = builder_.add("real_extents", cast(extents_, ElementType::float64));
        Value* scales = builder_.add("scales", {"Div", 14, {sizes, extents}});
        Value* common = builder_.add("common", {is_larger ? "ReduceMax" : "ReduceMin", 13, {scales}});
        const int64_t count = *scales->checked_type().elements().constant();
        Value* shape = builder_.constant("count", make_constant(ElementType::int64, {1}, std::vector<int64_t>{count}));
        return builder_.add("common_scales", {"Expand", 13, {common, shape}});
    }

    Value* rounded(Value* scales) {
        Value* half = builder_.constant("half", make_constant(ElementType::float64, {1}, std::vector<double>{0.5}));
        Value* extents = builder_.add("wide_extents", cast(extents_, ElementType::float64));
        Value* product = builder_.add("scaled", {"Mul", 14, {extents, scales}});
        Value* raised = builder_.add("raised", {"Add", 14, {product, half}});
        return builder_.add("sizes", cast(builder_.add("floor", {"Floor", 13, {raised}}), ElementType::int64));
    }
};

}  // namespace

std::vector<Value*> expand_resize(CompositeBuilder& builder) { return {ResizeExpansion(builder).resized()}; }

}  // namespace onnx2halide
