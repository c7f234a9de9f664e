#include "compiler/load/type_proto.h"

#include "compiler/graph/box_type.h"
#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

TensorType box_of(BoxType::Kind kind, const onnx::TypeProto& proto) {
    if (const auto item = read_type(proto)) return boxed(kind, *item);
    const TensorType tensor(element_type_of(proto.tensor_type().elem_type()), {});
    return boxed({kind, tensor, BoxType::Rank::any});
}

TensorType map_of(const onnx::TypeProto::Map& proto) {
    BoxType map = *box_of(BoxType::Kind::map, proto.value_type()).box;
    map.key = element_type_of(proto.key_type());
    // The values of a map are stored as a vector, whatever shape the model declares for each.
    if (!map.holds_boxes()) {
        map.item = TensorType(map.item.element, {});
        map.rank = BoxType::Rank::any;
    }
    return boxed(std::move(map));
}

}  // namespace

std::optional<TensorType> read_type(const onnx::TypeProto& proto) {
    if (proto.has_sequence_type()) return box_of(BoxType::Kind::sequence, proto.sequence_type().elem_type());
    if (proto.has_optional_type()) return box_of(BoxType::Kind::optional, proto.optional_type().elem_type());
    if (proto.has_map_type()) return map_of(proto.map_type());
    if (!proto.has_tensor_type()) throw CompileError("is neither a tensor, a sequence, an optional value nor a map");
    const auto& tensor = proto.tensor_type();
    if (!tensor.has_shape()) return std::nullopt;
    std::vector<Dim> shape;
    for (const auto& dim : tensor.shape().dim())
        shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? Dim(dim.dim_value()) : Dim::symbol("?", 0));
    return TensorType(element_type_of(tensor.elem_type()), std::move(shape));
}

}  // namespace onnx2halide
