#pragma once

#include <functional>
#include <memory>

#include "ops/node_generator.h"
#include "ops/window.h"

namespace onnx2halide {

class InnerConv;
class WinogradConv;
struct ComputedInput;
struct ImageOfTasks;
struct PooledWindow;

/// How a pool reduces many elements to one: `combine` adds each element's `term` to the accumulator, `finish` makes the
/// result. In the texts {a} is the accumulator, {x} an element or its term, {p} the node's attribute p and {count} the
/// number of elements.
struct PoolFormula {
    bool starts_with_first;  // the accumulator is initialised with the first element, otherwise with 0
    std::string_view term;
    std::string_view combine;
    std::string_view finish;
};

/// The formula of an operator; for p of 1 or 2, without powers.
const PoolFormula& pool_formula(std::string_view op_type, int64_t p);

/// One output element per channel and part of its image: the base of pools over windows and over whole images.
class Pool : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    Dim flops() const override { return out(0).elements() * product(reduction_extents()); }

protected:
    static constexpr const char* result_role = "result";
    /// Kernels of up to so many taps are unrolled.
    static constexpr int64_t unrolled_taps = 16;

    /// Extents of the reduction for one output element, innermost first.
    virtual std::vector<Dim> reduction_extents() const = 0;
    /// The element under a tap, whose indices along the axes come innermost first; outside of the input, the neutral
    /// element.
    virtual std::string element(KernelSource& source, const Coordinates& taps) const = 0;
    /// The number of elements reduced, as text of the type of the node's arithmetic.
    virtual std::string count(KernelSource& source) const = 0;

    const PoolFormula& formula() const { return pool_formula(node_.op_type, power()); }
    int64_t power() const { return node_.has("p") && node_.version > 1 ? node_.integer("p") : 2; }
    std::string fill_in(std::string_view text, const std::string& accumulator, const std::string& element,
                        const std::string& count) const;
    /// An element's contribution to the accumulator, and two of these combined.
    std::string term(const std::string& element) const { return fill_in(formula().term, "", element, ""); }
    std::string combine(const std::string& a, const std::string& b) const;
    /// The neutral element: 0, or the lowest finite number.
    std::string neutral() const;
    /// Declares the variables of the node's RDom, called kx, ky, and returns them.
    Coordinates taps(KernelSource& source) const;
    /// Defines the RDom of the taps and returns its variables.
    Coordinates define_taps(KernelSource& source) const;
    std::vector<std::string> tap_roles(KernelSource& source) const;
    /// The lanes of a vector of the kernel's channels, fewer than the target's if there are fewer channels, and the
    /// type in which they are computed.
    static int lanes_of_channels(const KernelSource& source);
    static ElementType lane_type(const KernelSource& source);
    /// Vectors of channels, each with its accumulators in registers. `unrolled` taps are all unrolled.
    void schedule_channels(KernelSource& source, const Coordinates& reduction, bool unrolled) const;
};

/// MaxPool, AveragePool and LpPool: the elements under a window.
class WindowPool : public Pool {
public:
    explicit WindowPool(const Node& node);
    std::vector<TensorType> infer() const override;
    LayoutNeed layout_need() const override { return has_rows() ? LayoutNeed::any : LayoutNeed::channels_last; }
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    /// A pool can compute the convolution that it reads.
    bool can_compute_input(const Node& anchor, const Target& target) const override;
    /// Whether the only window has the whole image, and padding that does not count, so that a global pool computes the
    /// same.
    bool covers_image() const;
    /// The strides along the axes of an image if each window has a single element, which the pool only copies.
    std::optional<std::vector<int64_t>> copied_strides() const;
    Dim flops() const override { return shares_taps() ? out(0).elements() * shared_combinations() : Pool::flops(); }

protected:
    std::vector<Dim> reduction_extents() const override;
    std::string element(KernelSource& source, const Coordinates& taps) const override {
        return element_at(source, under(source, taps));
    }
    std::string count(KernelSource& source) const override;

    Window window() const;
    /// The element at coordinates that may lie outside of the input, where it is the neutral element.
    std::string element_at(KernelSource& source, const Coordinates& at) const;
    /// The input's coordinates under a tap.
    Coordinates under(KernelSource& source, const Coordinates& taps) const;

private:
    /// The result as tasks that compute what they read of such an input.
    ImageOfTasks image_of_tasks(const ComputedInput& input, const Target& target) const;
    /// The windows, if they are inside of an image and adjacent to each other: such results of a convolution can be
    /// pooled while they are in registers. nullopt for others.
    std::optional<PooledWindow> adjacent_windows() const;
    /// The convolution that `find` returns for such windows, or for none if its results are rather stored.
    std::optional<InnerConv>
    faster_conv(const std::function<std::optional<InnerConv>(const PooledWindow& pooled)>& find,
                const Target& target) const;
    /// The one among the nodes of a kernel; nullopt if there is none.
    std::optional<InnerConv> inner_conv(const KernelSource& source) const;
    /// The WinogradConv among the nodes of a kernel whose tiles' outputs are pooled; null if there is none.
    std::shared_ptr<const WinogradConv> winograd_conv(const KernelSource& source) const;
    /// Computes a result from a whole window in one expression.
    void define_whole_windows(KernelSource& source) const;
    /// Schedules the kernel of both.
    void schedule_with_input(KernelSource& source, const InnerConv& conv) const;
    void schedule_stored(KernelSource& source, const InnerConv& conv) const;
    void schedule_in_registers(KernelSource& source, const InnerConv& conv) const;
    /// Whether the input is row-major, and pooling its rows without changing the layout pays off.
    bool has_rows() const;
    bool pools_rows(const KernelSource& source) const;
    /// The element that a tap reads at index `column` of an input row.
    std::string element_of_row(KernelSource& source, const Coordinates& taps, const std::string& column) const;
    void define_rows(KernelSource& source) const;
    void schedule_rows(KernelSource& source) const;
    void schedule_across(KernelSource& source, const std::string& update) const;

    /// The text of the element at coordinates.
    using ElementAt = std::function<std::string(const Coordinates&)>;
    /// What the schedules of all stages of a tile of windows share.
    struct SharedTile {
        Loops loops, outer;  // of the results, and over tiles
        std::string around;  // the innermost loop around a tile and a vector of channels
        std::string lanes;
        std::string run;    // the loop over the vectors that stages compute at once; empty if there is one
        bool in_registers;  // whether a tile of short kernels stays in registers
        // Whether the last strip of channels is shifted inwards. Halide may then not see that a vector is all that a
        // tile takes, and would not know the sizes of its stages.
        bool shifts_channels;

        std::string vectors() const { return "vectorize(" + loops.vars[0] + ", " + lanes + ")"; }
        std::string split_run(const std::string& loop) const {
            return "split(" + loops.vars[0] + ", " + loop + ", " + loops.vars[0] + ", " + lanes + ")";
        }
    };
    /// Whether vectors run along channels, and windows overlap so much that it pays off to combine elements along one
    /// axis after the other.
    bool shares_taps() const;
    /// The number of combinations of two elements that each result then takes.
    int64_t shared_combinations() const;
    bool pools_shared(const KernelSource& source) const;
    void define_shared(KernelSource& source) const;
    std::string all_along(KernelSource& source, size_t i, const ElementAt& element) const;
    void schedule_shared(KernelSource& source) const;
    void schedule_windows(KernelSource& source, const SharedTile& tile, const std::vector<std::string>& splits) const;
    void schedule_pass(KernelSource& source, size_t i, const SharedTile& tile) const;
};

/// MaxPool with its second output: the index of each maximum in the input.
class MaxPoolWithIndices : public WindowPool {
public:
    using WindowPool::WindowPool;
    std::vector<TensorType> infer() const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override { Pool::schedule(source); }
    Dim flops() const override { return Pool::flops(); }

private:
    std::string index(KernelSource& source, const Coordinates& at) const;
};

/// GlobalMaxPool, GlobalAveragePool and GlobalLpPool: the whole image.
class GlobalPool : public Pool {
public:
    using Pool::Pool;
    std::vector<TensorType> infer() const override;
    LayoutNeed layout_need() const override { return has_planes() ? LayoutNeed::any : LayoutNeed::channels_last; }
    /// Whether each channel's elements are adjacent, and reducing them in place pays off. The node is then a reduction
    /// along the image's axes, by the operator named by `reduction` (see reduce_global_pools).
    bool has_planes() const;
    /// Whether it is a reduction along the axes of images, in the layout that has been chosen.
    bool is_reduction() const;
    /// The reduction operator that computes the same; empty if there is none.
    std::string_view reduction() const;

protected:
    std::vector<Dim> reduction_extents() const override;
    std::string element(KernelSource& source, const Coordinates& taps) const override;
    std::string count(KernelSource& source) const override;
};

/// MaxUnpool: scatters each element to where a MaxPool's Indices say; other elements are zero.
class MaxUnpool : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    std::vector<Check> checks() const override;
    std::vector<IndexCheck> index_checks() const override { return {{1, {product(unpooled_shape())}}}; }

private:
    /// The output's shape before `output_shape` pads it with zeros: the shape to which the indices refer.
    std::vector<Dim> unpooled_shape() const;
};

}  // namespace onnx2halide
