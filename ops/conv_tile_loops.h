#pragma once

#include <string>
#include <vector>

#include "ops/conv_schedule.h"
#include "ops/directives.h"

namespace onnx2halide {

/// The tile of a direct convolution in its kernel's schedule: the names of its loops, the parameters that tell its
/// size, and the vectors that it is made of. What walks over the tiles and what is computed in one share it.
class ConvTileLoops {
public:
    /// Writes the tile's parameters into the schedule.
    ConvTileLoops(KernelSource& source, const DirectConv& conv);

    const DirectConv& conv() const { return conv_; }
    const ConvTile& tile() const { return tile_; }
    const ConvWalk& walk() const { return walk_; }
    const std::string& channels() const { return c_; }  // loops
    const std::string& columns() const { return x_; }
    const std::string& rows() const { return conv_.output.vars[2]; }
    bool has_rows() const { return conv_.output.vars.size() > 3; }

    const std::string& lanes() const { return lanes_; }  // C++ expressions
    const std::string& pixels() const { return pixels_; }
    const std::string& tile_rows() const { return tile_rows_; }  // empty where a tile has one
    std::string tile_channels() const;
    /// By how much the output's loops go on: a tile, or what of tiles waits together.
    std::string walked_channels() const;
    const std::string& walked_pixels() const { return gathers_tiles() ? waiting_pixels_ : pixels_; }
    const std::string& walked_rows() const { return waiting_rows_.empty() ? tile_rows_ : waiting_rows_; }

    /// Holds these pixels or rows to those of a strip, where there are strips and several rows.
    void hold_pixels(const std::string& strip);
    void hold_rows(const std::string& strip);

    /// Writes why the tile is as it is.
    void explain() const;

    /// A run finds the best of several numbers of pixels for its width.
    bool has_versions() const { return conv_.loops.open_width; }
    /// Whether the last vector has lanes for which there are no channels; the weights have zeros there.
    bool rounds_channels_up() const { return conv_.loops.shares_inputs && conv_.loops.channels % tile_.lanes != 0; }
    /// Whether the sums of a group are too many for the registers: its tile is walked in parts.
    bool gathers_group() const { return conv_.loops.whole_group && tile_.vectors < all_vectors(); }
    /// Whether what follows the sums needs more registers than they leave it.
    bool lacks_registers() const;
    bool waits_in_memory() const { return gathers_group() || lacks_registers(); }
    /// Whether the sums of many tiles wait together, so that a processor goes from sums to what follows them, and finds
    /// nothing to do meanwhile, once for all of them. Tiles of open rows have several sizes, each with loops of its
    /// own.
    bool gathers_tiles() const { return lacks_registers() && !gathers_group() && !has_versions(); }
    /// Whether many tiles of channels are walked at each place of a depthwise output, so that memory is read in order.
    /// A copied input has the channels of one tile.
    bool walks_channels() const { return !conv_.loops.shares_inputs && conv_.input.vars.empty(); }
    /// Whether tiles are shifted inwards in strips that are shifted, too: what Halide then does not see of a tile's
    /// extents has to be told, or its sums stay in memory.
    bool shifts_pixels_twice() const {
        const ConvLoops& loops = conv_.loops;
        return !loops.has_strips_of_rows() && !loops.open_width && walk_.strip < loops.width;
    }
    bool shifts_rows_twice() const {
        const ConvLoops& loops = conv_.loops;
        return loops.has_strips_of_rows() && !loops.open_height && !tile_rows_.empty() && walk_.strip < loops.height;
    }
    /// Whether several groups share a vector.
    bool has_vectors_of_groups() const { return conv_.loops.channels_of_vector_groups > 1; }
    /// Whether the last of these vectors, which is shifted inwards, has to be told to begin at a group: Halide then
    /// sees which elements of its input each lane reads.
    bool begins_at_groups() const { return has_vectors_of_groups() && conv_.loops.channels % tile_.lanes != 0; }
    /// Whether several pixels do.
    bool has_vectors_of_pixels() const { return !x_vectors_.empty(); }

    /// The loop over tiles along a dimension of what is walked or waits together.
    std::string tile_of(const std::string& var) const { return source_.var(var + "_tile"); }
    /// The loops in a tile, innermost first.
    std::vector<std::string> in_tile() const;
    /// Splits the pixels of a tile into those of vectors, where they share these.
    Directives vectors_of_pixels() const;
    /// Makes vectors of channels, or of channels and pixels, and unrolls loops: all of a tile, or these.
    Directives vectorised() const { return vectorised(in_tile()); }
    Directives vectorised(const std::vector<std::string>& unrolled) const;

    /// The same of channels that are split into groups: vectors of these are vectors of their channels' vectors.
    std::string groups() const { return source_.var("group"); }
    std::string split_into_groups() const;
    std::vector<std::string> in_tile_of_groups() const;
    Directives vectorised_groups(const std::vector<std::string>& unrolled) const;

private:
    KernelSource& source_;
    const DirectConv& conv_;
    ConvTile tile_;
    ConvWalk walk_;
    std::string c_, x_, x_vectors_;  // the last: of vectors of several pixels; else empty
    std::string lanes_, vectors_, pixels_, tile_rows_, waiting_pixels_, waiting_rows_;

    void declare_waiting();
    /// Vectors of all channels of a group; depthwise ones are whole.
    int64_t all_vectors() const { return conv_.loops.channels / tile_.lanes + (rounds_channels_up() ? 1 : 0); }
};

}  // namespace onnx2halide
