#pragma once

#include <vector>

#include "ops/node_generator.h"

// One list of rows per family; ops/table.cpp joins them. Self-registering objects would vanish when linked from an
// archive.
namespace onnx2halide {

std::vector<Operator> unary_operators();
std::vector<Operator> binary_operators();
std::vector<Operator> variadic_operators();
std::vector<Operator> cast_operators();
std::vector<Operator> quantise_operators();
std::vector<Operator> quantised_operators();
std::vector<Operator> reduce_operators();
std::vector<Operator> arg_reduce_operators();
std::vector<Operator> cumulative_operators();
std::vector<Operator> conv_operators();
std::vector<Operator> pool_operators();
std::vector<Operator> matmul_operators();
std::vector<Operator> attention_operators();
std::vector<Operator> fused_product_operators();
std::vector<Operator> recurrent_operators();
std::vector<Operator> normalise_operators();
std::vector<Operator> shape_operators();
std::vector<Operator> reshape_operators();
std::vector<Operator> single_axes_operators();
std::vector<Operator> movement_operators();
std::vector<Operator> slice_operators();
std::vector<Operator> concat_operators();
std::vector<Operator> pad_operators();
std::vector<Operator> gather_operators();
std::vector<Operator> scatter_operators();
std::vector<Operator> rearrange_operators();
std::vector<Operator> resize_operators();
std::vector<Operator> col2im_operators();
std::vector<Operator> control_flow_operators();
std::vector<Operator> packed_elements_operators();
std::vector<Operator> finding_operators();
std::vector<Operator> string_operators();
std::vector<Operator> box_operators();
std::vector<Operator> map_operators();
std::vector<Operator> tree_operators();
std::vector<Operator> encoder_operators();
std::vector<Operator> ngram_operators();
std::vector<Operator> grid_sample_operators();
std::vector<Operator> affine_grid_operators();
std::vector<Operator> roi_align_operators();
std::vector<Operator> max_roi_pool_operators();
std::vector<Operator> deform_conv_operators();
std::vector<Operator> top_k_operators();
std::vector<Operator> fourier_operators();
std::vector<Operator> signal_operators();
std::vector<Operator> determinant_operators();
std::vector<Operator> random_operators();
std::vector<Operator> dropout_operators();
std::vector<Operator> training_operators();
std::vector<Operator> feature_operators();
std::vector<Operator> internal_operators();

}  // namespace onnx2halide
