#include <fmt/format.h>

#include "ops/attention/attention.h"
#include "ops/axis_map.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Appends new keys or values to a cache [batch, heads, places, size], after those that each batch row has: input 2
/// holds their numbers. The result has as many places as the cache, or as input 3 if that is more, padded with zeros.
class AppendStates : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        const TensorType &past = in(0), &added = in(1);
        bool fits = past.rank() == 4 && added.rank() == 4 && past.element == added.element;
        for (const size_t axis : {0, 1, 3})
            fits = fits && prove_equal(past.shape[axis], added.shape[axis]) != Proof::no;
        if (!fits) throw CompileError("past is {}, which does not fit {}", past.text(), added.text());
        if (in(2).rank() != 1 || prove_equal(in(2).shape[0], past.shape[0]) == Proof::no)
            throw CompileError("lengths have shape {}, expected {}", shape_text(in(2).shape), past.shape[0].text());
        TensorType type(past.element, past.shape);
        type.shape[2] = max(past.shape[2], single_dim(3));
        return {type};
    }

    bool reads_any_layout(size_t, const Target&) const override { return true; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(4);
        const std::string zero = fmt::format("cast<{}>(0)", info(out(0).element).halide_name);
        const std::string length = fmt::format("cast<int>({})", source.element(input(2), {at[0]}));
        const auto along = [&](const char* role, const Dim& extent) {
            const std::string place = KernelSource::axis(source.rdom(role, {extent}), 0);
            source.keep(output(0), role, place);
            return place;
        };
        source.line("// Each place is written once, but for those that are appended.");
        source.store(output(0), at, fmt::format("undef<{}>()", info(out(0).element).halide_name));

        const std::string place = along("place", in(0).shape[2]);
        const Coordinates past = {at[0], at[1], place, at[3]};
        source.store(output(0), past,
                     fmt::format("select({} < {}, {}, {})", place, length, source.element(input(0), past), zero));

        if (!new_places().is(0)) {
            const std::string free = along("free", new_places());
            source.store(output(0), {at[0], at[1], fmt::format("{} + {}", source.dim(in(0).shape[2]), free), at[3]},
                         zero);
        }

        const std::string step = along("step", in(1).shape[2]);
        const std::string next = fmt::format("clamp({} + {}, 0, {})", length, step, source.dim(out(0).shape[2] - 1));
        source.store(output(0), {at[0], at[1], next, at[3]}, source.element(input(1), {at[0], at[1], step, at[3]}));
    }

    void schedule(KernelSource& source) const override {
        const std::string own = source.name(output(0));
        if (source.output_loops(0).func != own) source.schedule(own + ".compute_root();");
        int update = 0;
        schedule_update(source, update++, "place", in(0).shape[2]);
        if (!new_places().is(0)) schedule_update(source, update++, "free", new_places());
        schedule_update(source, update, "step", in(1).shape[2]);
        for (size_t i = source.output_loops(0).func == own; i < source.output_count(); ++i)
            schedule_loops(source, source.output_loops(i));
    }

private:
    /// The number of places that the result has and the cache has not.
    Dim new_places() const { return out(0).shape[2] - in(0).shape[2]; }

    void schedule_update(KernelSource& source, int number, const std::string& role, const Dim& places) const {
        TensorType type = out(0);
        type.shape[2] = places;
        Coordinates at = source.vars(4);
        at[2] = source.kept(output(0), role);
        Loops loops = loops_over(fmt::format("{}.update({})", source.name(output(0)), number), type, at);
        if (source.target().is_gpu()) {
            // Steps, whose places are computed, stay in order in each thread.
            if (role == "step") {
                loops.extents.erase(loops.extents.begin() + 1);
                loops.vars.erase(loops.vars.begin() + 1);
            }
            return schedule_loops(source, loops);
        }
        loops = nontrivial_loops(loops);
        vectorise(source, loops, true);
        parallelise(source, loops);
    }
};

/// The first places of a cache [batch, heads, places, size]: as many as the number at input 1, but at least one, which
/// the attention to them relies on.
class FirstStates : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        TensorType type(in(0).element, in(0).shape);
        type.shape.at(2) = min(in(0).shape[2], max(Dim(1), single_dim(1)));
        return {type};
    }

    bool is_view() const override { return prove_equal(in(0).shape[2], out(0).shape[2]) == Proof::yes; }
    bool is_view_if_whole() const override { return true; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(4);
        source.store(output(0), at, source.element(input(0), at));
    }
};

}  // namespace

std::vector<Operator> append_states_operators() {
    return {{"AppendStates", 1, make<AppendStates>, own_domain}, {"FirstStates", 1, make<FirstStates>, own_domain}};
}

}  // namespace onnx2halide
