#include "ops/composite.h"
#include "ops/resize.h"

namespace onnx2halide {

namespace {

/// Resizes by scales that only a run knows, or by a common scale that follows from sizes: nodes compute the sizes, and
/// the compiler's own Resize takes both.
class ResizeExpansion {
public:
    explicit ResizeExpansion(Expansion& expansion) : expansion_(expansion) {}

    Value* resized() {
        const Node& node = expansion_.node();
        const bool is_first = node.op_type == "Upsample" || node.version < 11;  // versions without sizes
        Value* scales = expansion_.optional_input(is_first ? 1 : 2);
        const bool has_scales = scales && !scales->checked_type().elements().is(0);
        find_extents();
        if (!has_scales) scales = common_scale();
        std::map<std::string, Attribute> attributes = node.attributes;
        attributes.erase("keep_aspect_ratio_policy");
        if (is_first) {
            attributes["coordinate_transformation_mode"] = "asymmetric";
            attributes["nearest_mode"] = "floor";
        }
        Value *roi = is_first ? nullptr : expansion_.optional_input(1),
              *sizes = has_scales ? scaled(scales) : rounded(scales);
        return expansion_.add("by_size",
                              {"Resize", 13, {expansion_.input(0), roi, scales, sizes}, attributes, "onnx2halide"});
    }

private:
    Expansion& expansion_;
    Value* extents_ = nullptr;  // of the axes that are resized, int64

    Value* cast(const std::string& role, Value* value, ElementType to) {
        return expansion_.add(role, {"Cast", 13, {value}, {{"to", static_cast<int64_t>(to)}}});
    }

    void find_extents() {
        extents_ = expansion_.add("shape", {"Shape", 13, {expansion_.input(0)}});
        if (!expansion_.node().has("axes")) return;
        const std::vector<int64_t> axes = expansion_.node().integers("axes");
        Value* named =
            expansion_.constant("axes", make_constant(ElementType::int64, {static_cast<int64_t>(axes.size())}, axes));
        extents_ = expansion_.add("extents", {"Gather", 13, {extents_, named}, {{"axis", int64_t{0}}}});
    }

    /// floor(extent * scale), in float as the standard's own inference has it.
    Value* scaled(Value* scales) {
        Value* extents = cast("real_extents", extents_, ElementType::float32);
        Value* product =
            expansion_.add("scaled", {"Mul", 14, {extents, cast("real_scales", scales, ElementType::float32)}});
        return cast("sizes", expansion_.add("floor", {"Floor", 13, {product}}), ElementType::int64);
    }

    /// The smallest or largest of the scales that lead to the sizes, for each axis.
    Value* common_scale() {
        const bool is_larger = expansion_.node().string("keep_aspect_ratio_policy", "") == "not_smaller";
        Value *sizes = cast("real_sizes", expansion_.input(3), ElementType::float64),
              *extents = cast("real_extents", extents_, ElementType::float64);
        Value* scales = expansion_.add("scales", {"Div", 14, {sizes, extents}});
        Value* common = expansion_.add("common", {is_larger ? "ReduceMax" : "ReduceMin", 13, {scales}});
        const int64_t count = *scales->checked_type().elements().constant();
        Value* shape =
            expansion_.constant("count", make_constant(ElementType::int64, {1}, std::vector<int64_t>{count}));
        return expansion_.add("common_scales", {"Expand", 13, {common, shape}});
    }

    Value* rounded(Value* scales) {
        Value* half = expansion_.constant("half", make_constant(ElementType::float64, {1}, std::vector<double>{0.5}));
        Value* extents = cast("wide_extents", extents_, ElementType::float64);
        Value* product = expansion_.add("scaled", {"Mul", 14, {extents, scales}});
        Value* raised = expansion_.add("raised", {"Add", 14, {product, half}});
        return cast("sizes", expansion_.add("floor", {"Floor", 13, {raised}}), ElementType::int64);
    }
};

}  // namespace

std::vector<Value*> expand_resize(Expansion& expansion) { return {ResizeExpansion(expansion).resized()}; }

}  // namespace onnx2halide
