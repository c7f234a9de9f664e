#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/names.h"
#include "ops/target.h"

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

/// The text of one kernel's class while its nodes write it: names, declarations, statements and schedule.
/// Coordinates always come in ONNX's axis order; each value's layout decides the order in which they are printed.
class KernelSource {
public:
    /// Whether names come from the model, or are numbered so that equal kernels have equal text.
    enum class Naming { model, canonical };

    /// A class called `class_name` whose nodes define the values `defined`; those of them in `outputs` leave the
    /// kernel. Every other value that the text reads becomes an input, in the order of first use.
    KernelSource(const Target& target, const std::string& class_name, std::vector<const Value*> defined,
                 std::vector<const Value*> outputs, Naming naming = Naming::model);

    const Target& target() const { return target_; }

    // Names. Each declares what it names, as a member of the class.

    /// One Var per axis, in ONNX's axis order: {"n", "c", "y", "x"}. The same rank always has the same names.
    Coordinates vars(size_t rank);
    /// A Var for this role, such as "strip", the same one each time. It is called so unless a value of the model is.
    std::string var(const std::string& role);
    /// The same for an RVar, such as one that splits a reduction.
    std::string rvar(const std::string& role);
    /// A new name for an Expr that the algorithm's text declares itself.
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
    /// A GeneratorParam<int> with this default, for the schedule's numbers, the same one each time. Returns its name.
    std::string param(const std::string& role, int value);
    /// A number of elements in a schedule, in terms of what the target's vectors hold where it is a multiple of that:
    /// `lanes`, `4 * lanes`, 3
    std::string lanes(ElementType type, int count);
    /// A value's name in the class: the Input, Output or Func that holds it.
    std::string name(const Value* value);
    /// Leaves a name that belongs to a value's computation, such as its Func conv1_sum, from a node's algorithm to its
    /// schedule.
    void keep(const Value* value, const std::string& role, const std::string& name) { kept_[{value, role}] = name; }
    const std::string& kept(const Value* value, const std::string& role) const { return kept_.at({value, role}); }

    // Text of expressions.

    /// A dimension as Halide text; its symbols become int32 arguments of the kernel.
    std::string dim(const Dim& dim);
    /// A number as a Halide expression of the type in which kernels compute `type` (float for float16): Expr(0.5f).
    static std::string literal(double number, ElementType type);
    static std::string literal(int64_t number, ElementType type);
    /// The type in which kernels compute with elements of `type`, as Halide text: float for float16, bool for bool.
    static std::string compute_type(ElementType type);

    /// One element, to compute with: float16 and float8 widened to float, bool as a condition, a known scalar as a
    /// literal.
    std::string read(const Value* value, const Coordinates& at);
    /// The same where `at` are coordinates of a result that `value` is broadcast to (numpy's rules).
    std::string read_broadcast(const Value* value, const Coordinates& at);
    /// The coordinate along an axis of extent `own` that is broadcast to that of `result`, where the result's is `at`.
    /// Where only a run knows whether the extent is 1, and vectors run along it, schedules tell Halide apart what is
    /// not.
    std::string broadcast_coordinate(const Dim& own, const TensorType& result, size_t axis, const std::string& at);
    /// One element as it is stored (float16_t, uint8_t for bool and float8), for nodes that only move elements.
    std::string element(const Value* value, const Coordinates& at);
    /// `func(c, x, y, n)`: a Func whose dims are laid out as `type`'s.
    static std::string call(const std::string& func, const TensorType& type, const Coordinates& at);

    // Statements.

    /// `relu1(c, x, y, n) = expression;` where the expression has the type that `read` gives.
    void define(const Value* value, const Coordinates& at, const std::string& expression);
    /// The same for an expression of the stored type, as `element` gives.
    void store(const Value* value, const Coordinates& at, const std::string& expression);
    /// Notes that a statement reads elements of a result that an earlier one has made, in vectors. Where that is an
    /// output, Halide takes their alignment for that of memory of its own, unless it does not know the strides.
    void update(const Value* value) { updated_.insert(value); }
    /// A comment before the statements that follow.
    void comment(const std::string& text) { algorithm_.push_back("// " + comment_text(text)); }
    /// Any statement of the algorithm, with its semicolon.
    void line(const std::string& statement) { algorithm_.push_back(statement); }
    /// Whether the algorithm so far has arithmetic that LLVM may not reorder, or calls functions that may have some: in
    /// such a kernel it takes the lanes of every sum one by one.
    bool may_be_strict() const;
    /// Any statement of the schedule, with its semicolon; a comment that gives the reason for its numbers is welcome.
    void schedule(const std::string& statement) { schedule_.push_back(statement); }
    /// The directives of one stage, one a line: {"split(x, …)", "vectorize(x, 16)"}.
    void schedule(const std::string& stage, const std::vector<std::string>& directives);
    /// The same for each version of a stage's loops, of which a run takes the one whose tiles fit best: `versions` is a
    /// call from onnx2halide_tiles.h, such as `onnx::tile_versions(extent, most)`, and directives call the size `tile_size`.
    void schedule_versions(const std::string& stage, const std::string& versions,
                           const std::vector<std::string>& directives);
    static constexpr const char* tile_size = "tile.size";

    // For schedules.

    /// Whether other nodes of the kernel alone read the value.
    bool is_internal(const Value* value) const;
    /// Notes coordinates along which elements of an input lie apart, or anywhere, as those that indices name do.
    void scatter(const Coordinates& at) { scattered_.insert(at.begin(), at.end()); }
    /// Whether elements that the kernel reads side by side along a loop do not lie side by side.
    bool reads_scattered_along(const std::string& var) const;
    /// The loops of the kernel's i-th output, whose Func is the last of the group.
    Loops output_loops(size_t i = 0);
    size_t output_count() const { return outputs_.size(); }
    const std::vector<const Value*>& inputs() const { return inputs_; }
    const std::vector<const Value*>& outputs() const { return outputs_; }
    /// What the kernel's nodes compute.
    const std::set<const Value*>& defined() const { return defined_; }

    // What becomes of it.

    enum class Schedule { tuned, naive };
    /// The class, from `class` to HALIDE_REGISTER_GENERATOR. `naive` computes every Func at root and ignores the
    /// schedule; lines that are `given` stand in its place.
    std::string text(Schedule schedule = Schedule::tuned, const std::optional<std::string>& given = {}) const;
    const std::string& class_name() const { return class_name_; }
    /// The name of an input or an output.
    const std::string& name_of(const Value* value) const { return value_names_.at(value); }
    /// Symbols that are int32 arguments of the kernel, after its input buffers, in this order.
    const std::set<std::string>& symbols() const { return symbols_; }
    /// A GeneratorParam.
    struct Param {
        std::string role;  // what the schedule calls it
        std::string name;  // in the class: the role, unless a value of the model is called so
        int value;         // its default in the class
        int own;           // what the schedule chose
    };
    const std::vector<Param>& params() const { return params_; }
    /// Gives the parameter of this role another default. False where there is none.
    bool set_param(const std::string& role, int value);

private:
    std::string new_name(const std::string& hint);
    std::string declare(std::vector<std::string>& declared, const std::string& role);
    void reserve_symbols();
    void note_read(const TensorType& type, const Coordinates& at);
    std::string estimates() const;
    std::string shape_text(const Value* value) const;
    std::string nothing_is_broadcast() const;  // that none of maybe_one_, of which there are some, is 1
    Param* find_param(const std::string& role);
    std::string own_name(const std::string& hint);

    Target target_;
    Naming naming_;
    std::string class_name_;
    std::vector<const Value*> inputs_, outputs_;
    std::set<const Value*> updated_;
    std::set<const Value*> defined_;
    Names names_;
    std::set<std::string> kept_free_;                // of names_, for Vars and RDoms of these names
    std::map<std::string, std::string> loop_names_;  // of Vars and RVars, by role
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
    std::set<std::string> maybe_one_;  // extents that a run may find to be 1, and then broadcast: known to schedules
    std::vector<std::string> algorithm_, schedule_;
};

/// C++ text of a float or double that reads back as the same number: 0.01f
std::string float_text(double number, bool is_double);

/// Converts an expression to a stored type by C's rules, without saturation.
std::string cast_text(const std::string& expression, ElementType to);

/// Whether kernels print this value as a literal instead of reading a tensor: a single element that inference knows,
/// and that no run reads off this very tensor, nor so that kernels for different numbers are equal.
bool is_literal(const Value* value);

/// Halide's tail strategy for splitting `extent` by `factor`: exact where it divides, ShiftInwards where the extent is
/// known to be at least the factor and elements may be computed twice, GuardWithIf otherwise.
std::string tail_strategy(const Dim& extent, int factor, bool may_recompute);

}  // namespace onnx2halide
