#include "compiler/generator/matrix_tiles.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

// A register has so many rows of so many bytes: terms of one row of the left operand, quads of the right one's columns,
// or sums.
constexpr int most_rows = 16, row_bytes = 64;
constexpr int quad = 4, sum_bytes = 4, most_columns = row_bytes / sum_bytes;

const Type register_of_bytes = Int(8, most_rows*row_bytes), register_of_sums = Int(32, most_rows*most_columns);

using Lets = std::vector<std::pair<std::string, Expr>>;

/// The statement inside of lets, which are appended to `lets`, the outermost first.
Stmt inside_lets(Stmt statement, Lets& lets) {
    while (const auto* let = statement.as<LetStmt>()) {
        lets.emplace_back(let->name, let->value);
        statement = let->body;
    }
    return statement;
}

Expr without_lets(Expr value, const Lets& lets) {
    for (auto let = lets.rbegin(); let != lets.rend(); ++let) value = substitute(let->first, let->second, value);
    return value;
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

bool is_one(const Expr& e) { return e.defined() && is_const_one(e); }

/// The rows of a matrix in a buffer: the index of the first one's first element, and the distance between rows.
struct Rows {
    std::string buffer;
    Type element;
    Expr start, pitch;

    bool are_known() const { return pitch.defined(); }
    /// The instruction that loads so many rows, of so many bytes, into a register of this type.
    Expr loaded(const Type& to, int rows, int bytes) const {
        return Call::make(to, "tile_load", {rows, bytes, pointer(), in_bytes(start), in_bytes(pitch)}, Call::Intrinsic);
    }
    Stmt stored(const Expr& value, int rows, int bytes) const {
        return Evaluate::make(Call::make(
            Int(32), "tile_store", {rows, bytes, pointer(), in_bytes(start), in_bytes(pitch), value}, Call::Intrinsic));
    }

    /// The first one, which LLVM takes for a change of memory: tiles that are loaded before and after it, and are
    /// equal, it would load once and copy through the stack.
    Stmt prefetched() const {
        const Expr address = reinterpret(UInt(64), pointer()) + cast<uint64_t>(cast<int64_t>(in_bytes(start)));
        return Evaluate::make(
            Call::make(Int(32), "llvm.prefetch.p0", {reinterpret(Handle(), address), 0, 3, 1}, Call::Extern));
    }

private:
    Expr pointer() const { return Variable::make(Handle(), buffer); }
    Expr in_bytes(const Expr& elements) const { return elements * element.bytes(); }
};

/// What is added to a tile of sums.
struct Product {
    int rows = 0, columns = 0, terms = 0;
    Rows sums, left, right;  // the right operand's rows are quads of all columns
};

/// Reads a product from three nested loops.
class ProductReader {
public:
    static std::optional<Product> read(const For* outermost) { return ProductReader().read_loops(outermost); }

private:
    Axis row_, column_, term_;
    Expr store_index_;

    std::optional<Product> read_loops(const For* outermost) {
        std::vector<Axis> axes;
        Lets lets;
        Stmt statement = outermost;
        for (int depth = 0; depth < 3; ++depth) {
            const auto* loop = statement.as<For>();
            const auto extent = loop ? as_const_int(loop->extent) : std::nullopt;
            if (!extent || loop->for_type != ForType::Serial || *extent < 1 || *extent > row_bytes) return {};
            axes.push_back({loop->name, loop->min, static_cast<int>(*extent)});
            statement = inside_lets(loop->body, lets);
        }
        const auto* store = statement.as<Store>();
        if (!store || !is_const_one(store->predicate) || store->value.type() != Int(32)) return {};
        store_index_ = without_lets(store->index, lets);
        return name_axes(axes) ? read_sum(*store, without_lets(store->value, lets)) : std::nullopt;
    }

    /// Tells rows, columns and terms apart by the sums' index.
    bool name_axes(const std::vector<Axis>& axes) {
        for (const Axis& axis : axes) {
            Axis& role = !axis.is_used(store_index_) ? term_ : is_one(axis.stride(store_index_)) ? column_ : row_;
            role = axis;
        }
        return !term_.name.empty() && !column_.name.empty() && !row_.name.empty();
    }

    std::optional<Product> read_sum(const Store& store, const Expr& value) const {
        const auto* sum = value.as<Add>();
        const bool is_first = sum && is_sum(sum->a, store.name);
        if (!sum || (!is_first && !is_sum(sum->b, store.name))) return {};
        const auto* factors = (is_first ? sum->b : sum->a).as<Mul>();
        const Load *left = factors ? byte(factors->a) : nullptr, *right = factors ? byte(factors->b) : nullptr;
        if (!left || !right) return {};
        if (column_.is_used(left->index)) std::swap(left, right);
        if (column_.is_used(left->index) || row_.is_used(right->index)) return {};
        if (row_.extent > most_rows || column_.extent > most_columns || term_.extent % quad != 0) return {};
        const Product product{row_.extent,
                              column_.extent,
                              term_.extent,
                              rows(store.name, Int(32), store_index_, row_.stride(store_index_)),
                              rows(left->name, left->type, left->index, row_.stride(left->index)),
                              rows(right->name, right->type, right->index, pitch_of_quads(right->index))};
        const bool are_rows = is_one(term_.stride(left->index)) && product.sums.are_known() &&
                              product.left.are_known() && product.right.are_known();
        return are_rows ? std::optional(product) : std::nullopt;
    }

    bool is_sum(const Expr& e, const std::string& buffer) const {
        const auto* load = e.as<Load>();
        return load && load->name == buffer && equal(load->index, store_index_);
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

/// The statements of a Func's loops without its products.
class WithoutProducts : public IRMutator {
public:
    explicit WithoutProducts(const std::string& func) : func_(func) {}

private:
    using IRMutator::visit;

    const std::string& func_;

    Stmt visit(const For* op) override {
        const auto product = ProductReader::read(op);
        return product && product->sums.buffer == func_ ? Evaluate::make(0) : IRMutator::visit(op);
    }

    /// Of what only the products read, which come later.
    Stmt visit(const Free*) override { return Evaluate::make(0); }
};

/// What is stored in a vector of sums of each row before products are added.
class Start {
public:
    /// From a store, in these loops.
    Start(Expr index, Expr value, const std::vector<std::string>& loops)
        : index_(std::move(index)), value_(std::move(value)), loops_(loops) {}

    /// What a tile starts with, for a register; undefined if it is not the same in each row, or another vector.
    Expr of(const Product& tile) const {
        const auto* place = index_.as<Ramp>();
        if (!place || !is_one(place->stride) || place->lanes != tile.columns || !is_above(place->base, tile.sums))
            return {};
        const int bytes = tile.columns * sum_bytes;
        const auto* number = value_.as<Broadcast>();
        if (number && is_const_zero(number->value)) {
            const Expr rows = Cast::make(Int(16), tile.rows), columns = Cast::make(Int(16), bytes);
            return Call::make(register_of_sums, "tile_zero", {rows, columns}, Call::Intrinsic);
        }
        const auto* load = value_.as<Load>();
        const auto* row = load && is_const_one(load->predicate) ? load->index.as<Ramp>() : nullptr;
        if (!row || !is_one(row->stride) || uses_loops(row->base)) return {};
        // The same row again and again.
        return loaded_sums({load->name, Int(32), row->base, 0}, tile);
    }

    /// Halide loads registers of operands only.
    static Expr loaded_sums(const Rows& from, const Product& tile) {
        return Reinterpret::make(register_of_sums, from.loaded(register_of_bytes, tile.rows, tile.columns * sum_bytes));
    }

private:
    Expr index_, value_;
    std::vector<std::string> loops_;

    bool uses_loops(const Expr& e) const {
        return std::any_of(loops_.begin(), loops_.end(),
                           [&](const std::string& loop) { return expr_uses_var(e, loop); });
    }

    /// Whether a tile's first row is so many whole rows below the place of the first vector, as loops start at 0.
    bool is_above(Expr place, const Rows& sums) const {
        for (const std::string& loop : loops_) place = substitute(loop, 0, place);
        const auto distance = as_const_int(simplify(sums.start - place)), pitch = as_const_int(sums.pitch);
        return distance && pitch && *distance >= 0 && *distance % *pitch == 0;
    }
};

/// Replaces the products that one Func's loops add up.
class SumsMutator : public IRMutator {
public:
    explicit SumsMutator(const std::string& func) : func_(func) {}

    /// The loops with matrix instructions; undefined if they add up no products, or do something else besides.
    Stmt replaced(const Stmt& produce) {
        Stmt all = mutate(produce);
        if (tiles_.empty() || !are_products_) return {};
        bool has_all_starts = true;
        for (size_t i = 0; i < tiles_.size(); ++i) {
            const Product& tile = tiles_[i];
            Expr start = start_of(tile);
            has_all_starts &= start.defined();
            if (!start.defined()) start = Start::loaded_sums(tile.sums, tile);
            all = Block::make({store(i, start), tile.sums.prefetched(), all,
                               tile.sums.stored(sums(i), tile.rows, tile.columns * sum_bytes)});
        }
        // Loading what has just been stored takes long.
        if (!has_all_starts) all = Block::make(WithoutProducts(func_).mutate(produce), all);
        for (size_t i = 0; i < tiles_.size(); ++i)
            all = Allocate::make(name(i), register_of_sums, MemoryType::AMXTile, {1}, const_true(), all);
        return all;
    }

private:
    using IRMutator::visit;

    const std::string& func_;
    Lets lets_;
    std::vector<std::string> loops_;
    std::vector<Start> starts_;
    std::vector<Product> tiles_;  // one for each tile of sums
    bool are_products_ = true;

    Expr start_of(const Product& tile) const {
        for (const Start& start : starts_) {
            if (Expr value = start.of(tile); value.defined()) return value;
        }
        return {};
    }

    std::string name(size_t tile) const { return func_ + ".matrix" + std::to_string(tile); }
    static Expr all_lanes() { return Ramp::make(0, 1, register_of_sums.lanes()); }
    static Expr no_predicate() { return const_true(register_of_sums.lanes()); }
    Expr sums(size_t tile) const {
        return Load::make(register_of_sums, name(tile), all_lanes(), {}, {}, no_predicate(), {});
    }
    Stmt store(size_t tile, const Expr& value) const {
        return Store::make(name(tile), value, all_lanes(), {}, no_predicate(), {});
    }

    Stmt visit(const LetStmt* op) override {
        lets_.emplace_back(op->name, op->value);
        Stmt statement = IRMutator::visit(op);
        lets_.pop_back();
        return statement;
    }

    Stmt visit(const For* op) override {
        if (auto product = ProductReader::read(op); product && product->sums.buffer == func_)
            return multiplied(*product);
        loops_.push_back(op->name);
        Stmt statement = IRMutator::visit(op);
        loops_.pop_back();
        return statement;
    }

    Stmt visit(const Store* op) override {
        are_products_ &= op->name == func_ && is_const_one(op->predicate);
        mutate(op->value);
        starts_.emplace_back(simplify(without_lets(op->index, lets_)), simplify(without_lets(op->value, lets_)),
                             loops_);
        return Evaluate::make(0);
    }

    Expr visit(const Load* op) override {
        are_products_ &= op->name != func_;
        return IRMutator::visit(op);
    }

    Stmt multiplied(Product& product) {
        product.sums.start = simplify(without_lets(product.sums.start, lets_));
        product.sums.pitch = simplify(without_lets(product.sums.pitch, lets_));
        for (const std::string& loop : loops_) are_products_ &= !expr_uses_var(product.sums.start, loop);
        const size_t tile = tile_of(product);
        are_products_ &= tiles_[tile].rows == product.rows && tiles_[tile].columns == product.columns;
        const int column_bytes = product.columns * sum_bytes;
        const Rows &left = product.left, &right = product.right;
        const auto type_of = [](const Rows& rows) { return register_of_bytes.with_code(rows.element.code()); };
        return store(tile, Call::make(register_of_sums, "tile_matmul",
                                      {product.rows, column_bytes, product.terms, sums(tile),
                                       left.loaded(type_of(left), product.rows, product.terms),
                                       right.loaded(type_of(right), product.terms / quad, column_bytes)},
                                      Call::Intrinsic));
    }

    size_t tile_of(const Product& product) {
        const auto known = std::find_if(tiles_.begin(), tiles_.end(), [&](const Product& tile) {
            return equal(tile.sums.start, product.sums.start);
        });
        const size_t tile = known - tiles_.begin();
        if (tile == tiles_.size()) tiles_.push_back(product);
        return tile;
    }
};

class MatrixTiles : public IRMutator {
    using IRMutator::visit;

    Stmt visit(const ProducerConsumer* op) override {
        if (!op->is_producer) return IRMutator::visit(op);
        const Stmt body = SumsMutator(op->name).replaced(op->body);
        return body.defined() ? ProducerConsumer::make_produce(op->name, body) : IRMutator::visit(op);
    }

    /// Element by element, such loops would be slower by orders of magnitude.
    Stmt visit(const For* op) override {
        if (op->name.find(".matrix_term") != std::string::npos)
            throw std::runtime_error("the loop over matrix_term and the two around it are not a product of matrices");
        return IRMutator::visit(op);
    }
};

}  // namespace

void use_matrix_tiles(Pipeline& pipeline, const Halide::Target& target) {
    if (target.has_feature(Halide::Target::AVX512_SapphireRapids)) pipeline.add_custom_lowering_pass(new MatrixTiles);
}

}  // namespace onnx2halide
