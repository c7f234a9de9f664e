#include "compiler/driver/fold_programs.h"

#include <dlfcn.h>

#include <array>
#include <memory>

#include <fmt/format.h>

#include "compiler/build/process.h"
#include "compiler/io/files.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/plan.h"
#include "runtime/onnx2halide_types.h"

namespace onnx2halide {

namespace {

/// A target whose code every machine of the compiler's kind can run.
std::string pinned_target() {
#if defined(__aarch64__)
    return "arm-64-linux";
#else
    return "x86-64-linux-sse41";
#endif
}

/// Plans the build of a fold program. Its ports are not packed: constants of packed types go in and out with a byte for
/// each element, as kernels have them.
ProgramBuild plan_fold(const FoldProgram& fold, size_t number, const std::filesystem::path& folder) {
    ProgramBuild build;
    PlanOptions options;
    options.name = fmt::format("fold_{}", number);
    options.for_any_model = true;
    copy_outputs(*fold.graph);
    build.program = make_program(*fold.graph, {Target::parse(pinned_target())}, options);
    build.emit.model_file = "fold program";
    build.folder = folder;
    build.kinds = {"shared_library"};
    build.runs_once = true;
    return build;
}

/// A session of a compiled model whose shared library this process has loaded.
class LoadedModel {
public:
    LoadedModel(const std::filesystem::path& library, const std::string& name)
        : name_(name), handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!handle_) throw std::runtime_error(fmt::format("{} cannot be loaded: {}", library.string(), dlerror()));
        create_ = function<Create>(name + "_create");
        run_ = function<Run>(name + "_run_values");
        error_ = function<Error>(name + "_error");
        destroy_ = function<Destroy>(name + "_destroy");
        if (create_(&session_, nullptr) != 0) throw std::runtime_error(error_(nullptr));
    }
    ~LoadedModel() {
        if (session_) destroy_(session_);
        dlclose(handle_);
    }
    LoadedModel(const LoadedModel&) = delete;

    /// Throws CompileError if a node rejects its operands, std::runtime_error for other failures.
    void run(const std::vector<onnx2halide_value>& inputs, std::vector<onnx2halide_value>& outputs) {
        const int code = run_(session_, inputs.data(), outputs.data());
        if (code == 0) return;
        const std::string text = error_(session_);
        if (code != ONNX2HALIDE_BAD_ARGUMENT) throw std::runtime_error(text);
        const std::string prefix = name_ + ": ";
        throw CompileError(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
    }

private:
    using Create = int (*)(void**, const onnx2halide_options*);
    using Run = int (*)(void*, const onnx2halide_value*, onnx2halide_value*);
    using Error = const char* (*)(const void*);
    using Destroy = void (*)(void*);

    template <typename Function>
    Function function(const std::string& name) {
        void* const found = dlsym(handle_, name.c_str());
        if (!found) throw std::runtime_error(fmt::format("{} is missing: {}", name, dlerror()));
        return reinterpret_cast<Function>(found);
    }

    const std::string name_;
    void* handle_;
    void* session_ = nullptr;
    Create create_;
    Run run_;
    Error error_;
    Destroy destroy_;
};

std::vector<Constant> run_fold(const FoldProgram& fold, const std::filesystem::path& library, const std::string& name) {
    LoadedModel model(library, name);
    std::vector<onnx2halide_value> inputs, outputs;
    for (const Value* argument : fold.arguments) {
        const Constant& constant = *argument->constant;
        const int32_t type =
            constant.element == ElementType::string ? ONNX2HALIDE_INT64 : static_cast<int32_t>(constant.element);
        inputs.push_back({ONNX2HALIDE_TENSOR, type, static_cast<int64_t>(constant.shape.size()), constant.shape.data(),
                          const_cast<std::byte*>(constant.data->data()), constant.data->size(), nullptr, 0, nullptr});
    }
    std::vector<std::shared_ptr<std::vector<std::byte>>> buffers;
    for (const Value* result : fold.results) {
        // The session provides the memory of results whose sizes are found at run time.
        const auto size = result->checked_type().bytes().constant();
        buffers.push_back(size ? std::make_shared<std::vector<std::byte>>(*size) : nullptr);
        outputs.push_back({});
        if (size)
            outputs.back() = {ONNX2HALIDE_TENSOR,     0,       0, nullptr, buffers.back()->data(),
                              buffers.back()->size(), nullptr, 0, nullptr};
    }
    model.run(inputs, outputs);
    std::vector<Constant> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
        const ElementType element = fold.results[i]->checked_type().element;
        std::vector<int64_t> shape(outputs[i].dims, outputs[i].dims + outputs[i].rank);
        if (!buffers[i]) {
            const auto* data = static_cast<const std::byte*>(outputs[i].data);
            const int64_t size = *TensorType(element, {shape.begin(), shape.end()}).bytes().constant();
            buffers[i] = std::make_shared<std::vector<std::byte>>(data, data + size);
        }
        results.push_back({element, std::move(shape), std::move(buffers[i]), {}});
    }
    return results;
}

}  // namespace

void run_fold_programs(std::span<FoldJob* const> jobs, int parallel, const Progress& progress) {
    const TemporaryFolder folder;
    std::vector<ProgramBuild*> builds;
    for (FoldJob* job : jobs) {
        if (!job->program.graph) continue;
        job->build = plan_fold(job->program, builds.size(), folder.path());
        builds.push_back(&job->build);
    }
    build_programs(builds, parallel, progress);
    for (FoldJob* job : jobs) {
        if (!job->program.graph || job->build.fault) continue;
        const std::string& name = job->build.program.name;
        try {
            set_results(job->program, run_fold(job->program, folder.path() / (name + ".so"), name));
        } catch (const std::exception& error) {
            job->build.fault = fault_of(error);
        }
    }
}

bool fold_node(Node& node, int parallel) {
    try {
        FoldJob job{copy_fold_program(node)};
        if (!job.program.graph) return false;
        expand_composites(*job.program.graph);
        allow_empty(*job.program.graph);
        run_fold_programs(std::array{&job}, parallel, nullptr);
        return !job.build.fault;
    } catch (const std::runtime_error&) {
        return false;
    }
}

}  // namespace onnx2halide
