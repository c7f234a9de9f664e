#pragma once

#include <functional>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/target.h"
#include "ops/winograd_walk.h"

// One function a pass, each from graph to graph; the driver calls them in this order. Types are inferred before and
// kept by each.
namespace onnx2halide {

/// Puts the nodes that stand for a composite node (see ops/composite.h) in its place.
void expand_composites(Graph& graph);

/// Lets graphs inside have the constants that they take from around them, and what depends on constants only, for
/// themselves: passes and the fold program look at one graph at a time.
void sink_constants(Graph& graph);

/// Values whose elements inference knows as numbers become constants, and nodes whose results nobody reads are removed.
void prune(Graph& graph);

/// Lets nodes that compute the same from the same inputs be one, as the masks of an attention's layers are.
void merge_duplicates(Graph& graph);

/// Lets what broadcasts its operands read what an Expand or a Tile repeats for it, as exporters write a channel's
/// factor in the shape of its image.
void skip_repeats(Graph& graph);

/// Makes of tree ensembles (ai.onnx.ml) WalkTrees, whose constants are the trees, and nodes that turn its sums into
/// scores and labels.
void expand_trees(Graph& graph);

/// Makes of LabelEncoder and OneHotEncoder (ai.onnx.ml) a Lookup, whose constants are keys and values, of
/// TfIdfVectorizer a WeighNgrams, whose constants are the n-grams, and of ZipMap and DictVectorizer (ai.onnx.ml) what
/// has the keys of maps as constants.
void expand_encoders(Graph& graph);

/// Lets Conv and the pools pad by themselves where a Pad before them fills with what they would.
void fuse_pad(Graph& graph);

/// Lets what moves elements, or picks the largest, move integers in the place of the real numbers that these are
/// dequantised to or quantised from, and leaves out what quantises dequantised integers again.
void move_quantisation(Graph& graph);

/// Lets convolutions and products of dequantised 8-bit operands, of which the one on the right is constant, sum
/// integers and scale the sums, where processors do that faster.
void sum_integers(Graph& graph, const Target& target, const ConvPolicy& policy = {});

/// Lets products of 8-bit integers, which are centred in 16 bits, multiply the bytes themselves where the right operand
/// is constant and processors sum quads of them at once: what zero points add to a sum is subtracted from it.
void sum_bytes(Graph& graph, const Target& target);

/// Cuts off the taps of a Conv that lie beyond the image for every output, as those of kernels that are dilated further
/// than a small image reaches.
void trim_kernels(Graph& graph);

/// Multiplies what scales and shifts channels by constants, as inference-mode BatchNormalization does, into the
/// constant weights and bias of the convolution before it. Elsewhere one Mul and one Add are left of a
/// BatchNormalization and of such nodes behind it.
void fuse_channel_scales(Graph& graph);

/// Makes one node of what subtracts rows' mean, or does not, and divides them by the root of their mean square: the
/// layer and RMS normalisations of exporters that write them out.
void fuse_standardisation(Graph& graph);

/// Makes one node of an activation that is written out: of Gelu in both its forms, Mish and HardSwish.
void fuse_activations(Graph& graph);

/// Makes of a ConvTranspose with constant weights a Conv over its input's grid, with a channel for each phase of the
/// output's elements between the grid's, and a copy that puts the phases into their places. Phases that read fewer
/// elements than others have weights of zero or, where that is faster, convolutions of their own.
void split_phases(Graph& graph, const Target& target, const ConvPolicy& policy = {});
/// The same of those with quantised weights alone, before sum_integers: it finds convolutions then.
void split_quantised_phases(Graph& graph, const Target& target, const ConvPolicy& policy = {});

/// Lets a factor of a product's operand be one of the product, with which a kernel computes it.
void scale_products(Graph& graph);

/// Makes one node of a Softmax and the product that has its rows on the left, as in an attention.
void fuse_attention(Graph& graph);

/// Chooses the layout in which each value lies in memory: channels innermost around convolutions and pools, ONNX's
/// order where it is needed and at the graph's inputs and outputs. Inserts Relayout nodes in between. A product of
/// attention writes each row's heads side by side where a Transpose of it wants that.
void assign_layouts(Graph& graph, const Target& target);

/// Lets what is computed element by element of a product's result that is only seen in another shape, as of a Dense
/// layer's that exporters write as Reshape, MatMul, Reshape, Add, be computed in the product's shape, so that its
/// kernel does it. Readers see the result in the other shape, or as it is where that is what they see.
void sink_views(Graph& graph);

/// Makes reductions of pools over whole images whose channels lie one behind the other.
void reduce_planes(Graph& graph);

/// Lets kernels, of each of which `kernels` has the nodes, take several axes for one where tiles fill that better:
/// convolutions of single pixels (1x1, stride 1) those of an image, products with one matrix those of a batch and of
/// its rows, normalisations those of open extents that number rows. Reductions take axes of open extents for one where
/// their elements follow each other.
void merge_axes(Graph& graph, const std::vector<std::vector<const Node*>>& kernels, const Target& target);

/// Lets what Concat nodes of their own kernels join be made in its place in their results (see Part): the nodes copy
/// the rest, if there is one. Lets what nodes of their own kernels take out of a tensor, as Split and Slice do, be
/// parts of that. `kernels_of` tells the nodes of each kernel of a graph. Graphs inside have parts of what they make
/// for themselves. The last pass: later ones would have to keep parts.
void place_parts(Graph& graph,
                 const std::function<std::vector<std::vector<const Node*>>(const Graph& graph)>& kernels_of);

/// Lets 4-bit and 2-bit elements of the graph's inputs and outputs share bytes, as ONNX stores them: nodes unpack what
/// comes and pack what goes, and ports tell the types that the model has.
void pack_ports(Graph& graph);

/// Gives every output of the graph and of graphs inside memory of its own: an output that is an input, a constant, a
/// view of either or of another output is copied, and so is a view of what a run finds; with `read`, what nodes read,
/// too: Halide takes what a pipeline has written itself for aligned, and users' memory is not.
void copy_outputs(Graph& graph, bool read = false);

/// Lets open dims be 0 that nothing computes with: those of inputs that only functions of the runtime read, where
/// nobody has given them bounds. All other open dims are 1 or more, and kernels and shapes count on that.
void allow_empty(Graph& graph);

}  // namespace onnx2halide
