#include "compiler/generator/partial_stores.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

class PartialStores : public IRMutator {
    using IRMutator::visit;

    /// Whether the lanes of a ramp are adjacent numbers.
    static bool is_flat(const Ramp* ramp) { return ramp->base.type().is_scalar() && is_const_one(ramp->stride); }

    /// The number of lanes at which a predicate holds, if these are the first ones: 2 for ramp(32, 1, 8) < x8(34), and
    /// 8 for an interleave of four of it.
    std::optional<int> first_lanes(const Expr& predicate) const {
        if (const Let* let = predicate.as<Let>()) return first_lanes(substitute(let->name, let->value, let->body));
        if (const Variable* variable = predicate.as<Variable>()) {
            const auto known = predicates_.find(variable->name);
            return known == predicates_.end() ? std::nullopt : known->second;
        }
        if (const Shuffle* shuffle = predicate.as<Shuffle>()) return first_of_interleaved(shuffle);
        const LE* le = predicate.as<LE>();
        const LT* lt = predicate.as<LT>();
        if (!le && !lt) return std::nullopt;
        const Ramp* ramp = (le ? le->a : lt->a).as<Ramp>();
        const Broadcast* limit = (le ? le->b : lt->b).as<Broadcast>();
        if (!ramp || !limit || !is_flat(ramp) || limit->value.type().is_vector()) return std::nullopt;
        const auto lanes = as_const_int(simplify(limit->value - ramp->base));
        if (!lanes) return std::nullopt;
        return static_cast<int>(std::clamp<int64_t>(*lanes + (le ? 1 : 0), 0, predicate.type().lanes()));
    }

    std::optional<int> first_of_interleaved(const Shuffle* op) const {
        const bool is_repeated = std::all_of(op->vectors.begin(), op->vectors.end(),
                                             [&](const Expr& vector) { return equal(vector, op->vectors[0]); });
        if (!op->is_interleave() || !is_repeated) return std::nullopt;
        const std::optional<int> lanes = first_lanes(op->vectors[0]);
        return lanes ? std::optional(*lanes * static_cast<int>(op->vectors.size())) : std::nullopt;
    }

    Stmt visit(const LetStmt* op) override {
        if (op->value.type().is_bool() && op->value.type().is_vector()) predicates_[op->name] = first_lanes(op->value);
        return IRMutator::visit(op);
    }

    Stmt visit(const Store* op) override {
        const Ramp* places = op->index.as<Ramp>();
        if (is_const_one(op->predicate) || !places || !is_flat(places)) return op;
        const std::optional<int> count = first_lanes(op->predicate);
        if (!count) return op;
        if (*count == op->value.type().lanes()) return store(op, op->value, places->base, 0);
        const std::string name = unique_name("store.vector");
        const Expr vector = Variable::make(op->value.type(), name);
        std::vector<Stmt> parts;
        int done = 0;
        for (int lanes = op->value.type().lanes() / 2; lanes > 0; lanes /= 2) {
            for (; *count - done >= lanes; done += lanes)
                parts.push_back(store(op, Shuffle::make_slice(vector, done, 1, lanes), places->base, done));
        }
        return parts.empty() ? Evaluate::make(0) : LetStmt::make(name, op->value, Block::make(parts));
    }

    /// Stores all of a part of a vector, which begins at this lane.
    static Stmt store(const Store* op, const Expr& part, const Expr& base, int lane) {
        const int lanes = part.type().lanes();
        const Expr first = simplify(base + lane);
        const Expr index = lanes == 1 ? first : Ramp::make(first, make_one(first.type()), lanes);
        return Store::make(op->name, part, index, op->param, const_true(lanes),
                           op->alignment + ModulusRemainder(0, lane));
    }

    std::map<std::string, std::optional<int>> predicates_;  // by the names of the lets around a statement
};

}  // namespace

void split_partial_stores(Pipeline& pipeline, const Target& target) {
    if (!target.features_any_of({Target::AVX512_Skylake, Target::SVE, Target::SVE2}))
        pipeline.add_custom_lowering_pass(new PartialStores);
}

}  // namespace onnx2halide
