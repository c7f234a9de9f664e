#include <Halide.h>

#include "ops/names.h"

namespace onnx2halide {

const std::vector<std::string>& halide_intrinsics() {
    using Halide::Internal::Call;
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (int op = 0; op < Call::IntrinsicOpCount; ++op)
            all.emplace_back(Call::get_intrinsic_name(static_cast<Call::IntrinsicOp>(op)));
        return all;
    }();
    return names;
}

}  // namespace onnx2halide
