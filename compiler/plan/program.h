#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/kernel_source.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// One class of generator: an anchor node and the pointwise nodes around it, and the text that they wrote.
struct Kernel {
    std::string name;                    // of the class and of the C function, where there is one target
    std::vector<const Node*> nodes;      // of the first group that it serves, in order
    std::vector<std::string> served;     // names of the other groups' last nodes
    std::vector<KernelSource> sources;   // one for each target; all have the same parameters
    std::vector<std::string> canonical;  // their classes with numbered names, which say what they compute and how
    Dim flops;

    const KernelSource& source() const { return sources.front(); }
};

/// A call of a kernel.
struct KernelCall {
    size_t kernel = 0;                 // index in Program::kernels
    std::vector<const Value*> inputs;  // in the order of the kernel's
    std::vector<Dim> arguments;        // one for each of the kernel's symbols
};

/// A choice between two kernels, of which a run calls the second where it takes fewer cycles.
struct KernelChoice {
    Dim first_cycles, second_cycles;
};

struct Block;

/// One statement of the host program.
struct Step {
    enum class Kind {
        kernel,      // a call of a kernel, or of one of two
        host,        // a call of a function in runtime/
        branch,      // an If: one of two blocks
        repetition,  // a Loop or Scan: a block again and again
    };
    Kind kind = Kind::kernel;
    std::vector<KernelCall> calls;
    std::optional<KernelChoice> choice;  // of two calls
    std::vector<const Node*> nodes;
    std::vector<const Value*> inputs;  // those of all calls, or in the order of the node's; null where omitted
    std::vector<const Value*> outputs;
    std::vector<Block> blocks;  // then and else, or the body
    int first = 0, last = 0;    // its place among all steps; what stands in its blocks lies between

    const Node& node() const { return *nodes.front(); }
};

/// Steps that run one after the other: the model's, a branch's, or those of one turn.
struct Block {
    std::string name;  // of its C function
    const Graph* graph = nullptr;
    std::vector<Step> steps;
};

/// Calls `visit` for each step, those of blocks inside included, in the order of the text.
void for_each_step(const Block& block, const std::function<void(const Step&)>& visit);

/// Where a tensor's bytes live.
enum class Place {
    input,   // the caller's memory, read only
    output,  // the caller's memory
    weight,  // the archive's or the weights file's
    arena,   // the session's
    heap,    // the session's, where only a run knows the size
    slice,   // a part of another tensor, from turn to turn the next one
    none,    // another storage has its tensors
};

/// A range of memory that one tensor, its views and those computed in place share.
struct Storage {
    Place place = Place::arena;
    const Value* root = nullptr;   // the value that names it
    size_t index = 0;              // among inputs or outputs, or in Program::heap
    const Value* whole = nullptr;  // of a slice
    Dim bytes;
    int first_step = 0, last_step = 0;  // lifetime, both included
    int64_t offset = 0;                 // in the weights, or in the arena where its size is known at compile time
};

class SymbolicCopy;

/// What the host program does: calls of kernels on tensors whose places are planned.
struct Program {
    std::string name;
    const Graph* graph = nullptr;
    std::vector<Target> targets;  // best first
    std::vector<std::shared_ptr<const SymbolicCopy>>
        copies;  // for whose nodes kernels with symbolic extents are written
    std::vector<Kernel> kernels;
    Block main;
    std::vector<const Value*> tensors;  // every value that a step touches, and the inputs and outputs
    std::vector<Storage> storages;
    std::map<const Value*, size_t> storage_of;  // index in storages, for each tensor
    std::vector<size_t> arena;                  // storages in the arena, in the order of their first step
    std::vector<size_t> heap;                   // storages whose size only a run knows
    std::vector<std::string> symbols;           // open dims, then those that only a run knows
    int64_t arena_bytes = 0;                    // where all sizes are known
    int64_t weight_bytes = 0;

    bool is_gpu() const { return targets.front().is_gpu(); }
    /// Whether nothing depends on the inputs' shapes or elements.
    bool is_static() const { return symbols.empty(); }
    /// Whether the shapes are fixed, and inputs and outputs plain tensors.
    bool has_typed_run() const;
    /// Whether a dim is known before the first step.
    bool is_known_early(const Dim& dim) const;
    bool is_known_early(const TensorType& type) const;
    /// Every kernel's class, target by target.
    std::vector<const KernelSource*> classes() const {
        std::vector<const KernelSource*> classes;
        for (size_t i = 0; i < targets.size(); ++i) {
            for (const Kernel& kernel : kernels) classes.push_back(&kernel.sources[i]);
        }
        return classes;
    }
    const Storage& storage(const Value* value) const { return storages[storage_of.at(value)]; }
};

}  // namespace onnx2halide
