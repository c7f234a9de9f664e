#include "compiler/load/tensor.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include <onnx/checker.h>

namespace onnx2halide {

namespace {

using Bytes = std::vector<std::byte>;

/// Reads a typed field, which holds each element in a wider one: int32_data has int8, uint16, the bits of float16 etc.
template <typename To, typename Field>
Bytes narrowed(const Field& field) {
    Bytes bytes(field.size() * sizeof(To));
    for (int i = 0; i < field.size(); ++i) {
        const To element = static_cast<To>(field.Get(i));
        std::memcpy(bytes.data() + i * sizeof(To), &element, sizeof(To));
    }
    return bytes;
}

Bytes typed_data(const onnx::TensorProto& tensor) {
    using enum ElementType;
    switch (static_cast<ElementType>(tensor.data_type())) {
    case float32:
    case complex64: return narrowed<float>(tensor.float_data());
    case float64:
    case complex128: return narrowed<double>(tensor.double_data());
    case int32: return narrowed<int32_t>(tensor.int32_data());
    case int64: return narrowed<int64_t>(tensor.int64_data());
    case uint64: return narrowed<uint64_t>(tensor.uint64_data());
    case uint32: return narrowed<uint32_t>(tensor.uint64_data());
    case uint16:
    case int16:
    case float16:
    case bfloat16: return narrowed<uint16_t>(tensor.int32_data());
    default: return narrowed<uint8_t>(tensor.int32_data());
    }
}

std::string external_field(const onnx::TensorProto& tensor, std::string_view key) {
    for (const auto& entry : tensor.external_data()) {
        if (entry.key() == key) return entry.value();
    }
    return "";
}

uint64_t external_number(const onnx::TensorProto& tensor, std::string_view key, uint64_t otherwise) {
    const std::string text = external_field(tensor, key);
    if (text.empty()) return otherwise;
    if (text.find_first_not_of("0123456789") != std::string::npos || text.size() > 19) {
        throw CompileError("initialiser '{}': external data's {} is '{}', expected a number", tensor.name(), key, text);
    }
    return std::stoull(text);
}

/// The file with a tensor's elements, a regular one in the model's folder or below.
std::filesystem::path external_file(const onnx::TensorProto& tensor, const std::filesystem::path& model_folder) {
    const std::filesystem::path location = external_field(tensor, "location"), normal = location.lexically_normal(),
                                path = model_folder / location;
    const auto refuse = [&](std::string_view why) {
        throw CompileError("initialiser '{}': external data file '{}' {}", tensor.name(), location.string(), why);
    };
    if (location.is_absolute() || (!normal.empty() && *normal.begin() == ".."))
        refuse("is outside of the model's folder");
    if (std::filesystem::is_symlink(path)) refuse("is a link, expected a plain file");
    if (!std::filesystem::exists(path)) refuse("does not exist");
    if (!std::filesystem::is_regular_file(path)) refuse("is not a plain file");
    try {
        return onnx::checker::resolve_external_data_location(model_folder.string(), location.string(), tensor.name());
    } catch (const std::exception&) {
        refuse("is outside of the model's folder");
    }
    return path;
}

Bytes external_data(const onnx::TensorProto& tensor, const std::filesystem::path& model_folder, uint64_t expected) {
    const std::filesystem::path location = external_field(tensor, "location");
    std::ifstream file(external_file(tensor, model_folder), std::ios::binary);
    const auto check = [&] {
        if (file) return;
        throw CompileError("initialiser '{}': external data file '{}' cannot be read: {}", tensor.name(),
                           location.string(), std::strerror(errno));
    };
    check();
    const uint64_t offset = external_number(tensor, "offset", 0), length = external_number(tensor, "length", expected);
    file.seekg(0, std::ios::end);
    const auto size = static_cast<uint64_t>(file.tellg());
    if (offset > size || length > size - offset) {
        throw CompileError("initialiser '{}': external data file '{}' has {} bytes, expected {} at {}", tensor.name(),
                           location.string(), size, length, offset);
    }
    Bytes bytes(length);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(length));
    check();
    return bytes;
}

/// The bytes of this many elements; elements of packed types share bytes.
uint64_t bytes_of(ElementType type, uint64_t elements) { return (elements * info(type).bits + 7) / 8; }

/// The elements of a packed type in a byte each, sign-extended if the type is signed.
Bytes unpacked(const Bytes& packed, ElementType type, uint64_t elements) {
    const auto bits = static_cast<unsigned>(info(type).bits), in_a_byte = 8 / bits;
    Bytes bytes(elements);
    for (uint64_t i = 0; i < elements; ++i) {
        const auto high = static_cast<uint8_t>(packed[i / in_a_byte] << (8 - bits - i % in_a_byte * bits));
        const bool has_sign = type == ElementType::int4 || type == ElementType::int2;
        bytes[i] = static_cast<std::byte>(has_sign ? static_cast<int8_t>(high) >> (8 - bits) : high >> (8 - bits));
    }
    return bytes;
}

/// The number of elements of a shape. Throws CompileError if an extent is negative, or if there are more than `most`.
uint64_t checked_elements(const std::string& name, const std::vector<int64_t>& shape, uint64_t most) {
    uint64_t elements = 1;
    for (const int64_t dim : shape) {
        if (dim < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(dim), &elements) || elements > most)
            throw CompileError("initialiser '{}' has dim {}", name, dim);
    }
    return elements;
}

/// The index of an element in a flattened tensor. Throws CompileError if a coordinate is out of range.
size_t flat_index(const std::string& name, std::span<const int64_t> coordinates, const std::vector<int64_t>& shape) {
    size_t index = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (coordinates[axis] < 0 || coordinates[axis] >= shape[axis])
            throw CompileError("initialiser '{}' has an element at {}, expected one in [0, {})", name,
                               coordinates[axis], shape[axis]);
        index = index * static_cast<size_t>(shape[axis]) + static_cast<size_t>(coordinates[axis]);
    }
    return index;
}

}  // namespace

Constant read_tensor(const onnx::TensorProto& tensor, const std::filesystem::path& model_folder) {
    Constant constant;
    constant.element = element_type_of(tensor.data_type());
    if (constant.element == ElementType::undefined)
        throw CompileError("initialiser '{}' has element type {}, which ONNX does not define", tensor.name(),
                           tensor.data_type());
    constant.shape.assign(tensor.dims().begin(), tensor.dims().end());
    const uint64_t elements = checked_elements(tensor.name(), constant.shape, uint64_t{1} << 40);
    if (constant.element == ElementType::string) {
        constant.strings.assign(tensor.string_data().begin(), tensor.string_data().end());
        if (constant.strings.size() != elements)
            throw CompileError("initialiser '{}' has {} strings, expected {}", tensor.name(), constant.strings.size(),
                               elements);
        constant.data = std::make_shared<Bytes>();
        return constant;
    }
    const uint64_t expected = bytes_of(constant.element, elements);
    Bytes bytes;
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
        bytes = external_data(tensor, model_folder, expected);
    } else if (tensor.has_raw_data()) {
        const auto* raw = reinterpret_cast<const std::byte*>(tensor.raw_data().data());
        bytes.assign(raw, raw + tensor.raw_data().size());
    } else {
        bytes = typed_data(tensor);
    }
    if (bytes.size() != expected)
        throw CompileError("initialiser '{}' has {} bytes, expected {}", tensor.name(), bytes.size(), expected);
    if (is_packed(constant.element)) bytes = unpacked(bytes, constant.element, elements);
    constant.data = std::make_shared<Bytes>(std::move(bytes));
    return constant;
}

Constant read_sparse_tensor(const onnx::SparseTensorProto& tensor, const std::filesystem::path& model_folder) {
    const Constant values = read_tensor(tensor.values(), model_folder),
                   places = read_tensor(tensor.indices(), model_folder);
    const std::string& name = tensor.values().name();
    if (values.element == ElementType::string)
        throw CompileError("initialiser '{}' is a sparse tensor of strings, which is not supported", name);
    Constant dense;
    dense.element = values.element;
    dense.shape.assign(tensor.dims().begin(), tensor.dims().end());
    const uint64_t elements = checked_elements(name, dense.shape, Dim::unbounded);
    // An index is that of an element in the flattened tensor, or a coordinate per axis.
    const std::vector<int64_t> numbers = places.integers();
    const std::vector<int64_t> extents =
        places.shape.size() == 2 ? dense.shape : std::vector{static_cast<int64_t>(elements)};
    const auto count = static_cast<size_t>(values.elements());
    const size_t rank = extents.size(), size = (info(dense.element).bits + 7) / 8;
    if (numbers.size() != count * rank)
        throw CompileError("initialiser '{}' has {} indices, expected {}", name, numbers.size(), count * rank);
    Bytes bytes(elements * size);
    for (size_t i = 0; i < count; ++i) {
        const size_t place = flat_index(name, std::span(numbers).subspan(i * rank, rank), extents);
        std::copy_n(values.data->begin() + static_cast<int64_t>(i * size), size,
                    bytes.begin() + static_cast<int64_t>(place * size));
    }
    dense.data = std::make_shared<Bytes>(std::move(bytes));
    return dense;
}

}  // namespace onnx2halide
