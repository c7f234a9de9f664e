#include "compiler/generator/matrix_tiles.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/generator/matrix_products.h"

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

/// The statements of a Func's loops without its products.
class WithoutProducts : public IRMutator {
public:
    explicit WithoutProducts(const std::string& func) : func_(func) {}

private:
    using IRMutator::visit;

    const std::string& func_;

    Stmt visit(const For* op) override {
        const auto product = read_product(op);
        return product && product->sums.buffer == func_ ? Evaluate::make(0) : IRMutator::visit(op);
    }

    /// Of what only the products read, which come later.
    Stmt visit(const Free*) override { return Evaluate::make(0); }
};

/// Whether a Func's loops add up products.
class HasProducts : public IRVisitor {
public:
    static bool in(const Stmt& produce, const std::string& func) {
        HasProducts visitor(func);
        produce.accept(&visitor);
        return visitor.found_;
    }

private:
    using IRVisitor::visit;

    explicit HasProducts(const std::string& func) : func_(func) {}

    void visit(const For* op) override {
        const auto product = read_product(op);
        found_ |= product && product->sums.buffer == func_;
        if (!found_) IRVisitor::visit(op);
    }

    const std::string& func_;
    bool found_ = false;
};

/// What is stored in a vector of sums of each row before products are added.
class Start {
public:
    /// From a store, in these loops and lets, which may be conditional.
    Start(const Store& store, const std::vector<std::string>& loops, const Lets& lets, bool is_conditional)
        : index_(simplify(without_lets(store.index, lets))), value_(store.value), loops_(loops),
          is_conditional_(is_conditional) {
        // Nothing else is understood, and where there are many lets, as many substitutions would take long.
        if (value_.as<Load>()) value_ = simplify(without_lets(value_, lets));
    }

    /// Whether it may be stored to some of the tile's columns.
    bool concerns(const Product& tile) const {
        const auto column = this->column(tile);
        return !column || *column % tile.columns != 0 || *column == 0;
    }

    /// What a register starts with if this is stored to all rows of the tile; undefined if rows differ.
    Expr in_register(const Product& tile) const {
        const int bytes = tile.columns * sum_bytes;
        const auto* number = value_.as<Broadcast>();
        if (!is_conditional_ && number && is_const_zero(number->value)) {
            const Expr rows = Cast::make(Int(16), tile.rows), columns = Cast::make(Int(16), bytes);
            return Call::make(register_of_sums, "tile_zero", {rows, columns}, Call::Intrinsic);
        }
        const auto* load = value_.as<Load>();
        const auto* row = load && is_const_one(load->predicate) ? load->index.as<Ramp>() : nullptr;
        if (is_conditional_ || column(tile) != 0 || !row || !is_one(row->stride) || uses_loops(row->base)) return {};
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
    bool is_conditional_;

    bool uses_loops(const Expr& e) const {
        return std::any_of(loops_.begin(), loops_.end(),
                           [&](const std::string& loop) { return expr_uses_var(e, loop); });
    }

    /// The column of the tile's row where it is stored, modulo a row; nullopt if it is no vector of so many columns.
    std::optional<int64_t> column(const Product& tile) const {
        const auto* place = index_.as<Ramp>();
        const auto pitch = as_const_int(tile.sums.pitch);
        if (!place || !is_one(place->stride) || place->lanes != tile.columns || !pitch) return {};
        // Loops start at 0.
        Expr first = place->base;
        for (const std::string& loop : loops_) first = substitute(loop, 0, first);
        const auto distance = as_const_int(simplify(first - tile.sums.start));
        return distance ? std::optional((*distance % *pitch + *pitch) % *pitch) : std::nullopt;
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
    bool is_conditional_ = false;
    std::vector<Start> starts_;
    std::vector<Product> tiles_;  // one for each tile of sums
    bool are_products_ = true;

    /// What all stores to a tile's columns agree on; undefined if they do not.
    Expr start_of(const Product& tile) const {
        Expr found;
        for (const Start& start : starts_) {
            if (!start.concerns(tile)) continue;
            const Expr value = start.in_register(tile);
            if (!value.defined() || (found.defined() && !equal(found, value))) return {};
            found = value;
        }
        return found;
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
        if (auto product = read_product(op); product && product->sums.buffer == func_) return multiplied(*product);
        loops_.push_back(op->name);
        Stmt statement = IRMutator::visit(op);
        loops_.pop_back();
        return statement;
    }

    Stmt visit(const Store* op) override {
        are_products_ &= op->name == func_ && is_const_one(op->predicate);
        mutate(op->value);
        starts_.emplace_back(*op, loops_, lets_, is_conditional_);
        return Evaluate::make(0);
    }

    Stmt visit(const IfThenElse* op) override {
        const bool was_conditional = std::exchange(is_conditional_, true);
        Stmt statement = IRMutator::visit(op);
        is_conditional_ = was_conditional;
        return statement;
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
        if (!op->is_producer || !HasProducts::in(op->body, op->name)) return IRMutator::visit(op);
        const Stmt body = SumsMutator(op->name).replaced(op->body);
        return body.defined() ? ProducerConsumer::make_produce(op->name, body) : IRMutator::visit(op);
    }
};

}  // namespace

void use_matrix_tiles(Pipeline& pipeline, const Halide::Target& target) {
    if (target.has_feature(Halide::Target::AVX512_SapphireRapids)) pipeline.add_custom_lowering_pass(new MatrixTiles);
}

}  // namespace onnx2halide
