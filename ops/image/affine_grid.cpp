#include <fmt/format.h>

#include "ops/families.h"

namespace onnx2halide {

namespace {

/// AffineGrid: the positions of a regular grid from -1 to 1 under an affine map.
class AffineGrid : public NodeGenerator {
public:
    explicit AffineGrid(const Node& node)
        : NodeGenerator(node), aligns_corners_(node.integer("align_corners", 0) != 0) {}

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    std::vector<Check> checks() const override;
    Dim flops() const override { return out(0).elements() * 2 * in(0).shape.back(); }

private:
    bool aligns_corners_;

    size_t axes() const;

    std::string place(KernelSource& source, const std::string& at, const Dim& extent) const;
};

std::vector<TensorType> AffineGrid::infer() const {
    const TensorType& map = in(0);
    const size_t axes = this->axes();
    const auto may_be = [&](size_t axis, size_t extent) {
        return prove_equal(map.shape[axis], static_cast<int64_t>(extent)) != Proof::no;
    };
    if (map.rank() != 3 || (axes != 2 && axes != 3) || !may_be(1, axes) || !may_be(2, axes + 1))
        throw CompileError("theta has shape {}, expected Nx2x3 or Nx3x4", shape_text(map.shape));
    if (!is_float(map.element)) throw CompileError("theta has type {}, expected floats", info(map.element).name);
    if (!known_input(1)) return {TensorType(map.element, shape_operand(1, axes + 2))};
    const std::vector<Dim>& size = dims(1);
    if (size.size() != axes + 2) throw CompileError("size has {} values, expected {}", size.size(), axes + 2);
    std::vector<Dim> shape = {map.shape[0]};
    shape.insert(shape.end(), size.begin() + 2, size.end());
    shape.push_back(static_cast<int64_t>(axes));
    return {TensorType(map.element, shape)};
}

std::vector<Check> AffineGrid::checks() const {
    std::vector<Check> checks;
    check_extent(checks, 0, 1, static_cast<int64_t>(axes()));
    check_extent(checks, 0, 2, static_cast<int64_t>(axes()) + 1);
    return checks;
}

/// The number of the grid's axes: from theta or, if its shape is open, the number of sizes.
size_t AffineGrid::axes() const {
    const auto& theta = in(0).shape;
    const auto own = theta.size() == 3 ? theta[1].constant() : std::nullopt;
    const auto sizes = in(1).rank() == 1 ? in(1).shape[0].constant() : std::nullopt;
    return static_cast<size_t>(own ? *own : sizes.value_or(2) - 2);
}

/// A coordinate of the regular grid.
std::string AffineGrid::place(KernelSource& source, const std::string& at, const Dim& extent) const {
    const std::string type = KernelSource::compute_type(in(0).element);
    const auto number = [&](const Dim& dim) {
        const auto constant = dim.constant();
        return constant ? KernelSource::literal(*constant, in(0).element)
                        : fmt::format("cast<{}>({})", type, source.dim(dim));
    };
    if (!aligns_corners_) return fmt::format("((cast<{}>({}) * 2 + 1) / {} - 1)", type, at, number(extent));
    // A single element is at the centre, as in PyTorch; ONNX's reference has it at -1, onnxruntime at 1.
    const std::string centre = KernelSource::literal(0.0, in(0).element);
    if (extent.is(1)) return centre;
    const std::string one_of_several = fmt::format("cast<{}>({}) * 2 / {} - 1", type, at, number(extent - 1));
    return prove_equal(extent, 1) == Proof::no
               ? fmt::format("({})", one_of_several)
               : fmt::format("select({} == 1, {}, {})", source.dim(extent), centre, one_of_several);
}

void AffineGrid::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const size_t axes = this->axes();
    std::string sum;
    for (size_t i = 0; i < axes; ++i) {
        const size_t axis = axes - i;
        sum += fmt::format("{} * {} + ", source.read(input(0), {at[0], at.back(), fmt::to_string(i)}),
                           place(source, at[axis], out(0).shape[axis]));
    }
    source.define(output(0), at, sum + source.read(input(0), {at[0], at.back(), fmt::to_string(axes)}));
}

}  // namespace

std::vector<Operator> affine_grid_operators() { return {{"AffineGrid", 20, make<AffineGrid>}}; }

}  // namespace onnx2halide
