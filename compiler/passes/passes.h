#pragma once

#include <functional>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/conv/conv_policy.h"
#include "ops/schedule/target.h"

// One function per pass, which transforms a graph in place. Every value has a type before and after each pass.
// Their order, and its reasons, are in compiler/driver/transform.cpp.
namespace onnx2halide {

/// Replaces each composite node by the nodes that define it (see ops/composite.h).
void expand_composites(Graph& graph);

/// Copies captured constants, and the nodes that depend on constants only, into the subgraphs that capture them,
/// because passes and the fold program look at one graph at a time.
void sink_constants(Graph& graph);

/// Makes constants of values whose elements inference knows, and removes nodes whose results are unused.
void prune(Graph& graph);

/// Merges nodes that compute the same from the same inputs, such as the attention masks of all layers of a transformer,
/// or the packing of weights that all layers share.
void merge_duplicates(Graph& graph);

/// Makes nodes that broadcast their operands read the input of an Expand or Tile instead of its output. Exporters
/// expand a factor per channel to the shape of the image, for example.
void skip_repeats(Graph& graph);

/// Makes products with a batch of matrices that a Tile repeats broadcast the batch instead. DeBERTa repeats the
/// embeddings of relative positions for each sentence, for example.
void broadcast_repeats(Graph& graph);

/// Splits each Concat of many inputs into several, whose results another one joins: Halide's time for its kernel would
/// grow faster than their number, from 2 s for 90 inputs to 40 s for 180 of open lengths. Exporters write one for all
/// classes of a detector, or for all steps of a loop that they have unrolled.
void split_concats(Graph& graph);

/// Replaces tree ensembles (ai.onnx.ml) by WalkTrees, which has the trees as constants, and by nodes that compute
/// scores and labels from its sums.
void expand_trees(Graph& graph);

/// Replaces encoders by nodes that have their tables as constants: LabelEncoder, CategoryMapper and OneHotEncoder
/// (ai.onnx.ml) by a Lookup of keys and values, TfIdfVectorizer by a WeighNgrams of n-grams, ZipMap and DictVectorizer
/// (ai.onnx.ml) by MapRows and RowOfMap with the keys of the maps.
void expand_encoders(Graph& graph);

/// Merges a Pad into the pads of the Conv or pool that reads it, if these fill with the same element.
void fuse_pad(Graph& graph);

/// Moves QuantizeLinear up and DequantizeLinear down past nodes that only move elements or pick the largest, so that
/// these work on 8-bit integers. Removes each QuantizeLinear that only undoes a DequantizeLinear.
void move_quantisation(Graph& graph);

/// Rewrites convolutions and products of dequantised 8-bit operands, the right one constant, to sum integers and scale
/// the sums, if that is faster on the target.
void use_integer_products(Graph& graph, const Target& target, const ConvPolicy& policy = {});

/// Rewrites products of 8-bit integers that are centred in 16 bits to multiply the bytes themselves, if the right
/// operand is constant and the target sums four products of bytes at once, unless Winograd's algorithm is faster. The
/// contribution of zero points is subtracted from the sums.
void use_byte_products(Graph& graph, const Target& target, const ConvPolicy& policy = {});

/// Rewrites products of 8-bit integers that are centred in 16 bits to multiply floats, if these hold every sum exactly
/// and the target does not add several products of integers at once: in depthwise convolutions, say, or if both
/// operands are computed. On x86 only: other processors' integers were not measured, GPUs multiply both as fast.
void use_float_products(Graph& graph, const Target& target);

/// Removes the taps of a Conv that read padding only for every output, as in kernels that are dilated beyond the size
/// of a small image.
void trim_conv_taps(Graph& graph);

/// Copies the pixels that a Conv of single pixels (1x1) with strides reads, if they are so far apart that they share
/// few sets of the nearest cache: a ResNet's projections of many channels. The Conv then reads adjacent pixels. A pool
/// whose windows have a single element each is such a copy; as a Slice, it can read through another one.
void sample_inputs(Graph& graph, const Target& target);

/// Recognises the normalisation of groups of channels as exporters write it for ONNX before GroupNormalization: as an
/// InstanceNormalization of reshaped images, whose channels could not be innermost. On processors, a GroupNormalization
/// becomes nodes that combine the statistics of channels: vectors along a single group's channels would be short.
void rewrite_group_normalisation(Graph& graph, const Target& target);

/// Folds nodes that scale and shift channels by constants, such as an inference-mode BatchNormalization, into the
/// constant weights and bias of the convolution before them. Without one, a BatchNormalization and the nodes of this
/// kind that follow it become one Mul and one Add.
void fuse_channel_scales(Graph& graph);

/// Merges convolutions of the same tensor whose results are added, scaled copies of it included, into one with the sum
/// of their weights, if the taps of one include those of the others: networks that were trained with parallel branches
/// (MobileOne, RepVGG). Returns whether there were any.
bool merge_parallel_convs(Graph& graph);

/// Fuses the nodes of a layer or RMS normalisation that an exporter has written out: those that divide rows by the root
/// of their mean square, with or without subtracting their mean before.
void fuse_standardisation(Graph& graph);

/// Fuses the nodes of an activation that an exporter has written out: Gelu in both of its forms, Mish, Swish or
/// HardSwish.
void fuse_activations(Graph& graph);

/// Replaces pools whose only window has the whole image by global pools, as older exporters do not write these.
void find_global_pools(Graph& graph);

/// Moves the division by the scale of a QuantizeLinear up into the constants from which its input is computed: factors
/// of integer sums and their bias, weights, or the scales of dequantised terms. What remains of the node rounds to the
/// nearest integer, adds the zero point and clamps.
void move_quantisation_scales(Graph& graph);

/// Moves a Gather of few constant positions up past nodes that compute each position by itself, so that these compute
/// only what is picked: the last layer of a transformer of which only the first token is classified, for example.
void hoist_picks(Graph& graph);

/// Averages the input of a Conv of single pixels (1x1) instead of its result, if that saves products, of which there
/// are as many fewer as there are fewer pixels: the transitions of a DenseNet.
void average_inputs(Graph& graph);

/// Replaces a ConvTranspose with weights of known shape by a Conv over the input's grid, which computes a channel for
/// each phase of the output (the remainders of coordinates modulo the strides), and a PhasesToSpace, which interleaves
/// the phases. Phases that read fewer elements than others have weights of zero or, if that is faster, a Conv of their
/// own.
void split_phases(Graph& graph, const Target& target, const ConvPolicy& policy = {});
/// The same for quantised weights only. It runs before use_integer_products, which then finds convolutions.
void split_quantised_phases(Graph& graph, const Target& target, const ConvPolicy& policy = {});

/// Moves a constant factor of a MatMul's operand to its result, where the product's kernel applies it.
void scale_products(Graph& graph);

/// Makes attention read heads of keys and values that several heads of queries share, if an Expand repeats them for
/// these, as in a decoder with grouped queries. The repeated heads would be as large as if each had its own.
void share_heads(Graph& graph);

/// Fuses a Softmax with the MatMul that has its result as the left operand, as in attention.
void fuse_attention(Graph& graph);

/// Chooses the memory layout of each value: channels last around convolutions and pools, row-major where nodes require
/// it and for the graph's inputs and outputs. Inserts Relayout nodes in between. A product in attention writes the
/// heads of each row side by side if the Transpose that follows requires that.
void assign_layouts(Graph& graph, const Target& target);

/// Moves a view of a product's result down past the pointwise nodes that follow, so that the product's kernel computes
/// these. Exporters write a dense layer as Reshape, MatMul, Reshape, Add, for example.
void sink_views(Graph& graph);

/// Replaces global pools by reductions, which have faster schedules in most layouts.
void reduce_global_pools(Graph& graph);

/// Makes kernels treat several axes as one if tiles fill that better: convolutions of single pixels (1x1, stride 1) the
/// axes of an image, products with one matrix those of the batch and the rows, normalisations those that number the
/// rows if their extents are open. Reductions merge axes of open extents whose elements are adjacent. `kernels` has the
/// nodes of each kernel.
void merge_axes(Graph& graph, const std::vector<std::vector<const Node*>>& kernels, const Target& target);

/// Replaces each ScatterND with constant indices that fill a sizeable box of the data, as exporters write an assignment
/// to a slice, by a ReplaceBox or, if nothing of the data is left, by the updates.
void replace_boxes(Graph& graph);

/// Makes zeros of the subnormal weights and biases (float32, below 1.2e-38) of convolutions, products and
/// normalisations: a processor takes over a hundred cycles to multiply by such a number. Weights that training has
/// decayed have many. Results change by less than a normal number holds.
void flush_subnormals(Graph& graph);

/// Avoids copies by making tensors parts of others (see Part). The inputs of a Concat are written directly into its
/// result, which leaves only the other inputs to copy, and the outputs of nodes such as Split and Slice are parts of
/// their input. This applies to nodes that are kernels by themselves; `kernels_of` returns the nodes of each kernel of
/// a graph. In subgraphs, captures and outputs are left alone. This must be the last pass, as others do not preserve
/// parts.
void place_parts(Graph& graph,
                 const std::function<std::vector<std::vector<const Node*>>(const Graph& graph)>& kernels_of);

/// Makes the 4-bit and 2-bit elements of the graph's inputs and outputs share bytes, as ONNX stores them: adds nodes
/// that unpack inputs and pack outputs. Value::port keeps the types of the model.
void pack_ports(Graph& graph);

/// Gives every output of the graph and of its subgraphs memory of its own. Copies outputs that are an input, a
/// constant, or a view of either or of another output, and views of values whose size is known at run time only. With
/// `read`, also copies outputs that nodes read: Halide assumes that memory which a pipeline has written itself is
/// aligned, and users' memory may not be.
void copy_outputs(Graph& graph, bool read = false);

/// Allows open dims to be 0 if no kernel or shape depends on them: those without bounds, of inputs that only functions
/// of the runtime read. All other open dims are 1 or more, which kernels and shapes rely on.
void allow_empty(Graph& graph);

}  // namespace onnx2halide
