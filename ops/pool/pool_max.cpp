#include <algorithm>

#include <fmt/format.h>

#include "ops/pool/pool.h"

namespace onnx2halide {

std::vector<TensorType> MaxPoolWithIndices::infer() const {
    const TensorType values = WindowPool::infer().at(0);
    return {values, TensorType(ElementType::int64, values.shape)};
}

/// The index of an input element in the whole tensor. With storage_order 1 the last two axes are in column-major order.
std::string MaxPoolWithIndices::index(KernelSource& source, const Coordinates& at) const {
    std::vector<Dim> shape = in(0).shape;
    Coordinates from = at;
    if (node_.integer("storage_order", 0) != 0) {
        std::reverse(shape.begin() + 2, shape.end());
        std::reverse(from.begin() + 2, from.end());
    }
    from[0] = fmt::format("cast<int64_t>({})", from[0]);
    return source.linear_index(from, shape);
}

void MaxPoolWithIndices::algorithm(KernelSource& source) const {
    const Window window = this->window();
    const Coordinates taps = define_taps(source);
    const std::string best = source.func(output(0)->name + "_of_taps");
    source.keep(output(0), result_role, best);
    const Coordinates at = source.vars(out(0).rank()), under = this->under(source, taps);
    const std::string call = KernelSource::call(best, out(0), at);
    const std::string zero = KernelSource::literal(int64_t{0}, out(0).element);
    const std::string value = read_padded(source, input(0), window, under, zero);
    const std::string outside = onnx2halide::outside(source, window, {under.begin() + 2, under.end()});

    source.line(fmt::format("{} = Tuple({}, Expr(int64_t(-1)));", call, zero));
    source.line("{");
    const std::string element = source.local("value"), so_far = source.local("best");
    const std::string place = source.local("index"), is_better = source.local("is_better");
    source.line(fmt::format("    Expr {} = {}, {} = {}[0], {} = {}[1];", element, value, so_far, call, place, call));
    // The first of equal elements counts, and the first one of all even if it is the lowest number.
    source.line(fmt::format("    Expr {} = {}({} < 0 || {} > {});", is_better,
                            outside.empty() ? "" : fmt::format("!({}) && ", outside), place, element, so_far));
    source.line(fmt::format("    {0} = Tuple(select({1}, {2}, {3}), select({1}, {4}, {5}));", call, is_better, element,
                            so_far, index(source, under), place));
    source.line("}");
    if (has_output(0)) source.define(output(0), at, call + "[0]");
    source.store(output(1), at, call + "[1]");
}

}  // namespace onnx2halide
