#pragma once

#include <memory>
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

/// One call of the host program.
struct Step {
    size_t kernel;  // index in Program::kernels
    std::vector<const Node*> nodes;
    std::vector<const Value*> inputs;  // in the order of the kernel's inputs
    std::vector<const Value*> outputs;
    std::vector<Dim> arguments;  // one for each of the kernel's symbols
};

/// Where a tensor's bytes live.
enum class Place {
    input,   // the caller's memory, read only
    output,  // the caller's memory
    weight,  // the archive's or the weights file's
    arena,   // the session's
};

/// A range of memory that one tensor, its views and those computed in place share.
struct Storage {
    Place place = Place::arena;
    const Value* root = nullptr;  // the value that names it
    size_t index = 0;             // among inputs or outputs
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
    std::vector<Step> steps;
    std::vector<const Value*> tensors;  // every value that a step touches, and the inputs and outputs
    std::vector<Storage> storages;
    std::map<const Value*, size_t> storage_of;  // index in storages, for each tensor
    std::vector<size_t> arena;                  // storages in the arena, in the order of their first step
    int64_t arena_bytes = 0;                    // where all sizes are known
    int64_t weight_bytes = 0;

    bool is_gpu() const { return targets.front().is_gpu(); }
    bool is_static() const { return graph->symbols.empty(); }
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
