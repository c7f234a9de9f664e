#include "ops/kernel_source.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/elementwise/minifloat.h"

namespace onnx2halide {

std::string float_text(double number, bool is_double) {
    const std::string type = is_double ? "double" : "float";
    if (std::isnan(number)) return fmt::format("std::numeric_limits<{}>::quiet_NaN()", type);
    if (std::isinf(number)) return fmt::format("{}std::numeric_limits<{}>::infinity()", number < 0 ? "-" : "", type);
    std::string digits = is_double ? fmt::format("{}", number) : fmt::format("{}", static_cast<float>(number));
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return is_double ? digits : digits + "f";
}

namespace {

/// A name that differs from Halide's own: `t_3` for `t3`, since its generated names are a letter and a number, and
/// `abs_value` for `abs`, one of its intrinsics.
std::string apart_from_halides(const std::string& name) {
    if (halide_intrinsics().contains(identifier(name))) return identifier(name) + "_value";
    const bool is_halides = name.size() > 1 && std::isalpha(static_cast<unsigned char>(name[0])) &&
                            std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c); });
    return is_halides ? fmt::format("{}_{}", name[0], name.substr(1)) : name;
}

}  // namespace

bool is_literal(const Value* value) {
    return value->known && value->known->size() == 1 && value->bindings.empty() && !value->is_passed_to_kernels;
}

KernelSource::KernelSource(const Target& target, const std::string& class_name, std::vector<const Value*> defined,
                           std::vector<const Value*> outputs, Naming naming)
    : target_(target), naming_(naming), class_name_(class_name), outputs_(std::move(outputs)),
      defined_(defined.begin(), defined.end()) {
    names_.reserve(class_name);
    names_.reserve(thread_count_symbol);
    reserve_symbols();
    // A value called `x` is renamed in favour of the Var `x`, so that loops have the same names everywhere.
    for (const char* var : {"n", "c", "z", "y", "x", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "r", "k"}) {
        if (names_.is_taken(var)) continue;
        names_.reserve(var);
        kept_free_.insert(var);
    }
    for (const Value* output : outputs_) {
        value_names_[output] = new_name(output->name);
        for (const Dim& extent : output->checked_type().shape) dim(extent);
    }
}

void KernelSource::reserve_symbols() {
    const auto reserve = [this](const Value* value) {
        if (!value || !value->type) return;
        for (const Dim& extent : value->type->shape) {
            for (const std::string& symbol : extent.symbols()) names_.reserve(symbol);
        }
    };
    for (const Value* value : defined_) {
        reserve(value);
        if (!value->producer) continue;
        for (const Value* input : value->producer->inputs) reserve(input);
    }
}

std::string KernelSource::new_name(const std::string& hint) {
    return names_.unique(naming_ == Naming::model ? apart_from_halides(hint) : "v");
}

Coordinates KernelSource::vars(size_t rank) {
    static const std::vector<Coordinates> usual = {
        {}, {"x"}, {"y", "x"}, {"z", "y", "x"}, {"n", "c", "y", "x"}, {"n", "c", "z", "y", "x"}};
    Coordinates result;
    if (rank < usual.size()) {
        result = usual[rank];
    } else {
        for (size_t i = 0; i < rank; ++i) result.push_back(fmt::format("d{}", i));
    }
    for (std::string& name : result) name = var(name);
    return result;
}

std::string KernelSource::var(const std::string& role) { return declare(var_names_[role], vars_, role); }

std::string KernelSource::rvar(const std::string& role) { return declare(rvar_names_[role], rvars_, role); }

bool KernelSource::is_of_reduction(const std::string& loop) const {
    return loop.find_first_of(".[") != std::string::npos || std::ranges::find(rvars_, loop) != rvars_.end();
}

std::string KernelSource::declare(std::string& name, std::vector<std::string>& declared, const std::string& role) {
    if (name.empty()) {
        name = own_name(role);
        declared.push_back(name);
    }
    return name;
}

std::string KernelSource::own_name(const std::string& hint) {
    return kept_free_.erase(hint) > 0 ? hint : names_.unique(hint);
}

std::string KernelSource::func(const std::string& hint) {
    funcs_.push_back(new_name(hint));
    return funcs_.back();
}

std::string KernelSource::rdom(const std::string& hint, const std::vector<Dim>& extents) {
    const std::string name = own_name(hint);
    rdoms_.push_back(name);
    std::vector<std::string> ranges;
    for (const Dim& extent : extents) ranges.push_back("0, " + dim(extent));
    line(fmt::format("{} = RDom({});", name,
                     ranges.size() == 1 ? ranges[0] : fmt::format("{}", fmt::join(ranges, ", "))));
    return name;
}

std::string KernelSource::axis(const std::string& rdom, size_t i) {
    static constexpr std::string_view names = "xyzw";
    return i < names.size() ? fmt::format("{}.{}", rdom, names[i]) : fmt::format("{}[{}]", rdom, i);
}

std::vector<std::string> KernelSource::name_axes(const std::string& rdom, const std::vector<std::string>& roles) {
    std::vector<std::string> names, assigned;
    for (size_t i = 0; i < roles.size(); ++i) {
        names.push_back(rvar(roles[i]));
        assigned.push_back(fmt::format("{} = {}", names.back(), axis(rdom, i)));
    }
    if (!names.empty()) line(fmt::format("{};", fmt::join(assigned, ", ")));
    return names;
}

std::string KernelSource::param(const std::string& role, int value) {
    if (const Param* known = find_param(role)) return known->name;
    params_.push_back({role, own_name(role), value, value});
    return params_.back().name;
}

bool KernelSource::set_param(const std::string& role, int value) {
    Param* known = find_param(role);
    if (known) known->value = value;
    return known;
}

KernelSource::Param* KernelSource::find_param(const std::string& role) {
    const auto found =
        std::find_if(params_.begin(), params_.end(), [&](const Param& param) { return param.role == role; });
    return found == params_.end() ? nullptr : &*found;
}

std::string KernelSource::lanes(ElementType type, int count) {
    const int natural = target_.lanes(type);
    if (natural == 1 || count % natural != 0) return std::to_string(count);
    const auto has_count = [&](const Lanes& lanes) { return lanes.count == natural; };
    auto found = std::find_if(lanes_.begin(), lanes_.end(), has_count);
    if (found == lanes_.end())
        found = lanes_.insert(found, {own_name("lanes"), std::string(info(type).halide_name), natural});
    return count == natural ? found->name : fmt::format("{} * {}", count / natural, found->name);
}

bool KernelSource::is_internal(const Value* value) const {
    return defined_.contains(value) && std::find(outputs_.begin(), outputs_.end(), value) == outputs_.end();
}

std::string KernelSource::name(const Value* value) {
    const auto found = value_names_.find(value);
    if (found != value_names_.end()) return found->second;
    const bool is_input = !defined_.contains(value);
    if (is_input) {
        inputs_.push_back(value);
        for (const Dim& extent : value->checked_type().shape) dim(extent);
    }
    return value_names_[value] = is_input ? new_name(value->name) : func(value->name);
}

std::string KernelSource::linear_index(const Coordinates& at, const std::vector<Dim>& shape) {
    std::string index = at.empty() ? "0" : at[0];
    for (size_t i = 1; i < at.size(); ++i) index = fmt::format("({}) * {} + {}", index, dim(shape[i]), at[i]);
    return index;
}

std::string KernelSource::dim(const Dim& dim) {
    symbols_.merge(dim.symbols());
    return dim.text(DimSyntax::halide);
}

std::string KernelSource::threads() { return dim(Dim::symbol(thread_count_symbol)); }

std::string KernelSource::literal(double number, ElementType type) {
    return fmt::format("Expr({})", float_text(number, type == ElementType::float64));
}

std::string KernelSource::literal(int64_t number, ElementType type) {
    if (is_float(type)) return literal(static_cast<double>(number), type);
    if (type == ElementType::boolean) return number ? "cast<bool>(1)" : "cast<bool>(0)";
    if (type == ElementType::int32 && number > INT32_MIN) return fmt::format("Expr({})", number);
    const std::string_view c_type = info(type).halide_name;
    if (type == ElementType::uint64) return fmt::format("Expr({}({}u))", c_type, static_cast<uint64_t>(number));
    if (number == INT64_MIN) return fmt::format("Expr(std::numeric_limits<{}>::min())", c_type);
    return fmt::format("Expr({}({}))", c_type, number);
}

std::string KernelSource::compute_type(ElementType type) {
    if (type == ElementType::boolean) return "bool";
    return std::string(is_narrow_float(type) || is_minifloat(type) ? "float" : info(type).halide_name);
}

std::string KernelSource::read(const Value* value, const Coordinates& at) {
    const ElementType type = value->checked_type().element;
    if (is_literal(value)) {
        if (!value->known->reals.empty()) return literal(value->known->reals[0], type);
        const Dim& known = value->known->integers[0];
        if (const auto number = known.constant()) return literal(*number, type);
        return fmt::format("cast<{}>({})", compute_type(type), dim(known));
    }
    const std::string stored = element(value, at);
    if (type == ElementType::boolean) return fmt::format("({} != 0)", stored);
    if (is_minifloat(type)) return number_text(stored, type);
    return is_narrow_float(type) ? fmt::format("cast<float>({})", stored) : stored;
}

std::string KernelSource::read_broadcast(const Value* value, const Coordinates& at) {
    const std::vector<Dim>& shape = value->checked_type().shape;
    if (shape.size() > at.size())
        throw CompileError("'{}' has rank {}, expected at most {}", value->name, shape.size(), at.size());
    // Nodes are fused only if shapes are equal, so a value of this kernel is read at the same index.
    if (defined_.contains(value) && shape.size() == at.size()) return read(value, at);
    Coordinates own;
    for (size_t i = 0; i < shape.size(); ++i) own.push_back(shape[i].is(1) ? "0" : at[at.size() - shape.size() + i]);
    return read(value, own);
}

std::string KernelSource::broadcast_coordinate(const Dim& own, const TensorType& result, size_t axis,
                                               const std::string& at) {
    if (own.is(1)) return "0";
    const bool may_be_one =
        prove_less_equal(2, own) != Proof::yes && prove_equal(own, result.shape.at(axis)) != Proof::yes;
    if (!may_be_one) return at;
    const std::string extent = dim(own);
    // Vectors run along the innermost axis. Along others, the choice is made outside of the vector.
    if (axis == result.innermost_axis()) maybe_one_.insert(extent);
    return fmt::format("select({} == 1, 0, {})", extent, at);
}

std::string KernelSource::nothing_is_broadcast() const {
    // Halide applies these comparisons to all Funcs of a kernel, but `!= 1` only to the last one.
    return fmt::format("{} > 1", fmt::join(maybe_one_, " > 1 && "));
}

std::string KernelSource::element(const Value* value, const Coordinates& at) {
    const ElementType type = value->checked_type().element;
    if (is_literal(value))
        return compute_type(type) == info(type).halide_name ? read(value, at) : cast_text(read(value, at), type);
    if (value->checked_type().rank() > at.size())
        throw CompileError("'{}' has rank {}, expected {}", value->name, value->checked_type().rank(), at.size());
    if (!defined_.contains(value)) note_read(value->checked_type(), at);
    return call(name(value), value->checked_type(), at);
}

void KernelSource::note_read(const TensorType& type, const Coordinates& at) {
    bool is_innermost = true;
    for (const int axis : type.layout) {
        if (type.shape[axis].is(1)) continue;
        if (!is_innermost) scattered_.insert(at.at(axis));
        is_innermost = false;
    }
}

bool KernelSource::reads_scattered_along(const std::string& var) const {
    return std::any_of(scattered_.begin(), scattered_.end(),
                       [&](const std::string& coordinate) { return mentions(coordinate, var); });
}

std::string KernelSource::call(const std::string& func, const TensorType& type, const Coordinates& at) {
    Coordinates printed;
    for (const int axis : type.layout) printed.push_back(at.at(axis));
    return fmt::format("{}({})", func, fmt::join(printed, ", "));
}

bool KernelSource::may_be_strict() const {
    return std::any_of(algorithm_.begin(), algorithm_.end(), [](const std::string& statement) {
        const bool is_comment = statement.starts_with("//");
        return !is_comment &&
               (statement.find("strict_float(") != std::string::npos || statement.find("onnx::") != std::string::npos);
    });
}

void KernelSource::define(const Value* value, const Coordinates& at, const std::string& expression) {
    const ElementType type = value->checked_type().element;
    if (is_minifloat(type)) return store(value, at, code_text(expression, type));
    const bool widened = is_narrow_float(type) || type == ElementType::boolean;
    store(value, at, widened ? fmt::format("cast<{}>({})", info(type).halide_name, expression) : expression);
}

void KernelSource::store(const Value* value, const Coordinates& at, const std::string& expression) {
    line(fmt::format("{} = {};", call(name(value), value->checked_type(), at), expression));
}

void KernelSource::schedule(const std::string& stage, const std::vector<std::string>& directives) {
    std::string statement = stage;
    for (size_t i = 0; i < directives.size(); ++i) statement += (i == 0 ? "." : "\n            .") + directives[i];
    schedule(statement + ";");
}

void KernelSource::schedule_versions(const std::string& stage, const std::string& versions,
                                     const std::vector<std::string>& directives) {
    schedule_versions(versions, {{stage, directives}});
}

void KernelSource::schedule_versions(const std::string& versions, const std::vector<StageVersions>& stages) {
    // If something is broadcast, the last version is used, so that the others read vectors.
    const bool has_condition = !maybe_one_.empty() && stages.front().stage == value_names_.at(outputs_.back());
    const std::string condition = has_condition ? ", " + nothing_is_broadcast() : "";
    std::string body;
    for (const StageVersions& of : stages) {
        std::string indent(12, ' ');
        if (!of.only_if.empty()) {
            body += fmt::format("{}if ({})\n", indent, of.only_if);
            indent += "    ";
        }
        body += fmt::format("{0}tile.of({1}{2})\n{0}    .{3};\n", indent, of.stage, condition,
                            fmt::join(of.directives, "\n    " + indent + "."));
    }
    schedule(fmt::format("for (const onnx::TileVersion& tile : {}) {{\n{}        }}", versions, body));
}

Loops KernelSource::output_loops(size_t i) {
    const TensorType& type = outputs_.at(i)->checked_type();
    const Coordinates names = vars(type.rank());
    Loops loops{name(outputs_[i]), {}, type.extents(), type.element};
    for (const int axis : type.layout) loops.vars.push_back(names[axis]);
    return loops;
}

std::string cast_text(const std::string& expression, ElementType to) {
    return fmt::format("cast<{}>({})", info(to).halide_name, expression);
}

std::string tail_strategy(const Dim& extent, int factor, bool may_recompute) {
    const auto constant = extent.constant();
    if (constant && *constant % factor == 0) return "TailStrategy::RoundUp";
    const auto least = extent.lower_bound();
    if (may_recompute && least && *least >= factor) return "TailStrategy::ShiftInwards";
    return "TailStrategy::GuardWithIf";
}

}  // namespace onnx2halide
