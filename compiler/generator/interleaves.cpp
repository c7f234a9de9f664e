#include "compiler/generator/interleaves.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

constexpr int register_bits = 256, half_bits = 128;

/// A register's worth of an interleave in progress.
struct Part {
    Expr vector;
    std::vector<int> elements;  // by lane: the place in the result

    int first() const { return elements[0]; }
    int lanes() const { return static_cast<int>(elements.size()); }
};

/// Builds the interleave of several vectors as shuffles of two registers each.
class Interleave {
public:
    static Expr of(const std::vector<Expr>& vectors, int lanes) {
        Interleave interleave;
        std::vector<Expr> names, results;
        for (const Expr& vector : vectors) names.push_back(interleave.named(vector));
        for (int lane = 0; lane < vectors[0].type().lanes(); lane += lanes) {
            for (const Part& part : interleave.interleaved(registers(names, lane, lanes)))
                results.push_back(part.vector);
        }
        Expr result = Shuffle::make_concat(results);
        for (auto let = interleave.lets_.rbegin(); let != interleave.lets_.rend(); ++let)
            result = Let::make(let->first, let->second, result);
        return result;
    }

private:
    /// A register of each vector, from this lane.
    static std::vector<Part> registers(const std::vector<Expr>& vectors, int first, int lanes) {
        const int count = static_cast<int>(vectors.size());
        std::vector<Part> parts(count);
        for (int i = 0; i < count; ++i) {
            const bool is_whole = vectors[i].type().lanes() == lanes;
            parts[i].vector = is_whole ? vectors[i] : Shuffle::make_slice(vectors[i], first, 1, lanes);
            for (int lane = 0; lane < lanes; ++lane) parts[i].elements.push_back(lane * count + i);
        }
        return parts;
    }

    std::vector<Part> interleaved(std::vector<Part> parts) {
        const int half = half_bits / parts[0].vector.type().bits();
        // Vectors that are furthest apart first: each step puts the elements of the earlier ones twice as far apart.
        // Then each half of a register holds neighbours.
        for (int apart = std::min(static_cast<int>(parts.size()), half) / 2; apart > 0; apart /= 2)
            combine(parts, apart, unpacked_lanes(parts[0].lanes(), half));
        if (parts[0].lanes() > half) combine(parts, half, permuted_lanes(half));
        std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.first() < b.first(); });
        return parts;
    }

    /// The lanes of two results, of two registers.
    using Lanes = std::pair<std::vector<int>, std::vector<int>>;

    /// In each half, the lower and the upper lanes of both registers by turns.
    static Lanes unpacked_lanes(int of_register, int half) {
        Lanes lanes;
        for (int begin = 0; begin < of_register; begin += half) {
            for (int i = begin; i < begin + half / 2; ++i) {
                lanes.first.insert(lanes.first.end(), {i, i + of_register});
                lanes.second.insert(lanes.second.end(), {i + half / 2, i + half / 2 + of_register});
            }
        }
        return lanes;
    }

    /// The lower halves of both registers, and the upper halves.
    static Lanes permuted_lanes(int half) {
        Lanes lanes;
        for (int begin : {0, 2 * half}) {
            for (int i = begin; i < begin + half; ++i) {
                lanes.first.push_back(i);
                lanes.second.push_back(i + half);
            }
        }
        return lanes;
    }

    /// Replaces each two registers whose first elements are so far apart by two shuffles of them.
    void combine(std::vector<Part>& parts, int apart, const Lanes& lanes) {
        std::vector<Part> combined;
        for (const Part& a : parts) {
            for (const Part& b : parts) {
                if (b.first() - a.first() != apart || a.first() / apart % 2 != 0) continue;
                combined.push_back(shuffled(a, b, lanes.first));
                combined.push_back(shuffled(a, b, lanes.second));
            }
        }
        parts = std::move(combined);
    }

    Part shuffled(const Part& a, const Part& b, const std::vector<int>& lanes) {
        Part result = {named(Shuffle::make({a.vector, b.vector}, lanes)), {}};
        for (int lane : lanes)
            result.elements.push_back(lane < a.lanes() ? a.elements[lane] : b.elements[lane - a.lanes()]);
        return result;
    }

    /// A variable for an expression that several others use. No buffer has a name with a dot.
    Expr named(const Expr& e) {
        lets_.emplace_back(unique_name("interleave.part"), e);
        return Variable::make(e.type(), lets_.back().first);
    }

    std::vector<std::pair<std::string, Expr>> lets_;
};

class Interleaves : public IRMutator {
    using IRMutator::visit;

    Expr visit(const Shuffle* op) override {
        const size_t count = op->vectors.size();
        const Type type = op->vectors[0].type();
        const int bits = type.bits() * type.lanes();
        const bool fits = op->is_interleave() && (count == 2 || count == 4 || count == 8) && type.bits() >= 8 &&
                          (bits == half_bits || bits % register_bits == 0);
        if (!fits) return IRMutator::visit(op);
        std::vector<Expr> vectors;
        for (const Expr& vector : op->vectors) vectors.push_back(mutate(vector));
        return Interleave::of(vectors, std::min(bits, register_bits) / type.bits());
    }
};

}  // namespace

void interleave_in_halves(Pipeline& pipeline, const Target& target) {
    if (target.has_feature(Target::AVX2) && !target.has_feature(Target::AVX512_Skylake))
        pipeline.add_custom_lowering_pass(new Interleaves);
}

}  // namespace onnx2halide
