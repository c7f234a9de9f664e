#include "ops/attention/attention_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/node_generator.h"
#include "ops/product/matmul_tile.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// A machine with the registers that exp leaves for the sums of products: LLVM keeps exp's constants in the others from
/// tile to tile, and would rather spill sums.
Target without_constants_of_exp(Target target) {
    // A machine with few registers spills constants in any case: 4 x 2 sums, two vectors and an operand stay.
    constexpr int constants = 13, least = 11;
    target.vector_registers = std::max(target.vector_registers - constants, least);
    return target;
}

class AttentionSchedule {
public:
    AttentionSchedule(KernelSource& source, const AttentionLoops& attention)
        : source_(source), attention_(attention), product_(attention.product),
          target_(without_constants_of_exp(source.target())), lanes_(target_.lanes(product_.element)),
          has_versions_(!product_.rows.constant()) {}

    void write() {
        source_.schedule("// A tile's rows go from scores to results at once, and stay in the nearest cache.");
        schedule_results();
        if (attention_.scores) schedule_scores(*attention_.scores);
        schedule_rows();
    }

private:
    /// Images of a batch that keep the threads of most machines busy. If fewer have keys and values of their own, tiles
    /// of rows are tasks: of all images, once the keys and values of these have been packed, unless they need much
    /// memory.
    static constexpr int enough_images = 8;
    static constexpr int64_t most_shared_bytes = 2 << 20;

    void schedule_results() {
        const std::string &x = product_.column, &y = product_.row;
        x_tile_ = source_.var(x + "_tile");
        rows_loop_ = source_.var(y + "_tile");
        const MatmulTile tile = choose_matmul_tile(target_, product_.element, product_.rows, product_.columns);
        tile_rows_ = tile.rows;
        rows_ = source_.param("rows", tile.rows);
        const std::string vector = columns_vector(product_);
        const std::string vectors = has_versions_ ? vectors_of_versions(source_, target_, product_, tile.vectors)
                                                  : source_.param("vectors", tile.vectors),
                          width = fmt::format("{} * {}", vector, vectors);
        Directives directives = {guarded_split(x, x_tile_, width)};
        const Loops batch = batch_loops(product_);
        directives.push_back(shifted_split(y, rows_loop_, has_versions_ ? KernelSource::tile_size : rows_));
        directives.push_back(reorder(joined({x, y, x_tile_, rows_loop_}, batch.vars)));
        directives = joined(joined(directives, in_registers(product_.column, product_.row, vector)),
                            tasks(nontrivial_loops(batch)));
        if (has_versions_) {
            source_.schedule_versions(product_.output.func, row_versions(source_, product_, rows_), directives);
        } else {
            source_.schedule(product_.output.func, directives);
        }
        place_panels(product_);
        const std::string place = compute_at(product_.output.func, x_tile_);
        schedule_sums(source_, product_, place, width, in_registers(product_.column, product_.row, vector));
        schedule_single_row(source_, product_, place);
    }

    /// The loops over images without the innermost ones if these share keys and values, as a group of heads may.
    Loops distinct_images(Loops batch) const {
        const auto differ_along = [](const MatmulLoops& matmul, const std::string& var) {
            return matmul.panels.empty() || std::ranges::find(matmul.panel_batch, var) != matmul.panel_batch.end();
        };
        while (!batch.vars.empty() && !differ_along(product_, batch.vars.front()) &&
               !(attention_.scores && differ_along(*attention_.scores, batch.vars.front()))) {
            batch.vars.erase(batch.vars.begin());
            batch.extents.erase(batch.extents.begin());
        }
        return batch;
    }

    /// Directives for parallel tasks; sets the loops over images and rows.
    Directives tasks(const Loops& batch) {
        Directives directives;
        const Loops distinct = distinct_images(batch);
        const auto images = product(batch.extents).constant(), panels = product(distinct.extents).constant();
        if (!distinct.vars.empty()) image_ = distinct.vars.front();
        if (!is_worth_tasks(product_)) return directives;
        const bool are_few = images && *images < enough_images, are_few_panels = panels && *panels < enough_images;
        if (are_few_panels && !has_versions_ && panel_bytes() <= most_shared_bytes / *panels) {
            shared_images_ = batch.vars;
            rows_loop_ = fuse_all(source_, joined({rows_loop_}, batch.vars), "task", directives);
            image_.clear();
        } else if (!are_few) {
            image_ = fuse_all(source_, are_few_panels ? batch.vars : distinct.vars, "image", directives);
            directives.push_back(parallel(image_));
            if (images) return directives;
        }
        directives.push_back(parallel(rows_loop_));
        return directives;
    }

    /// Bytes of the packed keys and values of one image; unbounded if only a run knows them.
    int64_t panel_bytes() const {
        Dim elements = product_.depth * product_.columns;
        if (attention_.scores) elements += attention_.scores->depth * attention_.scores->columns;
        return (elements * info(product_.element).bytes).constant().value_or(Dim::unbounded);
    }

    /// The stage that computes the scores of a tile, the loop along a row, and the loop over its tiles.
    struct ScoreLoops {
        std::string func, stage, x, x_tile;
    };
    ScoreLoops score_loops() const {
        if (attention_.rows.empty())
            return {attention_.scores->output.func, attention_.scores->output.func, product_.column, x_tile_};
        return {attention_.rows, attention_.rows + ".update()", attention_.key, source_.rvar("key_tile")};
    }

    void schedule_scores(const MatmulLoops& scores) {
        const ScoreLoops loops = score_loops();
        const std::string& y = product_.row;
        const int vectors = choose_tile_vectors(target_, scores.element, tile_rows_, scores.columns);
        const std::string vector = columns_vector(scores);
        const std::string width = fmt::format("{} * {}", vector, source_.param("score_vectors", vectors));
        Directives directives = {guarded_split(loops.x, loops.x_tile, width), reorder({loops.x, y, loops.x_tile})};
        directives = joined(directives, in_registers(loops.x, y, vector));
        if (attention_.rows.empty()) directives.insert(directives.begin(), at_rows());
        source_.schedule(loops.stage, directives);
        if (!scores.dots.empty()) source_.schedule(fmt::format("{}.specialize({});", loops.stage, scores.is_single));
        place_panels(scores);
        const std::string place = compute_at(loops.func, loops.x_tile);
        schedule_sums(source_, scores, place, width, in_registers(scores.column, scores.row, vector));
        schedule_single_row(source_, scores, place);
    }

    std::string at_rows() const { return compute_at(product_.output.func, rows_loop_); }

    std::string columns_vector(const MatmulLoops& matmul) { return source_.lanes(matmul.element, matmul.lanes); }

    /// Schedules the packing of keys or values: those of one image or, as tasks of their own, of all images.
    void place_panels(const MatmulLoops& matmul) {
        Directives place = {image_.empty() ? "compute_root()" : compute_at(product_.output.func, image_)};
        const auto is_shared = [&](const std::string& var) {
            return std::find(shared_images_.begin(), shared_images_.end(), var) != shared_images_.end();
        };
        const auto image = std::find_if(matmul.panel_batch.rbegin(), matmul.panel_batch.rend(), is_shared);
        if (image != matmul.panel_batch.rend()) place.push_back(parallel(*image));
        schedule_panels(source_, matmul, place, columns_vector(matmul));
    }

    void schedule_rows() {
        const std::string whole_vectors = fmt::format("vectorize({}, {}, TailStrategy::RoundUp)", product_.column,
                                                      std::min(attention_.width, lanes_));
        if (!attention_.rows.empty()) {
            source_.schedule(attention_.rows, {at_rows(), whole_vectors});
            if (!attention_.scores)
                source_.schedule(attention_.rows + ".update()",
                                 {fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", attention_.key,
                                              source_.lanes(product_.element, lanes_))});
        }
        source_.schedule(attention_.exp, {at_rows(), whole_vectors});
        // All maxima first, so that the rows' exp need not wait for each one.
        for (const std::string& reduction : {attention_.max, attention_.total}) {
            source_.schedule(fmt::format("{}.{};", reduction, at_rows()));
            source_.schedule(fmt::format("onnx::reduce_vectors({}, {}, {}, {});", reduction, attention_.element,
                                         attention_.width, product_.row));
        }
        source_.schedule(fmt::format("{}.{};", attention_.factor, at_rows()));
    }

    KernelSource& source_;
    const AttentionLoops& attention_;
    const MatmulLoops& product_;
    const Target target_;
    int lanes_, tile_rows_ = 0;
    bool has_versions_;  // of tiles, if the number of rows is known only at run time
    std::string x_tile_, rows_;
    std::string rows_loop_;  // the loop over tiles of rows, fused with those over images if panels are shared
    std::string image_;  // the loop over images, the innermost of a batch; empty if there is none, or panels are shared
    Coordinates shared_images_;  // all loops over images, if the keys and values of all are packed first; else empty
};

}  // namespace

void schedule_attention(KernelSource& source, const AttentionLoops& attention) {
    AttentionSchedule(source, attention).write();
}

}  // namespace onnx2halide
