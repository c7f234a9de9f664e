#include "compiler/generator/spread_prefetches.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/generator/lowered.h"

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

constexpr int64_t line_bytes = 64;
/// More prefetches than this in one iteration would wait for each other.
constexpr int64_t most_at_once = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Finds out whether an expression depends on a variable only through its quotient by a constant.
class Quotient : public IRVisitor {
public:
    /// The constant; 0 if the variable is used otherwise, or not at all.
    static int64_t of(const std::string& variable, const Expr& e) {
        Quotient visitor(variable);
        e.accept(&visitor);
        return visitor.is_used_otherwise_ ? 0 : visitor.divisor_;
    }

private:
    using IRVisitor::visit;

    explicit Quotient(const std::string& variable) : variable_(variable) {}

    void visit(const Div* op) override {
        const Variable* variable = op->a.as<Variable>();
        const auto divisor = as_const_int(op->b);
        if (!variable || variable->name != variable_ || !divisor || (divisor_ != 0 && divisor_ != *divisor))
            return IRVisitor::visit(op);
        divisor_ = *divisor;
    }

    void visit(const Variable* op) override { is_used_otherwise_ |= op->name == variable_; }

    std::string variable_;
    int64_t divisor_ = 0;
    bool is_used_otherwise_ = false;
};

/// The cache lines that an iteration of a loop reads of a buffer: `streams` runs of `run` adjacent lines, which start
/// `stride` elements apart. Each of its vectors is read so many times, if that is known.
struct Lines {
    int64_t streams = 1, stride = 0, run = 1;
    std::optional<int64_t> uses;
};

/// Finds the cache lines that a loop's body reads of a buffer.
class LinesFinder : public IRVisitor {
public:
    /// Returns nullopt if the lines do not form equal runs, or a load's index does not differ by a constant from
    /// `element`, another index into the buffer.
    static std::optional<Lines> find(const Expr& element, const std::string& buffer, int64_t elements_of_line,
                                     const Lets& lets, const Stmt& body) {
        LinesFinder finder(element, buffer, lets);
        body.accept(&finder);
        if (!finder.are_known_ || finder.ahead_.empty()) return {};
        const int64_t first = *finder.ahead_.rbegin();
        std::set<int64_t> lines;
        for (const int64_t ahead : finder.ahead_) lines.insert((first - ahead) / elements_of_line);
        auto result = runs({lines.begin(), lines.end()}, elements_of_line);
        if (result) result->uses = finder.loads_ / static_cast<int64_t>(finder.ahead_.size());
        return result;
    }

private:
    using IRVisitor::visit;

    LinesFinder(const Expr& element, const std::string& buffer, const Lets& lets)
        : element_(element), buffer_(buffer), lets_(lets) {}

    /// From the lines' numbers in rising order, the first of which is 0.
    static std::optional<Lines> runs(const std::vector<int64_t>& numbers, int64_t elements_of_line) {
        const auto count = static_cast<int64_t>(numbers.size());
        Lines lines;
        while (lines.run < count && numbers[lines.run] == lines.run) ++lines.run;
        lines.streams = count / lines.run;
        const int64_t stride = lines.run < count ? numbers[lines.run] : 0;
        if (count % lines.run != 0) return {};
        for (int64_t i = 0; i < count; ++i) {
            if (numbers[i] != i / lines.run * stride + i % lines.run) return {};
        }
        lines.stride = stride * elements_of_line;
        return lines;
    }

    void visit(const LetStmt* op) override {
        op->value.accept(this);
        lets_.emplace_back(op->name, op->value);
        op->body.accept(this);
        lets_.pop_back();
    }

    void visit(const Load* op) override {
        IRVisitor::visit(op);
        if (op->name != buffer_) return;
        ++loads_;
        const Ramp* ramp = op->index.as<Ramp>();
        const Expr first = ramp ? ramp->base : op->index;
        if (first.type().is_scalar()) {
            const auto ahead = as_const_int(simplify(element_ - without_lets(first, lets_)));
            if (ahead) ahead_.insert(*ahead);
            are_known_ &= ahead.has_value();
        } else {
            are_known_ = false;
        }
    }

    Expr element_;
    std::string buffer_;
    Lets lets_;
    bool are_known_ = true;
    int64_t loads_ = 0;
    std::set<int64_t> ahead_;
};

/// Whether statements store elements; Halide's loops over prefetches do not.
class StoresElements : public IRVisitor {
public:
    static bool in(const Stmt& body) {
        StoresElements visitor;
        body.accept(&visitor);
        return visitor.found_;
    }

private:
    using IRVisitor::visit;

    void visit(const Store*) override { found_ = true; }

    bool found_ = false;
};

/// The iterations of several loops: their number, and which of them this is.
struct Iterations {
    Expr count = 1, current = 0;

    void add(const Expr& iteration, const Expr& iterations) {
        current = simplify(current + iteration * count);
        count = simplify(count * iterations);
    }
};

/// The lines that one of several tiles prefetches in each step: those of some streams or, of each of these, a part of
/// its run. Shares are equal.
struct Share {
    int64_t streams, most_lines;
    Expr lines, parts;  // lines of a run, at most `most_lines`, and into how many such parts a run is divided

    Share(const Lines& all, const Expr& tiles, bool may_divide_runs) {
        const auto count = as_const_int(tiles);
        if (!count && may_divide_runs) {
            choose_at_run_time(all, tiles);
            return;
        }
        const int64_t wanted = ceil_div(all.run * all.streams, count.value_or(1));
        streams = ceil_div(wanted, all.run);
        most_lines = may_divide_runs ? std::min(wanted, all.run) : all.run;
        while (all.streams % streams != 0) ++streams;
        while (all.run % most_lines != 0) ++most_lines;
        set_lines(all.run, most_lines);
    }

private:
    void set_lines(int64_t run, int64_t lines) {
        this->lines = static_cast<int>(lines);
        parts = static_cast<int>(run / lines);
    }

    /// All tiles ask for parts of all streams. A single tile would need requests for all lines, which would be a burden
    /// to the usual case of several tiles: each has requests for half of a run, if that is even.
    void choose_at_run_time(const Lines& all, const Expr& tiles) {
        streams = all.streams;
        most_lines = all.run % 2 == 0 ? all.run / 2 : all.run;
        set_lines(all.run, most_lines);
        for (int64_t fewer = most_lines - 1; fewer > 0; --fewer) {
            if (all.run % fewer != 0) continue;
            const Expr are_enough = tiles >= static_cast<int>(all.run / fewer);
            lines = select(are_enough, static_cast<int>(fewer), lines);
            parts = select(are_enough, static_cast<int>(all.run / fewer), parts);
        }
    }
};

class SpreadPrefetches : public IRMutator {
    using IRMutator::visit;

    std::vector<const For*> loops_;  // around the current statement, the outermost first
    Lets lets_;

    /// Halide's own loops over prefetches within an iteration are left out: one call stands for all.
    Stmt visit(const For* op) override {
        if (starts_with(op->name, "prefetch_") && !StoresElements::in(op->body))
            return mutate(substitute(op->name, op->min, op->body));
        loops_.push_back(op);
        const Stmt result = IRMutator::visit(op);
        loops_.pop_back();
        return result;
    }

    Stmt visit(const LetStmt* op) override {
        lets_.emplace_back(op->name, op->value);
        const Stmt result = IRMutator::visit(op);
        lets_.pop_back();
        return result;
    }

    /// A prefetch that is not understood is dropped: it is a hint, and may cost more than it gains.
    Stmt visit(const Evaluate* op) override {
        const Call* call = op->value.as<Call>();
        if (!call || !call->is_intrinsic(Call::prefetch)) return op;
        const Stmt lines = loops_.empty() ? Stmt() : lines_of_iteration(call);
        return lines.defined() ? lines : Evaluate::make(0);
    }

    /// The prefetches of this iteration's share of the lines that the loops of a stage, such as a tile's sums, read.
    Stmt lines_of_iteration(const Call* call) const {
        const Variable* buffer = call->args[0].as<Variable>();
        if (!buffer) return {};
        const int64_t elements_of_line = line_bytes / call->type.bytes();
        const Expr element = simplify(without_lets(call->args[1], lets_));
        auto lines = LinesFinder::find(element, buffer->name, elements_of_line, lets_, loops_.back()->body);
        if (!lines) lines = lines_of_step(element, elements_of_line);
        if (!lines) return {};

        Expr first = element;
        Iterations steps;
        bool are_counted = true;
        size_t outer = loops_.size();
        while (outer > 0 && stage(loops_[outer - 1]) == stage(loops_.back())) {
            const For* loop = loops_[--outer];
            const auto extent = known_extent(loop);
            are_counted &= extent.has_value();
            steps.add(Variable::make(Int(32), loop->name) - loop->min, static_cast<int>(extent.value_or(1)));
            first = substitute(loop->name, loop->min, first);
        }
        const Iterations tiles = repetitions(outer, first);
        // Versions of a kernel for one or two rows are bound by memory anyway, and have one tile.
        constexpr int64_t few_uses = 2;
        if (!as_const_int(tiles.count) && lines->uses.value_or(few_uses + 1) <= few_uses) return {};
        const Share share(*lines, tiles.count, are_counted);
        if (share.streams * share.most_lines > most_at_once) return {};
        const auto groups = static_cast<int>(lines->streams / share.streams),
                   of_line = static_cast<int>(elements_of_line);
        // Further tiles repeat the last share.
        const Expr tile = min(tiles.current, share.parts * groups - 1),
                   stream = groups == 1 ? 0 : tile / share.parts * static_cast<int>(share.streams * lines->stride),
                   part = groups == 1 ? tile : tile % share.parts,
                   of_step = is_const_one(share.parts)
                                 ? element
                                 : first + (part * steps.count + steps.current) * (share.lines * of_line);
        return requests(call, share, of_step + stream, static_cast<int>(lines->stride), of_line);
    }

    /// The prefetches of a share that starts at an element; streams and lines are so many elements apart. Their number
    /// is that of the largest share: those that this one does not need repeat its last one.
    static Stmt requests(const Call* call, const Share& share, const Expr& first, int stream_stride, int of_line) {
        std::vector<Stmt> prefetches;
        for (int stream = 0; stream < share.streams; ++stream) {
            for (int line = 0; line < share.most_lines; ++line) {
                const Expr of_share = min(line, share.lines - 1) * of_line;
                prefetches.push_back(prefetch(call, simplify(first + stream * stream_stride + of_share)));
            }
        }
        return Block::make(prefetches);
    }

    /// A loop's extent, if it is a positive constant.
    static std::optional<int64_t> known_extent(const For* loop) {
        const auto extent = as_const_int(simplify(loop->extent));
        return extent && *extent > 0 ? std::optional<int64_t>(*extent) : std::nullopt;
    }

    /// The lines between an element and that of the innermost loop's next iteration, of which a loop's reads are some
    /// if its tile begins anywhere in a block of weights.
    std::optional<Lines> lines_of_step(const Expr& element, int64_t elements_of_line) const {
        const std::string& loop = loops_.back()->name;
        const Expr next = substitute(loop, Variable::make(Int(32), loop) + 1, element);
        const auto step = as_const_int(simplify(next - element));
        if (!step || *step < elements_of_line) return {};
        return Lines{1, 0, *step / elements_of_line, {}};
    }

    /// The iterations of the loops around a stage's, from loops_[outer - 1] outwards, that prefetch the same lines.
    Iterations repetitions(size_t outer, const Expr& first) const {
        Iterations iterations;
        while (outer > 0) {
            const For* loop = loops_[--outer];
            const Expr variable = Variable::make(Int(32), loop->name);
            const Expr extent = simplify(loop->extent);
            const bool is_empty = as_const_int(extent).value_or(1) <= 0;
            if (!expr_uses_var(first, loop->name) && loop->for_type != ForType::Parallel && !is_empty) {
                iterations.add(variable - loop->min, extent);
                continue;
            }
            // Consecutive iterations of loops that were fused. A thread takes tasks in this order.
            const auto quotient = static_cast<int>(Quotient::of(loop->name, first));
            if (quotient > 0) iterations.add(variable % quotient, quotient);
            break;
        }
        return iterations;
    }

    /// What the names of a stage's loops begin with: `sum.s1.` for `sum.s1.k$x`.
    static std::string stage(const For* loop) {
        const size_t number = loop->name.find(".s");
        return loop->name.substr(0, loop->name.find('.', number + 1) + 1);
    }

    /// Into all caches: a panel stays in the second level until it is used.
    static Stmt prefetch(const Call* call, const Expr& element) {
        return prefetched(call->args[0], cast(Int(64), element) * call->type.bytes());
    }
};

}  // namespace

void spread_prefetches(Pipeline& pipeline) { pipeline.add_custom_lowering_pass(new SpreadPrefetches()); }

}  // namespace onnx2halide
