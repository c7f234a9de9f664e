#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Concat: an undefined Func with one update per input, so that each element is copied once, whatever the number of
/// inputs. Inputs in place are not copied.
class Concat : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape = in(0).shape;
        const size_t axis = this->axis();
        shape[axis] = 0;
        for (size_t i = 0; i < node_.inputs.size(); ++i) {
            check_fits(i, axis);
            shape[axis] += in(i).shape[axis];
        }
        return {TensorType(in(0).element, std::move(shape))};
    }

    std::vector<size_t> moved() const override {
        std::vector<size_t> all(node_.inputs.size());
        std::iota(all.begin(), all.end(), 0);
        return all;
    }

    std::vector<std::optional<KnownElements>> known() const override {
        KnownElements all;
        std::vector<std::vector<int64_t>> shapes;
        for (size_t i = 0; i < node_.inputs.size(); ++i) {
            const auto shape = numbers(in(i).shape);
            const KnownElements* own = known_input(i);
            if (!own || !shape) return {};
            shapes.push_back(*shape);
            all.integers.insert(all.integers.end(), own->integers.begin(), own->integers.end());
            all.reals.insert(all.reals.end(), own->reals.begin(), own->reals.end());
        }
        const size_t axis = this->axis();
        return {picked(all, out(0).shape, [&](std::vector<int64_t> at) {
            int64_t skipped = 0;
            size_t i = 0;
            for (; at[axis] >= shapes[i][axis]; ++i) {
                at[axis] -= shapes[i][axis];
                skipped += *product(in(i).shape).constant();
            }
            return skipped + linear_index(at, shapes[i]);
        })};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t i = 1; i < node_.inputs.size(); ++i) {
            for (size_t k = 0; k < in(0).rank(); ++k) {
                if (k != axis()) check_extent(checks, i, k, in(0).shape[k]);
            }
        }
        return checks;
    }

    bool reads_any_layout(size_t, const Target&) const override { return true; }

    std::optional<Span> span_in_output(size_t i) const override {
        const TensorType &whole = out(0), &own = in(i);
        Dim start = 0;
        for (size_t before = 0; before < i; ++before) start += in(before).shape[axis()];
        const auto run = own.extents()[0].constant(),
                   pitch = output(0)->part ? output(0)->part->pitch : whole.extents()[0].constant();
        if (own.layout != whole.layout || !run || !pitch) return {};
        const auto along = std::find(whole.layout.begin(), whole.layout.end(), static_cast<int>(axis()));
        const bool is_last = std::all_of(along + 1, whole.layout.end(), [&](int k) { return whole.shape[k].is(1); });
        if (along == whole.layout.begin()) return Span{start, is_last ? *run : *pitch};
        if (!is_last) return {};
        Dim stride = *pitch;  // of the axis
        for (auto inner = whole.layout.begin() + 1; inner != along; ++inner) stride *= whole.shape[*inner];
        return Span{start * stride, *pitch};
    }

    std::vector<int64_t> inputs_in_place() const override { return node_.integers("in_place", {}); }

    bool is_elided() const override { return pieces().empty(); }

    bool is_view() const override { return node_.inputs.size() == 1 && in(0).layout == out(0).layout; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        source.store(output(0), at, fmt::format("undef<{}>()", info(out(0).element).halide_name));
        for (const Piece& piece : pieces()) {
            Coordinates from = at, to = at;
            from[axis()] = piece.extent.is(1) ? "0" : KernelSource::axis(source.rdom("r", {piece.extent}), 0);
            to[axis()] = piece.extent.is(1) ? source.dim(piece.offset) : shifted(source, from[axis()], piece.offset);
            source.store(output(0), to, source.element(piece.value, from));
            source.keep(output(0), piece.role, from[axis()]);
        }
    }

    void schedule(KernelSource& source) const override {
        const Loops last = source.output_loops(0);
        const bool has_epilogue = last.func != source.name(output(0));
        const Loops nontrivial = nontrivial_loops(last);
        const bool at_root = !has_epilogue || !compute_within(source, nontrivial);
        for (const Piece& piece : pieces()) schedule_piece(source, piece, at_root);
        if (!at_root) {
            vectorise(source, nontrivial);
            parallelise(source, nontrivial, 2);  // the second loop computes the concatenation
        }
        for (size_t i = has_epilogue && at_root ? 0 : 1; i < source.output_count(); ++i)
            schedule_loops(source, source.output_loops(i));
    }

private:
    /// The range of the axis that one input fills.
    struct Piece {
        const Value* value;
        Dim offset, extent;
        size_t number;     // index of its update
        std::string role;  // under which its coordinate along the axis is stored
    };

    size_t axis() const { return normalised_axis(node_.integer("axis", 1), in(0).rank()); }

    void check_fits(size_t i, size_t axis) const {
        check_type_of_first(i);
        const std::vector<Dim>&shape = in(i).shape, &first = in(0).shape;
        bool fits = shape.size() == first.size();
        for (size_t k = 0; fits && k < shape.size(); ++k)
            fits = k == axis || prove_equal(shape[k], first[k]) != Proof::no;
        if (!fits)
            throw CompileError("input {} has shape {}, expected {} except along axis {}", i, shape_text(shape),
                               shape_text(first), axis);
    }

    std::vector<Piece> pieces() const {
        std::vector<Piece> pieces;
        const std::vector<int64_t> in_place = inputs_in_place();
        Dim offset;
        for (size_t i = 0; i < node_.inputs.size(); ++i) {
            const Dim& extent = in(i).shape[axis()];
            const size_t number = pieces.size();
            const bool is_there = std::find(in_place.begin(), in_place.end(), i) != in_place.end();
            if (!extent.is(0) && !is_there)
                pieces.push_back({input(i), offset, extent, number, fmt::format("piece {}", number)});
            offset += extent;
        }
        return pieces;
    }

    /// The loops that copy a piece: those of the output, except that its RDom replaces the one along the axis.
    Loops piece_loops(KernelSource& source, const Piece& piece) const {
        TensorType type = out(0);
        type.shape[axis()] = piece.extent;
        Coordinates at = source.vars(type.rank());
        at[axis()] = source.kept(output(0), piece.role);
        return nontrivial_loops(
            loops_over(fmt::format("{}.update({})", source.name(output(0)), piece.number), type, at));
    }

    /// The number of a piece's loops inside of the axis, whose elements are contiguous in both the piece and the
    /// output.
    size_t loops_inside(const Piece& piece) const {
        const TensorType& type = out(0);
        if (piece.value->checked_type().layout != type.layout) return 1;
        const auto along = std::find(type.layout.begin(), type.layout.end(), static_cast<int>(axis()));
        return std::count_if(type.layout.begin(), along, [&](int i) { return !type.shape[i].is(1); });
    }

    void schedule_piece(KernelSource& source, const Piece& piece, bool at_root) const {
        Loops loops = piece_loops(source, piece);
        if (source.target().is_gpu()) return schedule_loops(source, loops);
        if (loops.vars.size() > 1)
            source.schedule(fmt::format("{}.reorder({});", loops.func, fmt::join(loops.vars, ", ")));
        // Within an iteration of an epilogue's loop, the axis is the only loop.
        if (!at_root && piece.extent.is(1)) return;
        loops = fuse_innermost(source, loops, loops_inside(piece));
        vectorise(source, loops, true);
        if (at_root) parallelise(source, loops);
    }

    /// Computes the concatenation within each iteration of an epilogue's second loop, if the axis is innermost.
    /// Otherwise an iteration would need parts of all pieces: schedules it at root, and returns false.
    bool compute_within(KernelSource& source, const Loops& epilogue) const {
        const std::string own = source.name(output(0));
        const std::string along = source.vars(out(0).rank())[axis()];
        const bool within = epilogue.vars.size() > 1 && epilogue.vars[0] == along && !source.target().is_gpu();
        source.schedule(within ? fmt::format("{}.compute_at({}, {});", own, epilogue.func, epilogue.vars[1])
                               : own + ".compute_root();");
        return within;
    }
};

}  // namespace

std::vector<Operator> concat_operators() { return {{"Concat", 1, make<Concat>}}; }

}  // namespace onnx2halide
