#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace onnx2halide {

/// A name that C and Halide allow for any text: characters that they do not allow become one '_', a leading digit gets
/// a `v` before it.
std::string identifier(std::string_view text);

/// A string literal of C.
std::string string_literal(std::string_view text);

/// Text of a model or a command line within a comment, which it can neither end nor carry on into the next line: what
/// could is a '?'.
std::string comment_text(std::string text);

/// What Halide calls its own operations, such as bitwise_and: where a Func has such a name, it takes one for the other.
const std::unordered_set<std::string>& halide_intrinsics();

/// Identifiers of one scope. Each is given once; a second taker of `input_1` gets `input_1_2`.
class Names {
public:
    /// Starts with the keywords of C and C++ and what the emitted files use from their headers.
    Names();

    /// An identifier made from `text`, given to nobody else.
    std::string unique(std::string_view text);
    /// Keeps an identifier out of what `unique` gives.
    void reserve(std::string_view name) { taken_.emplace(name); }
    /// Puts a letter before names that start so.
    void reserve_prefix(std::string_view prefix) { prefixes_.emplace_back(prefix); }
    bool is_taken(std::string_view name) const { return taken_.contains(std::string(name)); }

private:
    std::unordered_set<std::string> taken_;
    std::vector<std::string> prefixes_;
};

}  // namespace onnx2halide
