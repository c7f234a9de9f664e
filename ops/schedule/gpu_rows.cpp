#include "ops/schedule/gpu_rows.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

constexpr int threads_of_block = 256;

/// Threads that share a row. With many rows, each block has several, so that few partial results are left to combine;
/// few rows are computed by as many threads as possible.
int threads_of_row(const Dim& length, const Dim& rows) {
    constexpr int64_t many_rows = 4096, some_rows = 512;
    const int64_t count = rows.constant().value_or(many_rows);
    const int64_t most = count >= many_rows ? 16 : count >= some_rows ? 32 : 128;
    const int64_t elements = length.constant().value_or(most);
    return static_cast<int>(
        std::min<int64_t>(most, std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, elements)))));
}

class Writer {
public:
    Writer(KernelSource& source, const RowLoops& rows) : source_(source), rows_(rows), block_(source.var("block")) {
        const Loops& loops = rows.output;
        for (size_t i = 0; i < loops.vars.size(); ++i) {
            const bool is_inside = std::find(rows.row.begin(), rows.row.end(), loops.vars[i]) != rows.row.end();
            (is_inside ? inside_ : outside_).push_back(i);
        }
    }

    bool write() {
        // A block without threads, for rows that turn out to be empty, cannot be launched.
        if ((outside_.empty() && !is_number()) || inside_.empty() != rows_.row.empty() || rows_.may_be_empty())
            return false;
        choose_row();
        const Dim count = product_of(outside_);
        threads_ = threads_of_row(rows_.length, count);
        const int64_t side_by_side = is_number() ? 1 : loops().extents[row_].constant().value_or(threads_of_block);
        rows_of_block_ = 1;
        while (is_shared_ && 2 * rows_of_block_ * threads_ <= threads_of_block && rows_of_block_ < side_by_side)
            rows_of_block_ *= 2;
        source_.schedule(
            fmt::format("// {} threads share a row's reductions; a block has {} rows.", threads_, rows_of_block_));
        write_output();
        for (const auto& [func, kind] : rows_.stages) write_stage(func, kind);
        return true;
    }

private:
    KernelSource& source_;
    const RowLoops& rows_;
    const std::string block_;
    std::vector<size_t> inside_, outside_;  // indices of the output's loops, within a row and over rows
    size_t row_ = 0;                        // the index of the loop over a block's rows
    bool is_shared_ = false;                // whether stages have that loop, so that a block may have several rows
    bool is_along_ = false;                 // whether a row's elements are contiguous, rather than neighbouring rows'
    int threads_ = 1, rows_of_block_ = 1;

    const Loops& loops() const { return rows_.output; }
    /// Whether the result is a single number, of one row, which has no loops.
    bool is_number() const { return loops().vars.empty(); }

    Dim product_of(const std::vector<size_t>& numbers) const {
        Dim result = 1;
        for (const size_t i : numbers) result *= loops().extents[i];
        return result;
    }

    /// Chooses the innermost loop over rows with several iterations, if there is one.
    void choose_row() {
        if (is_number()) {
            is_along_ = rows_.steps_are_innermost;
            return;
        }
        const auto is_nontrivial = [&](size_t i) { return !loops().extents[i].is(1); };
        const auto found = std::find_if(outside_.begin(), outside_.end(), is_nontrivial);
        row_ = found == outside_.end() ? outside_.front() : *found;
        const std::vector<std::string>& numbers = rows_.numbers.vars;
        is_shared_ = std::find(numbers.begin(), numbers.end(), loops().vars[row_]) != numbers.end();
        const auto within = std::find_if(inside_.begin(), inside_.end(), is_nontrivial);
        is_along_ = inside_.empty() ? rows_.steps_are_innermost : within != inside_.end() && *within < row_;
    }

    std::vector<std::string> in_order(const std::string& thread) const {
        if (!is_shared_) return {thread};
        const std::string& row = loops().vars[row_];
        return is_along_ ? std::vector{thread, row} : std::vector{row, thread};
    }

    /// The threads of stages with one value per row: rows are the same dimension of the block as in other stages.
    std::vector<std::string> threads_of_rows(const std::string& row, Directives& result) const {
        if (!is_along_) return {row};
        const std::string thread = source_.var("only_thread");
        result.push_back(fmt::format("split({0}, {0}, {1}, 1)", row, thread));
        return {thread, row};
    }

    void write_output() {
        if (is_number())
            return source_.schedule(loops().func,
                                    {fmt::format("split(Var::outermost(), Var::outermost(), {}, 1)", block_),
                                     fmt::format("gpu_blocks({})", block_)});
        const std::string row = loops().vars[row_], thread = source_.var("thread"),
                          iteration = source_.var("iteration");
        Directives result;
        std::vector<std::string> inside;
        for (const size_t i : inside_) inside.push_back(loops().vars[i]);
        std::vector<std::string> threads;
        if (!inside.empty()) {
            const std::string place = fuse_all(source_, inside, "place", result);
            result.push_back(fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", place, iteration, thread,
                                         source_.param("threads", threads_)));
            threads = in_order(thread);
        }
        result.push_back(is_shared_ ? guarded_split(row, block_, source_.param("rows", rows_of_block_))
                                    : fmt::format("rename({}, {})", row, block_));
        if (inside.empty() && is_shared_) threads = threads_of_rows(row, result);
        for (const size_t i : outside_) {
            if (i != row_) result.push_back(fmt::format("fuse({0}, {1}, {0})", block_, loops().vars[i]));
        }
        std::vector<std::string> order;
        if (!inside.empty()) order.push_back(iteration);
        order.insert(order.end(), threads.begin(), threads.end());
        order.push_back(block_);
        if (order.size() > 1) result.push_back(reorder(order));
        result.push_back(fmt::format("gpu_blocks({})", block_));
        if (!threads.empty()) result.push_back(fmt::format("gpu_threads({})", fmt::join(threads, ", ")));
        source_.schedule(loops().func, result);
    }

    void write_stage(const std::string& func, RowStage::Kind kind) {
        if (kind == RowStage::Kind::elements) return;  // computed where they are read
        const std::string rows = is_shared_ ? loops().vars[row_] : "";
        if (kind == RowStage::Kind::number) {
            Directives result = {compute_at(loops().func, block_), "store_in(MemoryType::GPUShared)"};
            if (is_shared_) {
                const std::vector<std::string> threads = threads_of_rows(rows, result);
                result.push_back(fmt::format("gpu_threads({})", fmt::join(threads, ", ")));
            }
            return source_.schedule(func, result);
        }
        source_.schedule(fmt::format("onnx::reduce_in_block({}, {{{}}}, {}, {}, {}, {{{}}}, {});", func,
                                     fmt::join(rows_.steps.vars, ", "), loops().func, block_,
                                     source_.param("threads", threads_), rows, is_along_));
    }
};

}  // namespace

bool schedule_rows_on_gpu(KernelSource& source, const RowLoops& rows) { return Writer(source, rows).write(); }

}  // namespace onnx2halide
