#include "ops/movement/indices.h"

#include <fmt/format.h>

namespace onnx2halide {

std::string index_text(KernelSource& source, const Value* indices, const Coordinates& at, const Dim& extent) {
    if (extent.is(1)) return "0";
    source.scatter(at);
    return fmt::format("onnx::place_of_index({}, {})", source.element(indices, at), source.dim(extent));
}

Coordinates index_texts(KernelSource& source, const Value* indices, const Coordinates& at,
                        const std::vector<Dim>& extents) {
    Coordinates place;
    for (const Dim& extent : extents) {
        Coordinates number = at;
        number.push_back(fmt::to_string(place.size()));
        place.push_back(index_text(source, indices, number, extent));
    }
    return place;
}

void check_places(std::vector<Check>& checks, const Value* indices, const Value* data, size_t axis) {
    const std::vector<Dim>&places = indices->checked_type().shape, &extents = data->checked_type().shape;
    for (size_t i = 0; i < places.size() && i < extents.size(); ++i) {
        if (i != axis && prove_less_equal(places[i], extents[i]) != Proof::yes)
            checks.push_back({fmt::format("dim {} of '{}'", i, indices->name), places[i], 0, extents[i]});
    }
}

}  // namespace onnx2halide
