#include <algorithm>
#include <iterator>
#include <tuple>

#include "ops/families.h"

namespace onnx2halide {

namespace {

std::vector<Operator> sorted_rows() {
    std::vector<Operator> rows;
    // One line per family.
    // clang-format off
    for (const auto family : {
             unary_operators,
             binary_operators,
             variadic_operators,
             cast_operators,
             quantise_operators,
             quantised_operators,
             reduce_operators,
             arg_reduce_operators,
             cumulative_operators,
             conv_operators,
             pool_operators,
             matmul_operators,
             attention_operators,
             fused_product_operators,
             recurrent_operators,
             normalise_operators,
             shape_operators,
             reshape_operators,
             single_axes_operators,
             movement_operators,
             slice_operators,
             concat_operators,
             pad_operators,
             gather_operators,
             scatter_operators,
             rearrange_operators,
             resize_operators,
             col2im_operators,
             control_flow_operators,
             packed_elements_operators,
             finding_operators,
             string_operators,
             box_operators,
             map_operators,
             tree_operators,
             encoder_operators,
             ngram_operators,
             grid_sample_operators,
             affine_grid_operators,
             roi_align_operators,
             max_roi_pool_operators,
             deform_conv_operators,
             top_k_operators,
             fourier_operators,
             signal_operators,
             determinant_operators,
             random_operators,
             dropout_operators,
             training_operators,
             feature_operators,
             internal_operators,
         }) {
        // clang-format on
        const std::vector<Operator> more = family();
        rows.insert(rows.end(), more.begin(), more.end());
    }
    std::sort(rows.begin(), rows.end(), [](const Operator& a, const Operator& b) {
        return std::tie(a.domain, a.type, a.since) < std::tie(b.domain, b.type, b.since);
    });
    return rows;
}

}  // namespace

std::span<const Operator> all_operators() {
    static const std::vector<Operator> rows = sorted_rows();
    return rows;
}

const Operator* find_operator(std::string_view domain, std::string_view type, int version) {
    const auto key = std::tie(domain, type, version);
    const auto comes_after = [](const auto& key, const Operator& row) {
        return key < std::tie(row.domain, row.type, row.since);
    };
    const std::span<const Operator> rows = all_operators();
    const auto next = std::upper_bound(rows.begin(), rows.end(), key, comes_after);
    if (next == rows.begin()) return nullptr;
    const Operator& row = *std::prev(next);
    return row.domain == domain && row.type == type ? &row : nullptr;
}

std::unique_ptr<NodeGenerator> make_generator(const Node& node) {
    const Operator* row = find_operator(node.domain, node.op_type, node.version);
    if (!row) throw CompileError("unsupported operator (version {})", node.version);
    return row->make(node);
}

}  // namespace onnx2halide
