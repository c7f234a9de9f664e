#pragma once

#include <string>
#include <vector>

#include "ops/conv/conv_schedule.h"
#include "ops/conv/conv_walk.h"
#include "ops/schedule/directives.h"

namespace onnx2halide {

/// The tile of a direct convolution in its kernel's schedule: the names of its loops, the parameters that give its
/// size, and its vectors. Shared by the schedules of the walk over tiles and of the sums within one.
class ConvTileLoops {
public:
    /// Declares the tile's parameters in the schedule.
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
    const std::string& tile_rows() const { return tile_rows_; }  // empty if a tile has one
    const std::string& windows() const { return windows_; }      // of a pool, in a tile; empty if there is none
    std::string tile_channels() const;
    /// The steps of the output's loops: a tile, or the tiles that are buffered together.
    std::string walked_channels() const;
    const std::string& walked_pixels() const { return gathers_tiles() ? waiting_pixels_ : pixels_; }
    const std::string& walked_rows() const { return waiting_rows_.empty() ? tile_rows_ : waiting_rows_; }

    /// Limits these pixels or rows to those of a strip, if there are strips of several rows.
    void hold_pixels(const std::string& strip);
    void hold_rows(const std::string& strip);

    /// Writes a comment with the reason for the tile's size.
    void explain() const;

    /// Whether the best of several numbers of pixels is chosen at run time, for the image's width.
    bool has_versions() const { return conv_.loops.open_width; }
    /// Whether the last vector has lanes without channels, for which weights are zero.
    bool rounds_channels_up() const { return conv_.loops.shares_inputs && conv_.loops.channels % tile_.lanes != 0; }
    /// Whether the sums of a group exceed the registers, so that its tile is walked in parts.
    bool gathers_group() const { return conv_.loops.whole_group && tile_.vectors < all_vectors(); }
    /// Whether the epilogue needs more registers than the sums leave.
    bool lacks_registers() const;
    bool waits_in_memory() const { return gathers_group() || lacks_registers(); }
    /// Whether the sums of many tiles are buffered together, so that the switch from sums to epilogue, during which the
    /// processor idles, happens once for all of them. Not for open widths, whose tiles have several sizes, each with
    /// loops of its own.
    bool gathers_tiles() const { return lacks_registers() && !gathers_group() && !has_versions(); }
    /// Whether many tiles of channels are walked at each pixel of a depthwise output, so that memory is read in order.
    /// Not for copied inputs, which have the channels of one tile.
    bool walks_channels() const { return !conv_.loops.shares_inputs && conv_.input.vars.empty(); }
    /// Whether both tiles and strips or tasks, or tiles and their vectors in a buffer, are shifted inwards. Halide then
    /// does not see a tile's extents, which must be asserted, or its sums stay in memory or seem to read past the
    /// weights.
    bool shifts_channels_twice() const {
        return conv_.producer || (waits_in_memory() && tile_.vectors < all_vectors());
    }
    bool shifts_pixels_twice() const {
        const ConvLoops& loops = conv_.loops;
        return !loops.has_strips_of_rows() && !loops.open_width && walk_.strip < loops.width;
    }
    bool shifts_rows_twice() const {
        const ConvLoops& loops = conv_.loops;
        return loops.has_strips_of_rows() && !loops.open_height && !tile_rows_.empty() && walk_.strip < loops.height;
    }
    /// Whether the sums of whole rows, of several tiles each, are added in parts (see ConvWalk::products).
    bool walks_tiles_of_rows() const { return walk_.products > 0 && tile_.pixels < conv_.loops.width; }
    /// Whether several groups share a vector.
    bool has_vectors_of_groups() const { return conv_.loops.channels_of_vector_groups > 1; }
    /// Whether the last of these vectors, which is shifted inwards, must be asserted to start at a group, so that
    /// Halide sees which input elements each lane reads.
    bool begins_at_groups() const { return has_vectors_of_groups() && conv_.loops.channels % tile_.lanes != 0; }
    /// Whether several pixels share a vector.
    bool has_vectors_of_pixels() const { return !x_vectors_.empty(); }

    /// The loop over tiles along a dimension of what is walked or buffered together.
    std::string tile_of(const std::string& var) const { return source_.var(var + "_tile"); }
    /// The loops within a tile, innermost first.
    std::vector<std::string> in_tile() const;
    /// Splits the pixels of a tile into those of vectors, if several share one.
    Directives vectors_of_pixels() const;
    /// Vectorises channels, or channels and pixels, and unrolls loops: all of a tile's, or these.
    Directives vectorised() const { return vectorised(in_tile()); }
    Directives vectorised(const std::vector<std::string>& unrolled) const;

    /// The same for channels that are split into groups: a vector of groups consists of their channels' vectors.
    std::string groups() const { return source_.var("group"); }
    std::string split_into_groups() const;
    std::vector<std::string> in_tile_of_groups() const;
    Directives vectorised_groups(const std::vector<std::string>& unrolled) const;

private:
    KernelSource& source_;
    const DirectConv& conv_;
    ConvTile tile_;
    ConvWalk walk_;
    std::string c_, x_, x_vectors_;  // the last: the loop over vectors of several pixels; else empty
    std::string lanes_, vectors_, pixels_, tile_rows_, windows_, waiting_pixels_, waiting_rows_;

    void declare_pixels();

    void declare_waiting();
    /// Vectors of a tile at most.
    int64_t most_vectors() const;
    /// Vectors that cover all channels of a group; depthwise ones are full.
    int64_t all_vectors() const { return conv_.loops.channels / tile_.lanes + (rounds_channels_up() ? 1 : 0); }
};

}  // namespace onnx2halide
