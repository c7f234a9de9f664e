#include "compiler/plan/work.h"

namespace onnx2halide {

namespace {

Dim bytes_of(const std::vector<const Value*>& values) {
    Dim bytes;
    for (const Value* value : values)
        bytes += value->checked_type().elements() * info(value->checked_type().element).bytes;
    return bytes;
}

}  // namespace

Work work_of(const Step& step) {
    Work work = {0, bytes_of(step.inputs), bytes_of(step.outputs)};
    for (const Node* node : step.nodes) work.flops += make_generator(*node)->flops();
    return work;
}

}  // namespace onnx2halide
