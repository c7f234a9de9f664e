#pragma once

#include <cstddef>
#include <vector>

#include "compiler/build/process.h"

namespace onnx2halide {

/// Calls task(job) for each job that has not failed, on up to `parallel` threads. A Fault that it throws fails that job
/// alone; the first exception of another type is thrown again when all calls have ended. A Job has is_valid() and
/// fail(const Fault&).
template <typename Fault, typename Job, typename Task>
void for_each_valid(std::vector<Job>& jobs, int parallel, const Task& task) {
    run_parallel(parallel, jobs.size(), [&](size_t i) {
        if (!jobs[i].is_valid()) return;
        try {
            task(jobs[i]);
        } catch (const Fault& fault) {
            jobs[i].fail(fault);
        }
    });
}

}  // namespace onnx2halide
