#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/names.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// Coordinates of one tensor element as Halide text, in ONNX's axis order: {"n", "c", "y", "x"}.
using Coordinates = std::vector<std::string>;

/// The loops of a Func, innermost first, as a schedule sees them.
struct Loops {
    std::string func;               // its name in the class
    std::vector<std::string> vars;  // x, y, c, n for a row-major image; c, x, y, n with channels innermost
    std::vector<Dim> extents;       // of each var
    ElementType element;
};

/// The text of one kernel's class as its nodes write it: names, declarations, algorithm and schedule. Coordinates are
/// always in ONNX's axis order; each value's layout determines the order in which they are printed.
class KernelSource {
public:
    /// Whether names come from the model, or are numbered so that equal kernels have the same text.
    enum class Naming { model, canonical };

    /// A class called `class_name` whose nodes define the values `defined`, of which `outputs` are the kernel's
    /// outputs. Every other value that the text reads becomes an input, in the order of first use.
    KernelSource(const Target& target, const std::string& class_name, std::vector<const Value*> defined,
                 std::vector<const Value*> outputs, Naming naming = Naming::model);

    const Target& target() const { return target_; }

    // Names. Each of these methods declares a member of the class.

    /// One Var per axis, in ONNX's axis order: {"n", "c", "y", "x"}. Equal ranks have equal names.
    Coordinates vars(size_t rank);
    /// The Var for this role, such as "strip"; always the same one. Named after the role unless a value has that name.
    std::string var(const std::string& role);
    /// The same for an RVar, such as one that splits a reduction.
    std::string rvar(const std::string& role);
    /// Whether a loop is a reduction's, such as r.x, which Halide neither fuses with loops of Vars nor divides into
    /// tasks.
    bool is_of_reduction(const std::string& loop) const;
    /// A new name for an Expr that the algorithm's text declares.
    std::string local(const std::string& hint) { return new_name(hint); }
    /// A new Func whose name starts with `hint`, such as conv1_sum.
    std::string func(const std::string& hint);
    /// A new RDom over [0, extent) in each dimension, innermost first. Its variables are r.x, r.y, r.z, r.w, or r[4]…
    /// (see `axis`).
    std::string rdom(const std::string& hint, const std::vector<Dim>& extents);
    /// The i-th variable of an RDom, as text: r.x
    static std::string axis(const std::string& rdom, size_t i);
    /// Names an RDom's variables, innermost first: {"ci", "kx"} for `ci = k.x, kx = k.y;`. Returns what `rvar` gives
    /// for these roles.
    std::vector<std::string> name_axes(const std::string& rdom, const std::vector<std::string>& roles);
    /// The GeneratorParam<int> for this role, a number of the schedule, with this default; always the same one. Returns
    /// its name.
    std::string param(const std::string& role, int value);
    /// A number of elements in a schedule, in terms of the target's lanes if it is a multiple of them: `lanes`,
    /// `4 * lanes`, 3
    std::string lanes(ElementType type, int count);
    /// The name of a value in the class: of the Input, Output or Func that holds it.
    std::string name(const Value* value);
    /// Stores a name that belongs to a value's computation, such as its Func conv1_sum, for a node's schedule to look
    /// up after its algorithm.
    void keep(const Value* value, const std::string& role, const std::string& name) { kept_[{value, role}] = name; }
    const std::string& kept(const Value* value, const std::string& role) const { return kept_.at({value, role}); }

    // Text of expressions.

    /// A dimension as Halide text; its symbols become int32 arguments of the kernel.
    std::string dim(const Dim& dim);
    /// The row-major index of an element of this shape: `(y) * 56 + x`.
    std::string linear_index(const Coordinates& at, const std::vector<Dim>& shape);
    /// The number of threads that share a run's tasks, as Halide text: an int32 argument of the kernel.
    std::string threads();
    /// A number as a Halide expression of the type in which kernels compute `type` (float for float16): Expr(0.5f).
    static std::string literal(double number, ElementType type);
    static std::string literal(int64_t number, ElementType type);
    /// The type in which kernels compute with elements of `type`, as Halide text: float for float16, bool for bool.
    static std::string compute_type(ElementType type);

    /// One element for arithmetic: float16 and float8 widened to float, bool as a condition, a known scalar as a
    /// literal.
    std::string read(const Value* value, const Coordinates& at);
    /// The same, where `at` are coordinates of a result to which `value` is broadcast (by numpy's rules).
    std::string read_broadcast(const Value* value, const Coordinates& at);
    /// The coordinate along an axis of extent `own` that is broadcast to the axis of `result`, at the result's
    /// coordinate `at`. If the extent may be 1 at run time and vectors run along it, schedules specialise for no extent
    /// being 1.
    std::string broadcast_coordinate(const Dim& own, const TensorType& result, size_t axis, const std::string& at);
    /// One element as it is stored (float16_t, uint8_t for bool and float8), for nodes that only move elements.
    std::string element(const Value* value, const Coordinates& at);
    /// A call of a Func whose dimensions are in the order of `type`'s layout: `func(c, x, y, n)`
    static std::string call(const std::string& func, const TensorType& type, const Coordinates& at);

    // Statements.

    /// `relu1(c, x, y, n) = expression;` where the expression has the type that `read` returns.
    void define(const Value* value, const Coordinates& at, const std::string& expression);
    /// The same for an expression of the stored type, as `element` returns.
    void store(const Value* value, const Coordinates& at, const std::string& expression);
    /// Records that an update reads, in vectors, elements of a result that an earlier stage has written. If that is an
    /// output, Halide assumes the alignment of its own allocations, unless it does not know the strides.
    void update(const Value* value) { updated_.insert(value); }
    /// A comment above the statements that follow.
    void comment(const std::string& text) { algorithm_.push_back("// " + comment_text(text)); }
    /// Any statement of the algorithm, with its semicolon.
    void line(const std::string& statement) { algorithm_.push_back(statement); }
    /// Whether the algorithm so far contains arithmetic that LLVM must not reassociate, or calls functions that may; in
    /// such a kernel, LLVM adds up the lanes of every sum one by one.
    bool may_be_strict() const;
    /// Any statement of the schedule, with its semicolon, or a comment that gives the reason for its numbers.
    void schedule(const std::string& statement) { schedule_.push_back(statement); }
    /// The directives of one stage, one a line: {"split(x, …)", "vectorize(x, 16)"}.
    void schedule(const std::string& stage, const std::vector<std::string>& directives);
    /// The same for several versions of a stage's loops, of which the one whose tiles fit best is chosen at run time:
    /// `versions` is a call from onnx2halide_tiles.h, such as `onnx::tile_versions(extent, most)`; directives refer to
    /// the size as `tile_size`.
    void schedule_versions(const std::string& stage, const std::string& versions,
                           const std::vector<std::string>& directives);
    /// Directives of one stage for versions of which a condition on `tile_size` holds, or for all if it is empty.
    struct StageVersions {
        std::string stage;
        std::vector<std::string> directives;
        std::string only_if = "";
    };
    /// The same for versions of several stages. The first is of the kernel's result; others have the same versions.
    void schedule_versions(const std::string& versions, const std::vector<StageVersions>& stages);
    static constexpr const char* tile_size = "tile.size";

    // Queries for schedules.

    /// Whether the value is read only by other nodes of the kernel.
    bool is_internal(const Value* value) const;
    /// Records coordinates along which an input's elements are strided or, as with indices, arbitrary.
    void scatter(const Coordinates& at) { scattered_.insert(at.begin(), at.end()); }
    /// Whether some elements that the kernel reads along a loop are not adjacent in memory.
    bool reads_scattered_along(const std::string& var) const;
    /// The loops of the kernel's i-th output, the group's last Func.
    Loops output_loops(size_t i = 0);
    size_t output_count() const { return outputs_.size(); }
    const std::vector<const Value*>& inputs() const { return inputs_; }
    const std::vector<const Value*>& outputs() const { return outputs_; }
    /// The values that the kernel's nodes compute.
    const std::set<const Value*>& defined() const { return defined_; }

    // The result.

    enum class Schedule { tuned, naive };
    /// The class, from `class` to HALIDE_REGISTER_GENERATOR. `naive` computes every Func at root and omits the
    /// schedule; lines that are `given` replace it.
    std::string text(Schedule schedule = Schedule::tuned, const std::optional<std::string>& given = {}) const;
    const std::string& class_name() const { return class_name_; }
    /// The name of an input or an output.
    const std::string& name_of(const Value* value) const { return value_names_.at(value); }
    /// Symbols that are int32 arguments of the kernel, after its input buffers, in this order.
    const std::set<std::string>& symbols() const { return symbols_; }
    /// Adds arguments, which may be unused.
    void add_symbols(const std::set<std::string>& symbols) { symbols_.insert(symbols.begin(), symbols.end()); }
    /// A GeneratorParam.
    struct Param {
        std::string role;  // its name in the schedule's code
        std::string name;  // in the class: the role, unless a value of the model has that name
        int value;         // its default in the class
        int own;           // the default that the schedule chose
    };
    const std::vector<Param>& params() const { return params_; }
    /// Changes the default of the parameter of this role. Returns false if there is none.
    bool set_param(const std::string& role, int value);

private:
    std::string new_name(const std::string& hint);
    std::string declare(std::string& name, std::vector<std::string>& declared, const std::string& role);
    void reserve_symbols();
    void note_read(const TensorType& type, const Coordinates& at);
    std::string estimates() const;
    std::string shape_text(const Value* value) const;
    std::string nothing_is_broadcast() const;  // the condition that no extent of maybe_one_, which is not empty, is 1
    Param* find_param(const std::string& role);
    std::string own_name(const std::string& hint);

    Target target_;
    Naming naming_;
    std::string class_name_;
    std::vector<const Value*> inputs_, outputs_;
    std::set<const Value*> updated_;
    std::set<const Value*> defined_;
    Names names_;
    std::set<std::string> kept_free_;                            // of names_, for Vars and RDoms of these names
    std::map<std::string, std::string> var_names_, rvar_names_;  // by role
    std::map<const Value*, std::string> value_names_;
    std::map<std::pair<const Value*, std::string>, std::string> kept_;
    std::vector<std::string> vars_, rvars_, funcs_, rdoms_;
    std::vector<Param> params_;
    struct Lanes {
        std::string name, type;
        int count;
    };
    std::vector<Lanes> lanes_;  // constants of the schedule
    std::set<std::string> symbols_;
    std::set<std::string> scattered_;  // coordinates
    std::set<std::string> maybe_one_;  // extents that may be 1, and are then broadcast, and that schedules specialise
    std::vector<std::string> algorithm_, schedule_;
};

/// The C++ text of a float or double, which reads back as the same number: 0.01f
std::string float_text(double number, bool is_double);

/// Converts an expression to a stored type by C's rules, without saturation.
std::string cast_text(const std::string& expression, ElementType to);
/// Whether kernels print this value as a literal instead of reading a tensor: it is a single element that is known at
/// compile time, and neither read from this very tensor at run time nor left out to make equal kernels of layers that
/// differ in it.
bool is_literal(const Value* value);

/// Halide's tail strategy for splitting `extent` by `factor`: exact where it divides, ShiftInwards where the extent is
/// known to be at least the factor and elements may be computed twice, GuardWithIf otherwise.
std::string tail_strategy(const Dim& extent, int factor, bool may_recompute);

}  // namespace onnx2halide
