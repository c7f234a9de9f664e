#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <re2/re2.h>

// This header contains C++ and must precede the extern "C" block, in which the runtime's headers include it.
#include "HalideRuntime.h"

extern "C" {
#include "string_operators.h"
}

namespace {

int match_all(onnx2halide_session* session, const RE2& expression, const halide_buffer_t* x, uint8_t* matches) {
    const size_t count = onnx2halide_tensor_bytes(x) / sizeof(int64_t);
    const auto* numbers = reinterpret_cast<const int64_t*>(x->host);
    for (size_t i = 0; i < count; ++i) {
        const onnx2halide_string text = onnx2halide_text_of(session, numbers[i]);
        matches[i] = RE2::FullMatch(re2::StringPiece(text.text, text.length), expression);
    }
    return 0;
}

using Text = re2::StringPiece;

/// The number of bytes of the first character in UTF-8 text.
size_t character_bytes(const Text& text) {
    size_t bytes = 1;
    while (bytes < text.size() && (text[bytes] & 0xc0) == 0x80) ++bytes;
    return bytes;
}

/// Splits strings into tokens by one regular expression after another.
class Tokens {
public:
    Tokens(const std::vector<std::unique_ptr<RE2>>& expressions, bool are_separators, int64_t least)
        : expressions_(expressions), are_separators_(are_separators), least_(least) {}

    std::vector<Text> of(const Text& text) const {
        std::vector<Text> tokens{text};
        for (const auto& expression : expressions_) {
            std::vector<Text> parts;
            for (const Text& token : tokens) cut(token, *expression, parts);
            tokens.swap(parts);
        }
        return tokens;
    }

private:
    const std::vector<std::unique_ptr<RE2>>& expressions_;
    bool are_separators_;
    int64_t least_;

    /// Adds the matches or, if expressions are separators, the text between the matches.
    void cut(const Text& text, const RE2& expression, std::vector<Text>& parts) const {
        size_t from = 0, start = 0;
        Text match;
        while (expression.Match(text, from, text.size(), RE2::UNANCHORED, &match, 1)) {
            const size_t place = match.data() - text.data(), end = place + match.size();
            if (!are_separators_) add(match, parts);
            if (are_separators_ && !match.empty()) {
                add(text.substr(start, place - start), parts);
                start = end;
            }
            if (match.empty() && end == text.size()) break;
            from = match.empty() ? end + character_bytes(text.substr(end)) : end;
        }
        if (are_separators_) add(text.substr(start), parts);
    }

    void add(const Text& token, std::vector<Text>& parts) const {
        const auto starts_character = [](char byte) { return (byte & 0xc0) != 0x80; };
        const int64_t characters = std::count_if(token.begin(), token.end(), starts_character);
        if (characters > 0 && characters >= least_) parts.push_back(token);
    }
};

int write_tokens(onnx2halide_session* session, const Tokens& tokens, int is_marked, onnx2halide_string pad,
                 const halide_buffer_t* x, onnx2halide_result result) {
    const auto count = static_cast<size_t>(onnx2halide_element_count(x));
    const auto* numbers = reinterpret_cast<const int64_t*>(x->host);
    std::vector<std::vector<Text>> rows(count);
    size_t widest = 0;
    for (size_t i = 0; i < count; ++i) {
        const onnx2halide_string text = onnx2halide_text_of(session, numbers[i]);
        rows[i] = tokens.of(Text(text.text, text.length));
        widest = std::max(widest, rows[i].size());
    }
    /* Without any tokens onnxruntime adds no marks. */
    if (is_marked && widest > 0) {
        widest += 2;
        for (std::vector<Text>& row : rows) {
            row.insert(row.begin(), "\x02");
            row.push_back("\x03");
        }
    }
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    dims[x->dimensions] = static_cast<int64_t>(widest);
    void* made = nullptr;
    RUN(onnx2halide_make_result(session, result, x->dimensions + 1, dims, &made));
    auto* next = static_cast<int64_t*>(made);
    for (std::vector<Text>& row : rows) {
        row.resize(widest, Text(pad.text, pad.length));
        for (const Text& token : row) RUN(onnx2halide_number_of(session, token.data(), token.size(), next++));
    }
    return 0;
}

}  // namespace

extern "C" int onnx2halide_regex_full_match(onnx2halide_session* session, const char* pattern, int64_t length,
                                            const halide_buffer_t* x, onnx2halide_result result) {
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    void* matches = nullptr;
    RUN(onnx2halide_make_result(session, result, x->dimensions, dims, &matches));
    try {
        RE2::Options options;
        options.set_log_errors(false);
        const RE2 expression(re2::StringPiece(pattern, static_cast<size_t>(length)), options);
        if (!expression.ok()) return onnx2halide_fail(session, ONNX2HALIDE_FAILED, "%s", expression.error().c_str());
        return match_all(session, expression, x, static_cast<uint8_t*>(matches));
    } catch (const std::bad_alloc&) {
        return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory");
    }
}

extern "C" int onnx2halide_tokenizer(onnx2halide_session* session, int are_separators, int64_t least, int is_marked,
                                     onnx2halide_string pad, int count, const onnx2halide_string* patterns,
                                     const halide_buffer_t* x, onnx2halide_result result) {
    try {
        RE2::Options options;
        options.set_log_errors(false);
        options.set_longest_match(true);
        std::vector<std::unique_ptr<RE2>> expressions;
        for (int i = 0; i < count; ++i) {
            expressions.push_back(std::make_unique<RE2>(Text(patterns[i].text, patterns[i].length), options));
            if (!expressions[i]->ok())
                return onnx2halide_fail(session, ONNX2HALIDE_FAILED, "%s", expressions[i]->error().c_str());
        }
        return write_tokens(session, Tokens(expressions, are_separators != 0, least), is_marked, pad, x, result);
    } catch (const std::bad_alloc&) {
        return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory");
    }
}
