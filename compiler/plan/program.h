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

/// A generator class: the sources that an anchor node and the pointwise nodes around it have written.
struct Kernel {
    std::string name;                    // of the C function and, if there is one target, of the class
    std::vector<const Node*> nodes;      // of the first group that it serves, in order
    std::vector<std::string> served;     // the last node's name for each of the other groups
    std::vector<KernelSource> sources;   // one for each target; all have the same parameters
    std::vector<std::string> canonical;  // the sources with numbered names; equal for kernels that compute the same
    Dim flops;

    const KernelSource& source() const { return sources.front(); }
};

/// A call of a kernel.
struct KernelCall {
    size_t kernel = 0;                 // index in Program::kernels
    std::vector<const Value*> inputs;  // in the order of the kernel's inputs
    std::vector<Dim> arguments;        // one for each of the kernel's symbols
};

/// A choice between two kernels. The second is called if its estimate, which may depend on open dims, is lower.
struct KernelChoice {
    Dim first_cycles, second_cycles;
};

struct Block;

/// One statement of the host program.
struct Step {
    enum class Kind {
        kernel,      // calls a kernel, or one of two
        host,        // calls a function in runtime/
        branch,      // an If: runs one of two blocks
        repetition,  // a Loop or Scan: runs a block repeatedly
    };
    Kind kind = Kind::kernel;
    std::vector<KernelCall> calls;
    std::optional<KernelChoice> choice;  // if there are two calls
    std::vector<const Node*> nodes;
    std::vector<const Value*> inputs;  // of all calls, or those of the node; null where omitted
    std::vector<const Value*> outputs;
    std::vector<Block> blocks;  // then and else, or the body
    int first = 0, last = 0;    // its number among all steps; those in its blocks have the numbers in between

    const Node& node() const { return *nodes.front(); }
};

/// A sequence of steps: the model's, a branch's, or those of a loop body.
struct Block {
    std::string name;  // of its C function
    const Graph* graph = nullptr;
    std::vector<Step> steps;
};

/// Calls `visit` for each step, including those of inner blocks, in the order of the text.
void for_each_step(const Block& block, const std::function<void(const Step&)>& visit);

/// The kind of memory that a tensor lives in.
enum class StorageClass {
    input,   // the caller's memory, read only
    output,  // the caller's memory
    weight,  // of the archive or the weights file
    arena,   // the session's memory
    heap,    // the session's memory, for a size that is known at run time only
    slice,   // a slice of another tensor, the next one in each iteration
    none,    // no memory: another storage has taken over its tensors
};

/// A range of memory that a tensor shares with its views and with results computed in place.
struct Storage {
    StorageClass storage_class = StorageClass::arena;
    const Value* root = nullptr;   // the value that names it
    size_t index = 0;              // among inputs or outputs, or in Program::heap
    const Value* whole = nullptr;  // the tensor that a slice belongs to
    Dim bytes;
    int first_step = 0, last_step = 0;  // its lifetime, both steps included
    int64_t offset = 0;                 // in the weights, or in the arena if all sizes are known at compile time
};

class SymbolicCopy;

/// The host program: steps on tensors whose storage is planned.
struct Program {
    std::string name;
    const Graph* graph = nullptr;
    std::vector<Target> targets;                              // best first
    std::vector<std::shared_ptr<const SymbolicCopy>> copies;  // the groups that kernels with symbols as extents are for
    std::vector<Kernel> kernels;
    Block main;
    std::vector<const Value*> tensors;  // every value that a step reads or writes, and the inputs and outputs
    std::vector<Storage> storages;
    std::map<const Value*, size_t> storage_of;  // index in storages, for each tensor
    std::vector<size_t> arena;                  // storages in the arena, in the order of their first step
    std::vector<size_t> heap;                   // storages whose size is known at run time only
    /// Of those, results that alias another tensor in runs in which both have the same shape, and are copies in others.
    std::map<const Value*, const Value*> views_if_whole;
    std::vector<std::string> symbols;  // open dims, then those that steps set
    int64_t arena_bytes = 0;           // if all sizes are known, else 0
    int64_t weight_bytes = 0;

    bool is_gpu() const { return targets.front().is_gpu(); }
    /// Whether no size depends on the inputs' shapes or elements.
    bool is_static() const { return symbols.empty(); }
    bool has_symbol(const std::string& name) const;
    /// Whether the program is static and all inputs and outputs are tensors of numbers.
    bool has_typed_run() const;
    /// Whether a dim, or all dims of a shape, are known before the first step.
    bool is_known_before_run(const Dim& dim) const;
    bool is_known_before_run(const TensorType& type) const;
    /// Whether a tensor's address or shape is found only while the steps run.
    bool is_late(const Value* tensor) const;
    /// The classes of all kernels, target by target.
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
