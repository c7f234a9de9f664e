#pragma once

#include <memory>
#include <optional>

#include "ops/conv/conv_input_schedule.h"
#include "ops/conv/conv_packed.h"

namespace onnx2halide {

/// Whether a tensor is a batch of images of known size with channels of this type innermost.
bool is_plain_image(const TensorType& type, ElementType element = ElementType::float32);

/// A convolution that the kernel of the node that reads its result computes: what lies between them, the largest tensor
/// of many networks, never leaves near caches, or registers if it is pooled at once.
class InnerConv {
public:
    /// nullopt if the anchor of a kernel cannot be one, or registers hold no tile of whole windows.
    static std::optional<InnerConv> of(const Node& anchor, const Target& target, const PooledWindow& pooled = {});
    /// The one in a kernel whose anchor is `reader`; nullopt if there is none.
    static std::optional<InnerConv> in(const KernelSource& source, const Node& reader, const PooledWindow& pooled = {});

    const ComputedInput& as_input() const { return input_; }
    bool is_pooled() const { return !loops_.pooled.is_pixel(); }
    /// Whether a kernel's inputs have elements for all lanes of vectors of channels. Beside those of the convolution
    /// itself, they have none for lanes past the last channel.
    bool covers_lanes(const KernelSource& source) const;
    /// Whether one kernel is faster than two, of which the reader's takes so many cycles for an image.
    bool gains(const ImageOfTasks& image, double reader_cycles, const Target& target) const;
    /// What its schedule works on. Its results, after its epilogue, are the elements of `result`.
    std::shared_ptr<const DirectConv> direct(KernelSource& source, const Value* result) const;

private:
    const Node* node_ = nullptr;
    std::shared_ptr<const NodeGenerator> generator_;
    const PackedConv* conv_;
    ConvLoops loops_;
    ComputedInput input_;

    /// Cycles for an image, beside arithmetic, in which tasks of further channels read its inputs again.
    double cycles_to_read_again(const Target& target) const;
};

}  // namespace onnx2halide
