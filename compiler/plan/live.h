#pragma once

#include <set>
#include <string>

#include "compiler/plan/program.h"

namespace onnx2halide {

/// The symbols in a step's arguments, shapes and checks, including those of its blocks.
std::set<std::string> symbols_of(const Step& step);
/// The symbols in the shape of a value and in the checks of the views that lead to it.
std::set<std::string> symbols_of(const Value* value);

/// The values that are read and the symbols that are used by live steps.
class LiveValues {
public:
    /// Adds a value and those that it is a view of.
    void need(const Value* value);

    /// Adds what the live steps of the block need. Returns whether anything is new.
    bool add_needs(const Block& block);

    /// Removes the steps that are not live.
    void keep_live_steps(Block& block) const;

private:
    bool is_live(const Step& step) const;
    void add_needs(const Step& step);
    void add_needs_of_repetition(const Step& step);

    std::set<const Value*> values_;
    std::set<std::string> symbols_;
};

}  // namespace onnx2halide
