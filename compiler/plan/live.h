#pragma once

#include <set>
#include <string>

#include "compiler/plan/program.h"

namespace onnx2halide {

/// The symbols that a step's arguments, shapes and checks are made of, those of its blocks included.
std::set<std::string> symbols_of(const Step& step);
/// Those of a value's shape, and of the views that lead to it.
std::set<std::string> symbols_of(const Value* value);

/// Values whose memory somebody reads, and symbols whose numbers somebody uses.
class LiveValues {
public:
    /// The value is read, and what its views start from.
    void need(const Value* value);

    /// Adds what live steps of the block need. False where nothing is new.
    bool add_needs(const Block& block);

    /// Removes the steps whose results nobody needs.
    void keep_live_steps(Block& block) const;

private:
    bool is_live(const Step& step) const;
    void add_needs(const Step& step);
    void add_needs_of_repetition(const Step& step);

    std::set<const Value*> values_;
    std::set<std::string> symbols_;
};

}  // namespace onnx2halide
