// Tiles, for extents that are known only at run time too, and blocks.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "Halide.h"

using namespace Halide;

namespace onnx {

/// A kernel has versions of its loop nest for tiles of several sizes along an extent. At run time it takes the one that
/// computes least. The last tile of `tile_versions` is as large as the others, and overlaps its neighbour.
struct TileVersion {
    int size;
    Expr is_best;  // if no earlier version is; undefined for the last version, which fits every extent
    // Of a loop over tiles, whether Halide copies it, without conditions, for the tiles inside: in the first version,
    // which large images take.
    Partition partition = Partition::Auto;

    /// The stage, for directives of this version alone. The version is taken only if `holds` is true as well; the last
    /// one is taken if no other is.
    Stage of(Stage stage, const Expr& holds = Internal::const_true()) const {
        return is_best.defined() ? stage.specialize(is_best && holds) : stage;
    }
};

/// A version for each size, which is best if is_less(size, later) holds for all later sizes.
template <typename IsLess>
std::vector<TileVersion> best_versions(const std::vector<int>& sizes, IsLess is_less) {
    std::vector<TileVersion> versions;
    for (size_t i = 0; i < sizes.size(); ++i) {
        Expr is_best;
        for (size_t j = i + 1; j < sizes.size(); ++j)
            is_best = is_best.defined() ? is_best && is_less(sizes[i], sizes[j]) : is_less(sizes[i], sizes[j]);
        versions.push_back({sizes[i], is_best, i == 0 ? Partition::Auto : Partition::Never});
    }
    return versions;
}

/// Versions for tiles of these sizes, of which the last is 1. A tile takes hardly less time than one of `least`
/// elements if it has fewer.
inline std::vector<TileVersion> versions_of_sizes(Expr extent, const std::vector<int>& sizes, int least) {
    // Besides its elements, each tile has a small cost of its own.
    const auto work = [&](int size) { return (extent + size - 1) / size * (8 * std::max(size, least) + size + 2); };
    // Whether there are two elements or more. From a comparison Halide would infer that the other case has one element,
    // turn its loop into an `if`, and derive conditions for what each version reads: a long tree of them, evaluated
    // before each run.
    const Expr is_several = (extent & ~1) != 0;
    return best_versions(sizes, [&](int size, int other) {
        return other > 1 ? work(size) <= work(other) : size == 2 ? is_several : extent >= size;
    });
}

/// Versions for tiles from `most` elements down to one, each `step` times as large as the one before.
inline std::vector<TileVersion> tile_versions(Expr extent, int most, int least = 1, double step = 0.5) {
    std::vector<int> sizes = {most};
    while (sizes.back() > 1) sizes.push_back(std::clamp(int(sizes.back() * step + 0.5), 1, sizes.back() - 1));
    return versions_of_sizes(extent, sizes, least);
}

/// Versions for tiles of up to `most` pixels of a row: `most` and those of `sizes`, which descend to 1, that are less.
inline std::vector<TileVersion> pixel_versions(Expr width, int most, const std::vector<int>& sizes, int least) {
    std::vector<int> used = {most};
    std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(used), [&](int size) { return size < most; });
    return versions_of_sizes(width, used, least);
}

/// The versions, preceded by one for an extent of 1. By this comparison Halide knows the extent in that version.
inline std::vector<TileVersion> with_single(Expr extent, std::vector<TileVersion> versions) {
    for (TileVersion& version : versions) {
        if (version.is_best.defined()) version.is_best = extent > 1 && version.is_best;
    }
    versions.insert(versions.begin(), {1, extent == 1});
    return versions;
}

/// The versions, preceded by one of their largest tile for more elements than a few. By this comparison Halide knows in
/// each version whether there are more.
inline std::vector<TileVersion> with_many(Expr extent, int few, std::vector<TileVersion> versions) {
    versions.insert(versions.begin(), {versions.front().size, extent > few});
    return versions;
}

/// Versions of a sum for vectors of `most` elements and fewer, after which the remainder is added one by one.
inline std::vector<TileVersion> sum_versions(Expr extent, int most) {
    std::vector<int> sizes;
    for (int size = most; size >= 4 || sizes.empty(); size /= 4) sizes.push_back(size);
    // In cycles: each vector is reduced to one number, and each addition depends on the one before.
    const auto work = [&](int size) { return extent / size * (size / 8 + 6) + extent % size * 4; };
    return best_versions(sizes, [&](int size, int other) { return work(size) <= work(other); });
}

/// Computes the tiles that a transposing copy reads, within `loop` of the kernel's result: the copy or what is computed
/// from it. Vectors of `read` elements along the innermost axis, if `has_vectors`, become the columns of a tile, whose
/// rows are `written` elements along the axis that the copy stores contiguously.
inline void interleave_tile(Func tile, int axis, int written, int read, Func result, Var loop,
                            const Expr& has_vectors) {
    std::vector<Var> order = tile.args();
    const Var inner = order[0], outer = order[axis];
    std::swap(order[0], order[axis]);
    tile.compute_at(result, loop).reorder_storage(order);
    Stage vectors = Internal::is_const_one(has_vectors) ? Stage(tile) : tile.specialize(has_vectors);
    vectors.vectorize(inner, read, TailStrategy::GuardWithIf).unroll(outer, written, TailStrategy::GuardWithIf);
}

/// The block of `size` elements that element i is in, and its place there, written so that Halide sees that an aligned
/// vector of `lanes` elements, which divide a block, is adjacent in one: of pairs and quads it does not see it
/// otherwise.
inline Expr block_of(const Expr& i, int size, int lanes) { return i / lanes / (size / lanes); }
inline Expr place_in_block(const Expr& i, int size, int lanes) {
    return i / lanes % (size / lanes) * lanes + i % lanes;
}

/// A call of a function in runtime/tasks.c, of integers only.
inline Expr number_from(const char* function, std::vector<Expr> arguments) {
    for (Expr& argument : arguments) argument = cast<int32_t>(argument);
    return Internal::Call::make(Int(32), function, arguments, Internal::Call::PureExtern);
}

/// The number of rows in a task: runtime/tasks.c decides. Halide copies what a task's size is into the bounds of every
/// loop in and around it. As an expression in Halide's terms, this took a third of the compile time of kernels for open
/// images; a call's arguments are short.
inline Expr rows_of_task(Expr rows, Expr elements_of_row, Expr elements, Expr least_rows, Expr threads,
                         Expr inner_tasks = 1) {
    return number_from("onnx2halide_rows_of_task", {rows, elements_of_row, elements, least_rows, threads, inner_tasks});
}

/// The number of rows in a strip of at most so many, of which neighbours compute some rows of their input twice:
/// runtime/tasks.c decides.
inline Expr rows_of_strip(Expr rows, Expr least_rows, Expr most_rows, Expr threads, Expr inner_tasks) {
    return number_from("onnx2halide_rows_of_strip", {rows, least_rows, most_rows, threads, inner_tasks});
}

/// Versions for tiles of `most` rows, half of them, a quarter and so on, down to one, for instructions that multiply
/// matrices: runtime/tasks.c decides. Within a version Halide knows from this comparison which one it is, so that other
/// stages may have the same versions.
inline std::vector<TileVersion> matrix_versions(Expr rows, int most) {
    const Expr best = number_from("onnx2halide_rows_of_tile", {rows, most});
    std::vector<TileVersion> versions;
    for (int size = most; size > 1; size /= 2) versions.push_back({size, best == size});
    versions.push_back({1, Expr()});
    return versions;
}

/// The rows of each matrix in a tile of so many, which are at most 16 and divide them.
inline int rows_of_matrix(int tile_rows) {
    int matrices = (tile_rows + 15) / 16;
    while (tile_rows % matrices != 0) ++matrices;
    return tile_rows / matrices;
}

/// Vectorises a Func's first update, a reduction over vectors of `width` elements (a power of two): the lanes are
/// reduced as a tree, to a quarter at each level. With strict arithmetic LLVM would reduce them one by one. All levels
/// are computed within an iteration of `loop`.
inline void reduce_vectors(Func func, RVar element, int width, Var loop) {
    Var lane;
    while (width > 1) {
        Func vectors = func.update().rfactor(element, lane);
        vectors.compute_at(func, loop).vectorize(lane).update().vectorize(lane);
        width /= 4;
        if (width <= 1) break;
        RVar iteration, part;
        func.update().split(element, iteration, part, width);
        element = part;
    }
    func.update().unroll(element);
}

/// The same for several rows at once, the iterations of `row` within an iteration of `loop` of `at`: their vectors are
/// halved until each holds four numbers, which are read as four vectors across the rows. Iterations of the loops
/// `beside` are unrolled, since they share what is read of a row.
inline void reduce_rows(Func func, RVar element, int width, Var row, Func at, Var loop,
                        const std::vector<Var>& beside = {}) {
    constexpr int least = 4;
    const auto unroll_beside = [&](Stage stage) {
        for (const Var& var : beside) stage.unroll(var);
    };
    RVar half;
    for (int parts = width;; parts /= 2) {
        Var lane;
        Func vectors = func.update().rfactor(element, lane);
        std::vector<Var> order = vectors.args();
        std::rotate(order.begin(), order.end() - 1, order.end());
        vectors.compute_at(at, loop).reorder_storage(order);
        if (parts < width) vectors.update().unroll(half);
        std::vector<VarOrRVar> loops = {lane};
        loops.insert(loops.end(), beside.begin(), beside.end());
        loops.push_back(row);
        for (Stage stage : {Stage(vectors), vectors.update()})
            unroll_beside(stage.reorder(loops).vectorize(lane).unroll(row));
        if (parts <= least) break;
        half = RVar();
        RVar part;
        func.update().split(element, half, part, parts / 2);
        element = part;
    }
    func.compute_at(at, loop);
    for (Stage stage : {Stage(func), func.update()}) unroll_beside(stage.vectorize(row));
    func.update().unroll(element);
}

}  // namespace onnx
