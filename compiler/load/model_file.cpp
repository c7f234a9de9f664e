#include "compiler/load/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "compiler/graph/error.h"
#include "compiler/io/files.h"

namespace onnx2halide {

std::string read_model_file(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) throw CompileError("is a folder, expected an ONNX model");
    try {
        return read_text(path);
    } catch (const FileError& error) {
        throw CompileError("cannot be read: {}", error.reason());
    }
}

onnx::ModelProto parse_model(const std::string& bytes) {
    onnx::ModelProto model;
    google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                  static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX)));
    google::protobuf::io::CodedInputStream input(&stream);
    input.SetTotalBytesLimit(INT32_MAX);
    if (bytes.size() > INT32_MAX) throw CompileError("is larger than 2 GiB, expected its weights in external data");
    if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage() || !model.has_graph()) {
        throw CompileError("is not an ONNX model, or is truncated");
    }
    return model;
}

}  // namespace onnx2halide
