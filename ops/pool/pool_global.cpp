#include <fmt/format.h>

#include "ops/pool/pool.h"

namespace onnx2halide {

std::string_view GlobalPool::reduction() const {
    if (node_.op_type == "GlobalMaxPool") return "ReduceMax";
    if (node_.op_type == "GlobalAveragePool") return "ReduceMean";
    return power() == 1 ? "ReduceL1" : power() == 2 ? "ReduceL2" : "";
}

bool GlobalPool::has_planes() const {
    // Fewer elements do not fill a vector, but those of several channels do.
    constexpr int64_t few = 16;
    const auto elements = product(reduction_extents()).constant();
    return in(0).is_row_major() && !reduction().empty() && elements.value_or(few) >= few;
}

bool GlobalPool::is_reduction() const {
    return has_planes() || (in(0).layout == channels_last(in(0).rank()) && !reduction().empty());
}

std::vector<TensorType> GlobalPool::infer() const {
    const TensorType& data = in(0);
    check_element_type(Takes::floats);
    if (data.rank() < 3) throw CompileError("input 0 has rank {}, expected 3 or more", data.rank());
    std::vector<Dim> shape(data.rank(), 1);
    shape[0] = data.shape[0];
    shape[1] = data.shape[1];
    return {TensorType(data.element, shape)};
}

std::vector<Dim> GlobalPool::reduction_extents() const {
    const std::vector<Dim>& shape = in(0).shape;
    std::vector<Dim> extents(shape.rbegin(), shape.rend() - 2);
    return extents;
}

std::string GlobalPool::element(KernelSource& source, const Coordinates& taps) const {
    Coordinates at = source.vars(in(0).rank());
    for (size_t i = 2; i < at.size(); ++i) at[i] = taps[at.size() - 1 - i];
    return source.read(input(0), at);
}

std::string GlobalPool::count(KernelSource& source) const {
    const Dim elements = product(reduction_extents());
    if (elements.constant()) return KernelSource::literal(static_cast<double>(*elements.constant()), out(0).element);
    return fmt::format("cast<{}>({})", KernelSource::compute_type(out(0).element), source.dim(elements));
}

}  // namespace onnx2halide
