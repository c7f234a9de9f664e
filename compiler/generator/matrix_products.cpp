#include "compiler/generator/matrix_products.h"

#include <utility>
#include <vector>

namespace onnx2halide {

using namespace Halide;
using namespace Halide::Internal;

namespace {

/// The statement inside of lets, which are appended to `lets`, the outermost first.
Stmt inside_lets(Stmt statement, Lets& lets) {
    while (const auto* let = statement.as<LetStmt>()) {
        lets.emplace_back(let->name, let->value);
        statement = let->body;
    }
    return statement;
}

/// A loop of a product, whose iterations are counted from 0.
struct Axis {
    std::string name;
    Expr first;
    int extent = 0;

    bool is_used(const Expr& index) const { return expr_uses_var(index, name); }
    /// An index at an iteration.
    Expr at(const Expr& index, int iteration) const { return substitute(name, simplify(first + iteration), index); }
    /// The distance from one iteration to the next; undefined if it is not always the same.
    Expr stride(const Expr& index) const {
        const Expr start = at(index, 0), step = simplify(at(index, 1) - start);
        for (int i = 2; i < extent; ++i) {
            if (!can_prove(at(index, i) - start == step * i)) return {};
        }
        return step;
    }
};

Expr pointer_to(const Rows& rows) { return Variable::make(Handle(), rows.buffer); }
Expr in_bytes(const Rows& rows, const Expr& elements) { return elements * rows.element.bytes(); }

/// Reads a product from three nested loops.
class ProductReader {
public:
    static std::optional<Product> read(const For* outermost) { return ProductReader().read_loops(outermost); }

private:
    // Where there are many lets, as many substitutions would take long: only in the indices of what is a product.
    Lets lets_;
    Axis row_, column_, term_;
    Expr store_index_;

    std::optional<Product> read_loops(const For* outermost) {
        std::vector<Axis> axes;
        Stmt statement = outermost;
        for (int depth = 0; depth < 3; ++depth) {
            const auto* loop = statement.as<For>();
            const auto extent = loop ? as_const_int(loop->extent) : std::nullopt;
            if (!extent || loop->for_type != ForType::Serial || *extent < 1 || *extent > row_bytes) return {};
            axes.push_back({loop->name, loop->min, static_cast<int>(*extent)});
            statement = inside_lets(loop->body, lets_);
        }
        const auto* store = statement.as<Store>();
        return store && is_const_one(store->predicate) && store->value.type() == Int(32) ? read_sum(*store, axes)
                                                                                         : std::nullopt;
    }

    /// Tells rows, columns and terms apart by the sums' index.
    bool name_axes(const std::vector<Axis>& axes) {
        for (const Axis& axis : axes) {
            Axis& role = !axis.is_used(store_index_) ? term_ : is_one(axis.stride(store_index_)) ? column_ : row_;
            role = axis;
        }
        return !term_.name.empty() && !column_.name.empty() && !row_.name.empty();
    }

    std::optional<Product> read_sum(const Store& store, const std::vector<Axis>& axes) {
        const auto* sum = store.value.as<Add>();
        if (!sum) return {};
        const bool is_first = is_load_of(sum->a, store.name);
        const auto* before = (is_first ? sum->a : sum->b).as<Load>();
        const auto* factors = (is_first ? sum->b : sum->a).as<Mul>();
        const Load *left = factors ? byte(factors->a) : nullptr, *right = factors ? byte(factors->b) : nullptr;
        if (!before || before->name != store.name || !left || !right) return {};
        store_index_ = without_lets(store.index, lets_);
        Expr left_index = without_lets(left->index, lets_), right_index = without_lets(right->index, lets_);
        if (!name_axes(axes) || !equal(without_lets(before->index, lets_), store_index_)) return {};
        if (column_.is_used(left_index)) std::swap(left, right), std::swap(left_index, right_index);
        if (column_.is_used(left_index) || row_.is_used(right_index)) return {};
        if (row_.extent > most_rows || column_.extent > most_columns || term_.extent % quad != 0) return {};
        const Product product{row_.extent,
                              column_.extent,
                              term_.extent,
                              rows(store.name, Int(32), store_index_, row_.stride(store_index_)),
                              rows(left->name, left->type, left_index, row_.stride(left_index)),
                              rows(right->name, right->type, right_index, pitch_of_quads(right_index))};
        const bool are_rows = is_one(term_.stride(left_index)) && product.sums.are_known() &&
                              product.left.are_known() && product.right.are_known();
        return are_rows ? std::optional(product) : std::nullopt;
    }

    static bool is_load_of(const Expr& e, const std::string& buffer) {
        const auto* load = e.as<Load>();
        return load && load->name == buffer;
    }

    /// The load of a byte that is widened; null if it is something else.
    static const Load* byte(const Expr& e) {
        const auto* widened = e.as<Cast>();
        const auto* load = widened ? widened->value.as<Load>() : nullptr;
        const bool is_byte = load && !load->type.is_bool() && load->type.is_int_or_uint() && load->type.bits() == 8;
        return is_byte && is_const_one(load->predicate) ? load : nullptr;
    }

    Rows rows(const std::string& buffer, const Type& element, const Expr& index, const Expr& pitch) const {
        const Expr start = row_.at(column_.at(term_.at(index, 0), 0), 0);
        return {buffer, element, simplify(start), pitch};
    }

    /// The distance between quads of terms in the right operand; undefined if quads of columns are not adjacent.
    Expr pitch_of_quads(const Expr& index) const {
        const Expr between_columns = column_.stride(index), first = term_.at(index, 0);
        if (!between_columns.defined() || !can_prove(between_columns == quad)) return {};
        const Expr pitch = term_.extent > quad ? simplify(term_.at(index, quad) - first) : Expr(row_bytes);
        for (int term = 0; term < term_.extent; ++term) {
            if (!can_prove(term_.at(index, term) - first == pitch * (term / quad) + term % quad)) return {};
        }
        return pitch;
    }
};

}  // namespace

bool is_one(const Expr& e) { return e.defined() && is_const_one(e); }

Expr Rows::loaded(const Type& to, int rows, int bytes) const {
    return Call::make(to, "tile_load", {rows, bytes, pointer_to(*this), in_bytes(*this, start), in_bytes(*this, pitch)},
                      Call::Intrinsic);
}

Stmt Rows::stored(const Expr& value, int rows, int bytes) const {
    return Evaluate::make(Call::make(
        Int(32), "tile_store", {rows, bytes, pointer_to(*this), in_bytes(*this, start), in_bytes(*this, pitch), value},
        Call::Intrinsic));
}

Stmt Rows::prefetched() const {
    return onnx2halide::prefetched(pointer_to(*this), cast(Int(64), in_bytes(*this, start)));
}

std::optional<Product> read_product(const For* outermost) { return ProductReader::read(outermost); }

}  // namespace onnx2halide
