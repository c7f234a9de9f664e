#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// Resize and Upsample: each output element from the input elements around the place that it has in the input, axis by
/// axis.
class Resize : public NodeGenerator {
public:
    explicit Resize(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    Dim flops() const override;

    /// Whether only a run finds the extents of the result: it brings the scales, or they follow from open extents in
    /// another way than by a fraction.
    bool is_sized_by_run() const;

private:
    /// An axis that is resized, or cropped.
    struct Axis {
        size_t axis;
        Dim input, output;
        double scale = 0;  // 0: output / input
        double roi_begin = 0, roi_end = 1;
        std::optional<size_t> scale_at = {};  // the place in a tensor of scales that only a run knows
        std::optional<size_t> roi_at = {};    // the same for the region of interest, which ends `axes` places behind
        size_t axes = 0;

        /// Whether the scale is another number than output / input.
        bool has_scale() const { return scale != 0 || scale_at; }
        /// Whether the output may be the longer one.
        bool grows() const { return scale != 0 ? scale > 1 : prove_less_equal(output, input) != Proof::yes; }
    };
    std::string mode_, transformation_, nearest_mode_;
    bool antialias_, exclude_outside_;

    // Inputs: their places differ between versions.
    size_t scales_input() const { return node_.op_type == "Upsample" || node_.version < 11 ? 1 : 2; }
    std::vector<double> scales() const;
    /// Whether a run brings the scales, and sizes that follow from them (see expand_resize).
    bool has_open_scales() const { return has_input(2) && has_input(3) && node_.domain == "onnx2halide"; }
    std::vector<Dim> sizes() const;
    std::vector<size_t> resized_axes() const;
    std::string ratio_policy() const { return node_.string("keep_aspect_ratio_policy", "stretch"); }

    std::vector<Axis> all_axes() const;
    void keep_aspect_ratio(std::vector<Axis>& axes) const;
    void read_roi(std::vector<Axis>& axes) const;
    /// Those along which the result is not the input.
    std::vector<Axis> axes() const;
    bool crops() const { return transformation_ == "tf_crop_and_resize"; }
    bool is_nearest() const { return mode_ == "nearest"; }

    // Text of an axis, whose coordinate is `at`.

    /// Places between which is interpolated are doubles, as those who compare with the standard have them. The nearest
    /// element of a place is found in float32, as in onnxruntime: what a scale's last bit makes of an integer or a half
    /// does not count.
    ElementType type_of_places() const { return is_nearest() ? ElementType::float32 : ElementType::float64; }
    std::string as_place(const std::string& text) const;
    std::string number(double number) const;
    std::string number(const Dim& dim, KernelSource& source) const;
    std::string scale(KernelSource& source, const Axis& axis) const;
    std::string roi(KernelSource& source, const Axis& axis, bool is_end) const;
    std::string width(KernelSource& source, const Axis& axis) const;
    std::string place(KernelSource& source, const Axis& axis, const std::string& at) const;
    std::optional<bool> has_one(const Axis& axis, bool before_rounding) const;
    std::string rounded(KernelSource& source, const Axis& axis, const std::string& place) const;
    std::string nearest(KernelSource& source, const Axis& axis, const std::string& at) const;
    std::string filter(const std::string& distance) const;
    /// The step of a repetition of each element, where the axis is one.
    std::optional<int64_t> repetition(const Axis& axis) const;

    /// Defines a Func of an axis's coordinate, computed once a run.
    std::string table(KernelSource& source, const Axis& axis, const std::string& role, const std::string& arguments,
                      const std::string& text) const;
    void copy_nearest(KernelSource& source, const std::vector<Axis>& axes) const;
    std::string outside(KernelSource& source, const std::vector<Axis>& axes) const;
    std::string result_of(const std::string& sum) const;

    // Interpolation goes along one axis after the other, in a pass each (resize_passes.cpp).

    // Taps of an axis: so many from the first, counted from the element before the place.
    Dim first_tap(const Axis& axis) const;
    Dim taps(const Axis& axis) const { return 2 - 2 * first_tap(axis); }

    /// The innermost axes that vectors run along: as many as fill one, or up to the first that is resized.
    struct Run {
        size_t axes;
        Dim extent;
        std::optional<size_t> picked;  // the axis along which a vector's elements come from scattered places
    };
    Run run(const Target& target) const;
    std::vector<Axis> passes(const Target& target) const;
    /// The extents in memory order, innermost first, after so many of the passes.
    std::vector<Dim> extents_after(const std::vector<Axis>& passes, size_t count) const;

    struct Taps {
        std::string place, weight;  // Funcs of a coordinate and a tap
        std::string at;             // the coordinate
    };
    Taps define_taps(KernelSource& source, const Axis& axis) const;
    /// Of the axis along which elements are picked, taps of each element of a run.
    Taps spread(KernelSource& source, const Axis& axis, const Taps& taps) const;
    std::string interpolated(KernelSource& source, const Axis& axis, const std::string& previous) const;
    void interpolate(KernelSource& source) const;
    void schedule_passes(KernelSource& source) const;
};

class Expansion;
/// A Resize or Upsample that is sized by a run.
std::vector<Value*> expand_resize(Expansion& expansion);

}  // namespace onnx2halide
