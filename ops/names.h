#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace onnx2halide {

/// Turns any text into a name that C and Halide allow: other characters become '_', in runs a single one, and a leading
/// digit is prefixed with `v`.
std::string identifier(std::string_view text);

/// A C string literal.
std::string string_literal(std::string_view text);

/// Whether C or C++ text contains a name. That of a reduction's variable, k.x, does not contain x.
bool mentions(std::string_view text, std::string_view name);

/// Text of a model or a command line for use in a comment, which it must not end or continue to the next line:
/// characters that could become '?'.
std::string comment_text(std::string text);

/// Names of Halide's intrinsics, such as bitwise_and: it would mistake a Func of such a name for the intrinsic.
const std::unordered_set<std::string>& halide_intrinsics();

/// The identifiers of one scope. Each is given out once; a second request for `input_1` yields `input_1_2`.
class Names {
public:
    /// The keywords of C and C++ and what the emitted files use from their headers are taken.
    Names();

    /// An identifier made from `text` that has not been given out.
    std::string unique(std::string_view text);
    /// Excludes an identifier from what `unique` returns.
    void reserve(std::string_view name) { given_.emplace(name); }
    /// Prefixes a letter to names that start so.
    void reserve_prefix(std::string_view prefix) { prefixes_.emplace_back(prefix); }
    bool is_taken(std::string_view name) const;

private:
    std::unordered_set<std::string> given_;
    std::vector<std::string> prefixes_;
};

}  // namespace onnx2halide
