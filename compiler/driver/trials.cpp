#include "compiler/driver/trials.h"

#include "compiler/driver/manifest.h"
#include "compiler/driver/tuning_file.h"
#include "compiler/io/files.h"

namespace onnx2halide {

namespace {

Manifest kernel_json(const Kernel& kernel, const GeneratorRun& run) {
    const KernelSource& source = kernel.source();
    auto params = Manifest::array();
    for (const KernelSource::Param& param : source.params())
        params.push_back({{"role", param.role}, {"name", param.name}, {"value", param.value}, {"own", param.own}});
    return {{"name", source.class_name()},
            {"key", tuning_key(source.target(), kernel.canonical.front())},
            {"program", run.program.filename()},
            {"registered", run.registered},
            {"target", run.target},
            {"inputs", source.inputs().size()},
            {"symbols", source.symbols().size()},
            {"outputs", source.outputs().size()},
            {"params", params}};
}

}  // namespace

void write_trials(const Program& program, const KernelJob& job) {
    auto kernels = Manifest::array();
    for (const Kernel& kernel : program.kernels) {
        const std::string& name = kernel.source().class_name();
        write_file(job.programs / (name + ".o"), read_text(job.folder / (name + ".o")));
        kernels.push_back(kernel_json(kernel, job.runs.at(name)));
    }
    const Manifest json = {{"target", program.targets.front().text}, {"kernels", kernels}};
    write_file(job.programs / "trials.json", json.dump(2) + "\n");
}

}  // namespace onnx2halide
