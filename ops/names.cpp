#include "ops/names.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

constexpr std::string_view reserved_words[] = {
// Macros of C and C++, Halide and the runtime, which the build lists
#include "onnx2halide_reserved_macros.inc"
    // C and C++
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "const_cast",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "main",
    // Halide's names that generators use, and members of Generator
    "Halide",
    "Var",
    "RVar",
    "Func",
    "RDom",
    "Expr",
    "Buffer",
    "Input",
    "Output",
    "GeneratorParam",
    "Generator",
    "Tuple",
    "Type",
    "Target",
    "Float",
    "Int",
    "UInt",
    "Bool",
    "cast",
    "select",
    "mux",
    "min",
    "max",
    "clamp",
    "abs",
    "sqrt",
    "exp",
    "log",
    "pow",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "floor",
    "ceil",
    "round",
    "trunc",
    "erf",
    "sum",
    "product",
    "maximum",
    "minimum",
    "argmax",
    "argmin",
    "print",
    "likely",
    "likely_if_innermost",
    "unsafe_promise_clamped",
    "reinterpret",
    "BoundaryConditions",
    "PrefetchBoundStrategy",
    "Internal",
    "lerp",
    "random_int",
    "random_uint",
    "random_float",
    "undef",
    "memoize_tag",
    "is_nan",
    "is_inf",
    "is_finite",
    "strict_float",
    "fast_exp",
    "fast_log",
    "fast_pow",
    "fast_inverse",
    "popcount",
    "saturating_cast",
    "widening_mul",
    "generate",
    "schedule",
    "configure",
    "target",
    "natural_vector_size",
    "using_autoscheduler",
    "register_input",
    "float16_t",
    "bfloat16_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "std",
    "tap",
    "tile",
    "row_versions",
    "get_target",
    "TailStrategy",
    "MemoryType",
    "call",
    "apply",
    "create",
    "inputs",
    "outputs",
    "natural_vector",
    "add_input",
    "add_output",
    // the emitted C
    "session",
    "steps",
    "place",
    "bind",
    "shapes",
    "open",
    "open_dims",
    "strings",
    "targets",
    "values",
    "weights",
    "arena",
    "dims",
    "options",
    "status",
    "handle",
    "code",
    "description",
    "TENSORS",
    "STEP",
    "VIEW",
    "T",
    "SCALAR",
    "floor_div",
    "floor_mod",
    "min_dim",
    "max_dim",
    "onnx",
};

/// The prefixes of what the runtime's headers declare.
constexpr std::string_view reserved_prefixes[] = {"halide_", "HALIDE_", "onnx2halide_", "ONNX2HALIDE_"};

}  // namespace

// data.py of the Python package and onnx2halideConfig.cmake have the same rule; tests compare them with this one.
std::string identifier(std::string_view text) {
    std::string result;
    for (const char character : text) {
        const auto code = static_cast<unsigned char>(character);
        // Halide rejects names that start with '_' or contain two in a row.
        if (code < 128 && std::isalnum(code)) {
            result += character;
        } else if (!result.empty() && result.back() != '_') {
            result += '_';
        }
    }
    while (!result.empty() && result.back() == '_') result.pop_back();
    if (result.empty()) return "unnamed";
    return std::isdigit(static_cast<unsigned char>(result[0])) ? "v" + result : result;
}

std::string string_literal(std::string_view text) {
    std::string result = "\"";
    for (const char character : text) {
        const bool begins_trigraph = character == '?' && result.back() == '?';
        if (character == '"' || character == '\\' || begins_trigraph) result += '\\';
        const auto code = static_cast<unsigned char>(character);
        result += code < 32 || code > 126 ? fmt::format("\\{:03o}", code) : std::string(1, character);
    }
    return result + "\"";
}

bool mentions(std::string_view text, std::string_view name) {
    const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        const size_t end = at + name.size();
        if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end]))) return true;
    }
    return false;
}

std::string comment_text(std::string text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const auto code = static_cast<unsigned char>(text[i]);
        const std::string_view pair = std::string_view(text).substr(i, 2);
        if (code < 32 || code == 127 || code == '\\' || pair == "*/" || pair == "/*") text[i] = '?';
    }
    return text;
}

Names::Names() : prefixes_(std::begin(reserved_prefixes), std::end(reserved_prefixes)) {}

bool Names::is_taken(std::string_view name) const {
    static const std::unordered_set<std::string_view> reserved(std::begin(reserved_words), std::end(reserved_words));
    return reserved.contains(name) || given_.contains(std::string(name));
}

std::string Names::unique(std::string_view text) {
    std::string wanted = identifier(text);
    const auto starts_so = [&](const std::string& prefix) { return wanted.starts_with(prefix); };
    if (std::any_of(prefixes_.begin(), prefixes_.end(), starts_so)) wanted = "v_" + wanted;
    std::string name = wanted;
    for (int i = 2; is_taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
    given_.insert(name);
    return name;
}

}  // namespace onnx2halide
