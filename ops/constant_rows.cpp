#include "ops/constant_rows.h"

namespace onnx2halide {

Constant row_of(StringTable& table, const std::vector<std::string>& strings) {
    return make_constant(table, {static_cast<int64_t>(strings.size())}, strings);
}

Constant read_items(const Node& node, const std::string& integers, const std::string& strings, StringTable& table) {
    const std::vector<int64_t> numbers = node.integers(integers, {});
    const std::vector<std::string> texts = node.strings(strings);
    if (numbers.empty() == texts.empty())
        throw CompileError("{} has {} items and {} has {}, expected one of them to have any", integers, numbers.size(),
                           strings, texts.size());
    return texts.empty() ? row_of(ElementType::int64, numbers) : row_of(table, texts);
}

}  // namespace onnx2halide
