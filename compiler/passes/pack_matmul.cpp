#include "compiler/passes/pack_matmul.h"

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/pack_n_bits.h"
#include "ops/product/product.h"

namespace onnx2halide {

void pack_matmul(Graph& graph, Node& node, const Target& target) {
    if (pack_n_bits(graph, node)) return;
    Value* weights = node.inputs.at(1);
    const std::vector<Dim>& shape = weights->checked_type().shape;
    if (shape.size() != 2 || node.inputs[0]->checked_type().rank() < 2 || !is_compile_time_constant(weights)) return;
    const int64_t is_transposed = node.integer("transB", 0);
    const auto columns = shape[is_transposed ? 0 : 1].constant(), depth = shape[is_transposed ? 1 : 0].constant();
    // A single column is contiguous already.
    if (!columns || !depth || *columns < 2 || weights->type->elements().is(0)) return;

    const int64_t steps = steps_at_once(node.inputs[0]->checked_type().element, *depth, target);
    NewNode packing{"PackMatMulWeights", 1, {weights}, {{"transB", is_transposed}, {"steps", steps}}, own_domain};
    graph.set_input(&node, 1, add_node(graph, packing, weights->name + "_packed", &node));
    node.become("PackedMatMul");
    node.attributes["columns"] = *columns;
    node.attributes["depth"] = *depth;
}

}  // namespace onnx2halide
