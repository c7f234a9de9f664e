#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onnx2halide {

/// The strings of a model's constants, each once. A tensor of strings holds indices into this table, which a run
/// extends by strings of its own. Equal strings have equal numbers, so kernels that move or compare elements treat them
/// as integers. Number 0 is the empty string.
class StringTable {
public:
    StringTable() { number(""); }

    int64_t number(const std::string& text) {
        const auto [known, is_new] = numbers_.try_emplace(text, static_cast<int64_t>(texts_.size()));
        if (is_new) texts_.push_back(text);
        return known->second;
    }
    std::vector<int64_t> numbers(const std::vector<std::string>& texts) {
        std::vector<int64_t> result;
        for (const std::string& text : texts) result.push_back(number(text));
        return result;
    }
    const std::vector<std::string>& texts() const { return texts_; }

private:
    std::map<std::string, int64_t> numbers_;
    std::vector<std::string> texts_;
};

}  // namespace onnx2halide
