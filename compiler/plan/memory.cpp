#include "compiler/plan/memory.h"

#include <algorithm>
#include <climits>
#include <set>
#include <string_view>
#include <unordered_map>

#include "ops/control_flow.h"
#include "runtime/arena.h"

namespace onnx2halide {

namespace {

class MemoryPlanner {
public:
    MemoryPlanner(Program& program, bool in_place) : program_(program), in_place_(in_place) {}

    void plan() {
        for_each_step(program_.main,
                      [&](const Step& step) { computed_.insert(step.outputs.begin(), step.outputs.end()); });
        for_each_step(program_.main, [&](const Step& step) { note_uses(step); });
        const Graph& graph = *program_.graph;
        note_wholes(program_.main);
        for (const Value* output : graph.outputs) last_uses_[viewed(output)] = INT_MAX;
        for (size_t i = 0; i < graph.inputs.size(); ++i) new_storage(graph.inputs[i], StorageClass::input, i);
        plan_block(program_.main);
        for (size_t i = 0; i < graph.outputs.size(); ++i) {
            Storage& storage = storage_of(graph.outputs[i]);
            if (storage.storage_class != StorageClass::arena)
                throw std::logic_error("output '" + graph.outputs[i]->name + "' has no storage of its own");
            // The caller's memory must be known before the first step. Other outputs, which may be views of memory in
            // the arena, are delivered after the last one.
            if (!program_.is_known_before_run(graph.outputs[i]->checked_type())) {
                if (!program_.main.steps.empty()) extend(graph.outputs[i], program_.main.steps.back().last);
                continue;
            }
            storage.storage_class = StorageClass::output;
            storage.index = i;
        }
        place_weights();
        place_arena();
    }

private:
    /// Notes the last uses of a step's inputs, and which values of its blocks are captures.
    void note_uses(const Step& step) {
        for (const Value* input : step.inputs) {
            if (input) last_uses_[viewed(input)] = std::max(last_uses_[viewed(input)], step.last);
        }
        if (step.kind == Step::Kind::branch) {
            for (const Block& block : step.blocks) note_captures(step.inputs, 1, block.graph->inputs, 0);
        } else if (step.kind == Step::Kind::repetition) {
            const Repetition repetition(step.node());
            for (const Repetition::Capture& capture : repetition.captures)
                viewed_[capture.inner] = viewed(capture.outer);
            for (const Repetition::State& state : repetition.states) next_[state.input] = state.output;
        }
        for (const Block& block : step.blocks) {
            for (const Value* output : block.graph->outputs) last_uses_[viewed(output)] = step.last;
        }
    }

    void note_wholes(const Block& block) {
        for (const auto& node : block.graph->nodes()) {
            for (const Value* output : node->outputs) {
                if (output && output->part) wholes_.insert(output->part->whole);
            }
        }
        for (const Step& step : block.steps) {
            for (const Block& inner : step.blocks) note_wholes(inner);
        }
    }

    void note_captures(const std::vector<const Value*>& outer, size_t first, const std::vector<Value*>& inner,
                       size_t first_inner) {
        for (size_t i = first; i < outer.size(); ++i) viewed_[inner[first_inner + i - first]] = viewed(outer[i]);
    }

    void plan_block(const Block& block) {
        for (const Step& step : block.steps) {
            switch (step.kind) {
            case Step::Kind::branch: plan_branch(step); break;
            case Step::Kind::repetition: plan_repetition(step); break;
            default: plan_step(step, &block == &program_.main);
            }
            // Blocks may read their captures until the last iteration, also through views of their own.
            for (const Value* input : step.inputs) {
                if (input && program_.storage_of.contains(viewed(input))) extend(viewed(input), step.last);
            }
        }
    }

    void plan_step(const Step& step, bool is_in_main) {
        for (const Value* input : step.inputs) {
            if (input) extend(input, step.first);
        }
        if (is_in_main && is_view_if_whole(step)) return plan_view_if_whole(step);
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            const Value* output = step.outputs[i];
            if (!output) continue;
            if (output->part) {
                lay_in_whole(output, step.first);
            } else if (const auto whole = program_.storage_of.find(output); whole != program_.storage_of.end()) {
                extend(output, step.first);  // parts of it have been written
            } else if (const Value* dying = i == 0 ? reusable_input(step) : nullptr) {
                share(output, dying);
            } else {
                new_storage(output, StorageClass::arena, 0, step.first, step.first);
            }
        }
    }

    /// Whether the result of a kernel may turn out to be a view of its input. Outputs of the model are not, as the
    /// caller may still read them when the input has changed.
    bool is_view_if_whole(const Step& step) const {
        if (program_.is_gpu() || step.kind != Step::Kind::kernel || step.nodes.size() != 1) return false;
        const Node& node = *step.nodes[0];
        if (!make_generator(node)->is_view_if_whole()) return false;
        const Value *input = node.inputs.at(0), *output = node.outputs.at(0);
        const auto last = last_uses_.find(output);
        return !program_.is_known_before_run(output->checked_type()) && lie_in_same_order(*input, *output) &&
               last != last_uses_.end() && last->second != INT_MAX;
    }

    static bool lie_in_same_order(const Value& a, const Value& b) {
        return !a.part && !b.part && a.checked_type().layout == b.checked_type().layout;
    }

    /// The input stays as it is until the last use of the result.
    void plan_view_if_whole(const Step& step) {
        const Value *input = step.nodes[0]->inputs[0], *output = step.nodes[0]->outputs[0];
        const int last = last_uses_.at(output);
        program_.views_if_whole[output] = input;
        new_storage(output, StorageClass::arena, 0, step.first, step.first);
        last_uses_[viewed(input)] = std::max(last_uses_[viewed(input)], last);
        extend(input, last);
    }

    /// Makes a part share the storage of its whole, whose lifetime starts with its first part.
    void lay_in_whole(const Value* part, int step) {
        const Value* whole = part->part->whole;
        if (!program_.storage_of.contains(whole)) new_storage(whole, StorageClass::arena, 0, step, step);
        extend(whole, step);
        share(part, whole);
    }

    /// Each branch writes its results to the storage of the node's results.
    void plan_branch(const Step& step) {
        extend(step.inputs.at(0), step.first);
        for (const Value* output : step.outputs) {
            if (output) new_storage(output, StorageClass::arena, 0, step.first, step.last);
        }
        for (const Block& block : step.blocks) {
            plan_block(block);
            for (size_t i = 0; i < step.outputs.size(); ++i) {
                const Value* inner = block.graph->outputs[i];
                step.outputs[i] ? merge(storage_of(inner), step.outputs[i]) : extend(inner, step.last);
            }
        }
    }

    void plan_repetition(const Step& step) {
        const Repetition repetition(step.node());
        for (const Value* own : {repetition.iteration_number, repetition.condition_input}) {
            if (own) new_storage(own, StorageClass::arena, 0, step.first, step.last);
        }
        // A count that inference knows is not read from the tensor.
        if (repetition.trip_count && !repetition.trip_count->known) extend(repetition.trip_count, step.first);
        if (repetition.condition) extend(repetition.condition, step.first);
        for (const Repetition::State& state : repetition.states) {
            extend(state.initial, step.first);
            new_storage(state.input, StorageClass::arena, 0, step.first, step.last);
            if (state.result) share(state.result, state.input);
        }
        for (const Repetition::ScanInput& input : repetition.scan_inputs) {
            extend(input.whole, step.last);
            new_storage(input.slice, StorageClass::slice, 0, step.first, step.last).whole = input.whole;
        }
        for (const Repetition::ScanOutput& output : repetition.scan_outputs) {
            if (output.whole) new_storage(output.whole, StorageClass::arena, 0, step.first, step.last);
        }
        plan_block(step.blocks[0]);
        for (const Value* output : step.blocks[0].graph->outputs) extend(output, step.last);
        for (const Repetition::ScanOutput& output : repetition.scan_outputs) place_slice(output);
    }

    /// Makes the iterations write a slice directly into the stacked result, if the size of that is known early.
    void place_slice(const Repetition::ScanOutput& output) {
        if (!output.whole || !program_.is_known_before_run(output.whole->checked_type())) return;
        Storage& storage = storage_of(output.slice);
        const bool has_parts = has_parts_.contains(program_.storage_of.at(output.slice));
        if (storage.storage_class != StorageClass::arena || next_.contains(storage.root) || has_parts) return;
        storage.storage_class = StorageClass::slice;
        storage.whole = output.whole;
    }

    void extend(const Value* value, int last) {
        Storage& storage = storage_of(value);
        storage.last_step = std::max(storage.last_step, last);
    }

    /// Moves all values with this storage to that of `value`.
    void merge(const Storage& storage, const Value* value) {
        const size_t from = &storage - program_.storages.data(), to = program_.storage_of.at(value);
        for (auto& [other, index] : program_.storage_of) {
            if (index == from) index = to;
        }
        program_.storages[from].storage_class = StorageClass::none;
    }

    /// An input whose memory the step's output can reuse: the step is its last use, and reads each element only to
    /// compute the one at the same position. Null if there is none.
    const Value* reusable_input(const Step& step) {
        // Kernels for a GPU are compiled on the promise that their inputs and outputs do not overlap.
        if (!in_place_ || program_.is_gpu() || step.kind != Step::Kind::kernel) return nullptr;
        const Value* output = step.outputs[0];
        for (const Node* node : step.nodes) {
            if (!make_generator(*node)->is_pointwise()) return nullptr;
        }
        for (const Value* input : step.inputs) {
            const TensorType &from = input->checked_type(), &to = output->checked_type();
            if (!lie_alike(from, to) || info(from.element).bytes != info(to.element).bytes) continue;
            const Storage& storage = program_.storage(input);
            // A size that is known at run time only may not fit into the storage of a result of known size.
            if (program_.is_known_before_run(to) && !program_.is_known_before_run(storage.root->checked_type()))
                continue;
            if (has_parts_.contains(program_.storage_of.at(input)) || is_read_elsewhere(step, input)) continue;
            if (program_.views_if_whole.contains(storage.root)) continue;
            // Only the value that the next iteration takes may overwrite a loop-carried value.
            const auto next = next_.find(storage.root);
            if (next != next_.end() && next->second != output) continue;
            if (storage.storage_class == StorageClass::arena && last_uses_.at(viewed(input)) <= step.first)
                return input;
        }
        return nullptr;
    }

    /// Whether elements at the same coordinates of two tensors have the same position in memory.
    static bool lie_alike(const TensorType& a, const TensorType& b) {
        return a.shape == b.shape && a.layout == b.layout;
    }

    /// Whether a step also reads the memory of an input in another layout, like a matrix and its transpose.
    bool is_read_elsewhere(const Step& step, const Value* input) const {
        const size_t storage = program_.storage_of.at(input);
        return std::any_of(step.inputs.begin(), step.inputs.end(), [&](const Value* other) {
            return program_.storage_of.at(other) == storage && !lie_alike(other->checked_type(), input->checked_type());
        });
    }

    /// The value that a chain of views and captures starts from. A value that a step computes is not a view.
    const Value* viewed(const Value* value) {
        const auto [found, is_new] = viewed_.try_emplace(value, value);
        if (!is_new || computed_.contains(value)) return found->second;
        const Node* view = view_of(value);
        return view ? viewed_[value] = viewed(view->inputs[0]) : value;
    }

    void share(const Value* value, const Value* owner) {
        program_.storage_of[value] = program_.storage_of.at(owner);
        program_.tensors.push_back(value);
        note_parts(value);
    }

    Storage& storage_of(const Value* value) {
        const auto found = program_.storage_of.find(value);
        if (found != program_.storage_of.end()) return program_.storages[found->second];
        const Value* root = viewed(value);
        if (root == value) {
            if (value->constant) return new_storage(value, StorageClass::weight, 0);
            // A value that is a part of another, such as an output of Split, may have no step of its own.
            if (value->part && program_.storage_of.contains(value->part->whole)) {
                share(value, value->part->whole);
                return program_.storages[program_.storage_of.at(value)];
            }
            // No step computes a value without elements.
            if (!value->checked_type().elements().is(0))
                throw std::logic_error("value '" + value->name + "' is read before it is made");
            return new_storage(value, StorageClass::arena, 0);
        }
        storage_of(root);
        share(value, root);
        return program_.storages[program_.storage_of.at(root)];
    }

    Storage& new_storage(const Value* value, StorageClass storage_class, size_t index, int first = 0, int last = 0) {
        program_.storage_of[value] = program_.storages.size();
        program_.storages.push_back(
            {storage_class, value, index, nullptr, value->checked_type().bytes(), first, last, 0});
        program_.tensors.push_back(value);
        note_parts(value);
        return program_.storages.back();
    }

    void note_parts(const Value* value) {
        if (wholes_.contains(value)) has_parts_.insert(program_.storage_of.at(value));
    }

    /// Equal weights have one place: the branches of an If, or a Loop and its graph, often read the same ones, which
    /// each graph packs for itself.
    void place_weights() {
        std::unordered_map<std::string_view, int64_t> offsets;
        for (Storage& storage : program_.storages) {
            if (storage.storage_class != StorageClass::weight) continue;
            const std::vector<std::byte>& data = *storage.root->constant->data;
            const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
            const auto [found, is_new] = offsets.emplace(bytes, program_.weight_bytes);
            storage.offset = found->second;
            if (!is_new) continue;
            const auto stored = static_cast<size_t>(*storage.bytes.constant());
            program_.weight_bytes += static_cast<int64_t>(onnx2halide_aligned(stored));
        }
    }

    void place_arena() {
        std::vector<onnx2halide_lifetime> lifetimes;
        bool is_known = true;
        for (size_t i = 0; i < program_.storages.size(); ++i) {
            Storage& storage = program_.storages[i];
            if (storage.storage_class != StorageClass::arena) continue;
            // Also a shape without elements, of which steps find the other extents.
            if (!program_.is_known_before_run(storage.root->checked_type())) {
                storage.storage_class = StorageClass::heap;
                storage.index = program_.heap.size();
                program_.heap.push_back(i);
                continue;
            }
            program_.arena.push_back(i);
            is_known = is_known && storage.bytes.constant();
            lifetimes.push_back({storage.first_step, storage.last_step, storage.bytes.constant().value_or(0), -1});
        }
        if (!is_known) return;  // the session does the same once the dims are known
        program_.arena_bytes = onnx2halide_place_arena(lifetimes.data(), static_cast<int>(lifetimes.size()));
        for (size_t i = 0; i < lifetimes.size(); ++i) program_.storages[program_.arena[i]].offset = lifetimes[i].offset;
    }

    Program& program_;
    bool in_place_;  // whether pointwise kernels may overwrite an input
    std::unordered_map<const Value*, const Value*> viewed_;
    std::set<const Value*> computed_;                  // outputs of steps
    std::set<const Value*> wholes_;                    // values that others are parts of
    std::set<size_t> has_parts_;                       // storages of values that have parts
    std::unordered_map<const Value*, int> last_uses_;  // steps, by the result of `viewed`
    std::map<const Value*, const Value*> next_;        // the new value of each loop-carried one after an iteration
};

}  // namespace

void plan_memory(Program& program, bool in_place) { MemoryPlanner(program, in_place).plan(); }

}  // namespace onnx2halide
