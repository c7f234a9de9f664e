#include <Halide.h>

#include "ops/names.h"

namespace onnx2halide {

const std::unordered_set<std::string>& halide_intrinsics() {
    using Halide::Internal::Call;
    static const std::unordered_set<std::string> names = [] {
        std::unordered_set<std::string> all;
        for (int op = 0; op < Call::IntrinsicOpCount; ++op)
            all.emplace(Call::get_intrinsic_name(static_cast<Call::IntrinsicOp>(op)));
        return all;
    }();
    return names;
}

}  // namespace onnx2halide
