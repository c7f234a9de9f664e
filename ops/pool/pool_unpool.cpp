#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/pool/pool.h"

namespace onnx2halide {

std::vector<Dim> MaxUnpool::unpooled_shape() const {
    const std::vector<Dim>& shape = in(0).shape;
    if (shape.size() < 3) throw CompileError("input 0 has rank {}, expected 3 or more", shape.size());
    const size_t axes = shape.size() - 2;
    const std::vector<int64_t> kernel = node_.integers("kernel_shape"),
                               strides = spatial_attribute(node_, "strides", axes), pads = spatial_pads(node_, axes);
    if (kernel.size() != axes) throw CompileError("kernel_shape has {} values, expected {}", kernel.size(), axes);
    std::vector<Dim> result = {shape[0], shape[1]};
    for (size_t i = 0; i < axes; ++i)
        result.push_back((shape[i + 2] - 1) * strides[i] - pads[i] - pads[axes + i] + kernel[i]);
    return result;
}

std::vector<TensorType> MaxUnpool::infer() const {
    const std::vector<Dim> shape = has_input(2) ? dims(2) : unpooled_shape();
    if (shape.size() != in(0).rank())
        throw CompileError("output_shape has {} values, expected {}", shape.size(), in(0).rank());
    if (in(1).rank() != in(0).rank())
        throw CompileError("input 1 has rank {}, expected {}", in(1).rank(), in(0).rank());
    return {TensorType(in(0).element, shape)};
}

std::vector<Check> MaxUnpool::checks() const {
    std::vector<Check> checks;
    for (size_t axis = 0; axis < in(0).rank(); ++axis) check_extent(checks, 1, axis, in(0).shape[axis]);
    return checks;
}

void MaxUnpool::algorithm(KernelSource& source) const {
    const std::vector<Dim> shape = unpooled_shape();
    const std::vector<Dim>& from = in(0).shape;
    const std::string taps = source.rdom("k", {from.rbegin(), from.rend()});
    Coordinates tap;
    for (size_t i = 0; i < from.size(); ++i) tap.push_back(KernelSource::axis(taps, from.size() - 1 - i));
    const std::string unpooled = source.func(output(0)->name + "_unpooled"), i = source.var("i");
    source.keep(output(0), "unpooled", unpooled);
    const ElementType type = out(0).element;
    const std::string zero = KernelSource::literal(int64_t{0}, type), last = source.dim(product(shape) - 1);
    source.line(fmt::format("{}({}) = {};", unpooled, i, zero));
    source.line(fmt::format("{}(clamp(cast<int>({}), 0, {})) = {};", unpooled, source.read(input(1), tap), last,
                            source.read(input(0), tap)));

    const Coordinates at = source.vars(shape.size());
    const std::string place = source.linear_index(at, shape);
    std::vector<std::string> inside;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (!(shape[axis] == out(0).shape[axis]))
            inside.push_back(fmt::format("{} < {}", at[axis], source.dim(shape[axis])));
    }
    if (!inside.empty()) {
        source.define(output(0), at,
                      fmt::format("select({}, {}(clamp({}, 0, {})), {})", fmt::join(inside, " && "), unpooled, place,
                                  last, zero));
    } else {
        source.define(output(0), at, fmt::format("{}({})", unpooled, place));
    }
}

void MaxUnpool::schedule(KernelSource& source) const {
    source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "unpooled")));
    NodeGenerator::schedule(source);
}

}  // namespace onnx2halide
