#include <numeric>

#include "compiler/passes/passes.h"
#include "ops/pool/pool.h"

namespace onnx2halide {

void find_global_pools(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        const auto generator = make_generator(*node);
        const auto* pool = dynamic_cast<const WindowPool*>(generator.get());
        if (!pool || !pool->covers_image()) continue;
        node->op_type = "Global" + node->op_type;
        std::erase_if(node->attributes, [](const auto& attribute) { return attribute.first != "p"; });
    }
}

void reduce_global_pools(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        const auto generator = make_generator(*node);
        const auto* pool = dynamic_cast<const GlobalPool*>(generator.get());
        if (!pool || !pool->is_reduction()) continue;
        std::vector<int64_t> axes(node->inputs[0]->checked_type().rank() - 2);
        std::iota(axes.begin(), axes.end(), 2);
        node->op_type = pool->reduction();
        node->version = 1;
        node->attributes = {{"axes", axes}, {"keepdims", int64_t{1}}};
    }
}

}  // namespace onnx2halide
