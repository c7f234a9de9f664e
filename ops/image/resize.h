#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// Resize and Upsample: interpolates each output element from the input elements around its position in the input, one
/// axis after the other.
class Resize : public NodeGenerator {
public:
    explicit Resize(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    Dim flops() const override;

    /// Whether the extents of the result are known only at run time: the scales are, or the extents follow from open
    /// ones in another way than by a fraction.
    bool is_sized_by_run() const;

private:
    /// An axis that is resized or cropped.
    struct Axis {
        size_t axis;
        Dim input, output;
        double scale = 0;  // 0: output / input
        double roi_begin = 0, roi_end = 1;
        std::optional<size_t> scale_at = {};  // the index in a tensor of scales known only at run time
        std::optional<size_t> roi_at = {};  // the same for the start of the region of interest; its end is `axes` later
        size_t axes = 0;

        /// Whether the scale is not simply output / input.
        bool has_scale() const { return scale != 0 || scale_at; }
        /// Whether the output may be longer than the input.
        bool grows() const { return scale != 0 ? scale > 1 : prove_less_equal(output, input) != Proof::yes; }
    };
    std::string mode_, transformation_, nearest_mode_;
    bool antialias_, exclude_outside_;

    // Inputs, whose indices differ between versions.
    size_t scales_input() const { return node_.op_type == "Upsample" || node_.version < 11 ? 1 : 2; }
    std::vector<double> scales() const;
    /// Whether scales, and sizes that follow from them (see expand_resize), are known only at run time.
    bool has_open_scales() const { return has_input(2) && has_input(3) && node_.domain == own_domain; }
    std::vector<Dim> sizes() const;
    std::vector<size_t> resized_axes() const;
    std::string ratio_policy() const { return node_.string("keep_aspect_ratio_policy", "stretch"); }

    std::vector<Axis> all_axes() const;
    void keep_aspect_ratio(std::vector<Axis>& axes) const;
    void read_roi(std::vector<Axis>& axes) const;
    /// The axes along which the result differs from the input.
    std::vector<Axis> axes() const;
    bool crops() const { return transformation_ == "tf_crop_and_resize"; }
    bool is_nearest() const { return mode_ == "nearest"; }

    // The text for an axis at coordinate `at`.

    /// Positions for interpolation are doubles, as in the standard's reference. The nearest element is found in
    /// float32, as in onnxruntime: for an integer or a half, the last bit of a scale must not count.
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
    /// The factor by which elements are repeated, if the axis is resized like that.
    std::optional<int64_t> repetition(const Axis& axis) const;

    /// Defines a Func of an axis's coordinate, computed once per run.
    std::string table(KernelSource& source, const Axis& axis, const std::string& role, const std::string& arguments,
                      const std::string& text) const;
    void copy_nearest(KernelSource& source, const std::vector<Axis>& axes) const;
    std::string outside(KernelSource& source, const std::vector<Axis>& axes) const;
    std::string result_of(const std::string& sum) const;

    // Interpolation runs along one axis after the other, one pass each (resize_passes.cpp).

    // The taps of an axis: their number, and the first, relative to the element before the position.
    Dim first_tap(const Axis& axis) const;
    Dim taps(const Axis& axis) const { return 2 - 2 * first_tap(axis); }

    /// The innermost axes along which vectors run: as many as fill one, up to the first that is resized.
    struct Run {
        size_t axes;
        Dim extent;
        std::optional<size_t> picked;  // the axis along which a vector's elements are gathered
    };
    Run run(const Target& target) const;
    std::vector<Axis> passes(const Target& target) const;
    /// The extents in memory order, innermost first, after so many passes.
    std::vector<Dim> extents_after(const std::vector<Axis>& passes, size_t count) const;

    struct Taps {
        std::string place, weight;  // Funcs of a coordinate and a tap
        std::string at;             // the coordinate
    };
    Taps define_taps(KernelSource& source, const Axis& axis) const;
    /// The taps of each element of a run, for the axis along which elements are gathered.
    Taps spread(KernelSource& source, const Axis& axis, const Taps& taps) const;
    std::string interpolated(KernelSource& source, const Axis& axis, const std::string& previous) const;
    void interpolate(KernelSource& source) const;
    void schedule_passes(KernelSource& source) const;
};

class CompositeBuilder;
/// Expands a Resize or Upsample whose size is known only at run time.
std::vector<Value*> expand_resize(CompositeBuilder& builder);

}  // namespace onnx2halide
