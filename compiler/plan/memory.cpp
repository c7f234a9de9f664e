#include "compiler/plan/memory.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/arena.h"

namespace onnx2halide {

namespace {

class MemoryPlanner {
public:
    explicit MemoryPlanner(Program& program) : program_(program) {}

    void plan() {
        for (const Step& step : program_.steps) computed_.insert(step.outputs.begin(), step.outputs.end());
        const Graph& graph = *program_.graph;
        for (size_t i = 0; i < graph.inputs.size(); ++i) new_storage(graph.inputs[i], Place::input, i);
        for (int i = 0; i < static_cast<int>(program_.steps.size()); ++i) plan_step(i);
        for (size_t i = 0; i < graph.outputs.size(); ++i) {
            Storage& storage = storage_of(graph.outputs[i]);
            if (storage.place != Place::arena)
                throw std::logic_error("output '" + graph.outputs[i]->name + "' has no storage of its own");
            storage.place = Place::output;
            storage.index = i;
        }
        place_weights();
        place_arena();
    }

private:
    void plan_step(int index) {
        const Step& step = program_.steps[index];
        for (const Value* input : step.inputs) storage_of(input).last_step = index;
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            const Value* output = step.outputs[i];
            if (const Value* dying = i == 0 ? reusable_input(step, index) : nullptr) {
                share(output, dying);
                storage_of(dying).last_step = index;
            } else {
                Storage& storage = new_storage(output, Place::arena, 0);
                storage.first_step = storage.last_step = index;
            }
        }
    }

    /// An input that this step reads for the last time, and only at the place that it writes.
    const Value* reusable_input(const Step& step, int index) {
        // On a device each tensor that a kernel writes has a handle of its own.
        if (program_.is_gpu()) return nullptr;
        const Value* output = step.outputs[0];
        for (const Node* node : step.nodes) {
            if (!make_generator(*node)->is_pointwise()) return nullptr;
        }
        for (const Value* input : step.inputs) {
            const TensorType &from = input->checked_type(), &to = output->checked_type();
            if (from.shape != to.shape || from.layout != to.layout ||
                info(from.element).bytes != info(to.element).bytes)
                continue;
            if (program_.storage(input).place == Place::arena && !is_needed_after(input, index)) return input;
        }
        return nullptr;
    }

    /// Whether a value's memory, under any view, is read after a step or by the caller.
    bool is_needed_after(const Value* value, int index) {
        const auto& outputs = program_.graph->outputs;
        if (last_uses_.empty()) {
            for (size_t i = 0; i < program_.steps.size(); ++i) {
                for (const Value* input : program_.steps[i].inputs) last_uses_[viewed(input)] = static_cast<int>(i);
            }
            for (const Value* output : outputs) last_uses_[viewed(output)] = static_cast<int>(program_.steps.size());
        }
        return last_uses_.at(viewed(value)) > index;
    }

    /// The value that a chain of views starts from. What a step computes is no view.
    const Value* viewed(const Value* value) {
        const auto [found, is_new] = viewed_.try_emplace(value, value);
        const Node* producer = value->producer;
        if (is_new && producer && !computed_.contains(value) && producer->outputs[0] == value &&
            make_generator(*producer)->is_view()) {
            found->second = viewed(producer->inputs[0]);
        }
        return viewed_.at(value);
    }

    void share(const Value* value, const Value* owner) {
        program_.storage_of[value] = program_.storage_of.at(owner);
        program_.tensors.push_back(value);
    }

    Storage& storage_of(const Value* value) {
        const auto found = program_.storage_of.find(value);
        if (found != program_.storage_of.end()) return program_.storages[found->second];
        const Value* root = viewed(value);
        if (root == value) {
            if (value->constant) return new_storage(value, Place::weight, 0);
            // No step makes what has no elements.
            if (!value->checked_type().elements().is(0))
                throw std::logic_error("value '" + value->name + "' is read before it is made");
            return new_storage(value, Place::arena, 0);
        }
        storage_of(root);
        share(value, root);
        return program_.storages[program_.storage_of.at(root)];
    }

    Storage& new_storage(const Value* value, Place place, size_t index) {
        program_.storage_of[value] = program_.storages.size();
        program_.storages.push_back({place, value, index, value->checked_type().bytes(), 0, 0, 0});
        program_.tensors.push_back(value);
        return program_.storages.back();
    }

    void place_weights() {
        for (Storage& storage : program_.storages) {
            if (storage.place != Place::weight) continue;
            storage.offset = program_.weight_bytes;
            program_.weight_bytes +=
                (*storage.bytes.constant() + ONNX2HALIDE_ALIGNMENT - 1) / ONNX2HALIDE_ALIGNMENT * ONNX2HALIDE_ALIGNMENT;
        }
    }

    void place_arena() {
        std::vector<onnx2halide_lifetime> lifetimes;
        bool is_known = true;
        for (size_t i = 0; i < program_.storages.size(); ++i) {
            const Storage& storage = program_.storages[i];
            if (storage.place != Place::arena) continue;
            program_.arena.push_back(i);
            is_known = is_known && storage.bytes.constant();
            lifetimes.push_back({storage.first_step, storage.last_step, storage.bytes.constant().value_or(0), -1});
        }
        if (!is_known) return;  // the session does the same when it knows the dims
        program_.arena_bytes = onnx2halide_place_arena(lifetimes.data(), static_cast<int>(lifetimes.size()));
        for (size_t i = 0; i < lifetimes.size(); ++i) program_.storages[program_.arena[i]].offset = lifetimes[i].offset;
    }

    Program& program_;
    std::unordered_map<const Value*, const Value*> viewed_;
    std::set<const Value*> computed_;                  // outputs of steps
    std::unordered_map<const Value*, int> last_uses_;  // of what `viewed` gives
};

}  // namespace

void plan_memory(Program& program) { MemoryPlanner(program).plan(); }

}  // namespace onnx2halide
