#include "ops/schedule/target.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Halide.h>

#include "runtime/matrix_registers.h"

namespace onnx2halide {

namespace {

using Feature = Halide::Target::Feature;

/// The features that Halide implies by a feature; entries for implied features come after.
constexpr std::pair<Feature, Feature> implied_features[] = {
    {Feature::AVX512_Zen5, Feature::AVX512_Zen4},
    {Feature::AVX512_Zen5, Feature::AVXVNNI},
    {Feature::AVX512_Zen4, Feature::AVX512_Cannonlake},
    {Feature::AVX512_SapphireRapids, Feature::AVX512_Cannonlake},
    {Feature::AVX512_Cannonlake, Feature::AVX512_Skylake},
    {Feature::AVX512_Skylake, Feature::AVX512},
    {Feature::AVX512_KNL, Feature::AVX512},
    {Feature::AVX512, Feature::AVX2},
    {Feature::AVXVNNI, Feature::AVX2},
    {Feature::AVX2, Feature::F16C},
    {Feature::AVX2, Feature::FMA},
    {Feature::AVX2, Feature::AVX},
    {Feature::AVX, Feature::SSE41},
    {Feature::SVE2, Feature::SVE},
};

void read_features(Halide::Target halide, Target& target) {
    std::vector<Feature> implied;
    for (const auto& [feature, implies] : implied_features) {
        if (!halide.has_feature(feature)) continue;
        halide.set_feature(implies);
        implied.push_back(implies);
    }
    target.features.assign((Feature::FeatureEnd + 63) / 64, 0);
    std::vector<std::string> names;
    for (int i = 0; i < Feature::FeatureEnd; ++i) {
        const auto feature = static_cast<Feature>(i);
        if (!halide.has_feature(feature)) continue;
        target.features[i / 64] |= uint64_t{1} << (i % 64);
        if (std::find(implied.begin(), implied.end(), feature) == implied.end())
            names.push_back(Halide::Target::feature_to_name(feature));
    }
    const char* processor = halide.arch == Halide::Target::ARM ? "arm" : "x86";
    target.short_name =
        names.empty() ? fmt::format("{}_{}", processor, halide.bits) : fmt::format("{}", fmt::join(names, "_"));
}

/// Whether every machine that has `best` has `other` as well.
bool has_all_of(const Target& best, const Target& other) {
    for (size_t i = 0; i < best.features.size(); ++i) {
        if ((other.features[i] & ~best.features[i]) != 0) return false;
    }
    return true;
}

bool is_same_processor(const Target& a, const Target& b) {
    const Halide::Target first(a.text), second(b.text);
    return first.arch == second.arch && first.bits == second.bits && first.os == second.os;
}

/// Throws CompileError if two targets cannot be in one library.
void check_pair(const Target& before, const Target& after) {
    if (before.is_gpu() || after.is_gpu())
        throw CompileError("'{}' cannot be combined with another target, expected instruction sets of one processor",
                           before.is_gpu() ? before.text : after.text);
    if (!is_same_processor(before, after))
        throw CompileError("'{}' and '{}' are not for one processor", before.text, after.text);
    if (has_all_of(after, before))
        throw CompileError("'{}' would never be chosen: its machines have '{}', which comes before it", after.text,
                           before.text);
}

/// Whether Halide takes a target. For some, such as one with an instruction set of another processor, it throws.
bool is_known(const std::string& text) {
    try {
        return Halide::Target::validate_target_string(text) && !Halide::Target(text).to_string().empty();
    } catch (const Halide::Error&) {
        return false;
    }
}

/// This machine's target without matrix instructions, if the operating system does not let processes use them: Zen 4
/// has all that Sapphire Rapids adds to earlier processors but those.
Halide::Target without_forbidden(Halide::Target target) {
    if (!target.has_feature(Feature::AVX512_SapphireRapids) || onnx2halide_may_multiply_matrices()) return target;
    return target.without_feature(Feature::AVX512_SapphireRapids).with_feature(Feature::AVX512_Zen4);
}

/// The target without the features that give vectors of floats another length than those of integers, which are AVX
/// without AVX2 and AVX-512 without Skylake's part: schedules assume that they are equal.
Halide::Target with_one_vector_size(Halide::Target target) {
    const auto has_one = [&] {
        return target.natural_vector_size(Halide::Float(32)) * 4 == target.natural_vector_size(Halide::UInt(8));
    };
    if (has_one()) return target;
    if (target.features_any_of({Feature::AVX512, Feature::AVX512_KNL})) {
        for (const Feature feature : {Feature::AVX2, Feature::AVX, Feature::FMA, Feature::F16C, Feature::SSE41})
            target.set_feature(feature);
        target.set_features({Feature::AVX512, Feature::AVX512_KNL}, false);
    } else {
        target.set_feature(Feature::SSE41);
        target.set_feature(Feature::AVX, false);
    }
    return target;
}

}  // namespace

Target Target::parse(const std::string& text) {
    if (!is_known(text))
        throw CompileError(
            "'{}' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, "
            "arm-64-linux or host-opencl",
            text);
    Halide::Target halide(text);
    const bool is_processor = halide.arch == Halide::Target::X86 || halide.arch == Halide::Target::ARM;
    const bool is_gpu = halide.has_feature(Halide::Target::OpenCL) || halide.has_feature(Halide::Target::CUDA);
    if (!is_processor || halide.os != Halide::Target::Linux || halide.has_gpu_feature() != is_gpu) {
        throw CompileError("'{}' is not supported, expected Linux on x86 or ARM, and of GPUs opencl or cuda", text);
    }
    // The host program is C.
    if (halide.has_feature(Halide::Target::CPlusPlusMangling))
        throw CompileError("'{}' is not supported, expected kernels with C names, not c_plus_plus_name_mangling", text);
    if (text.starts_with("host")) halide = without_forbidden(halide);
    halide = with_one_vector_size(halide);
    Target target;
    target.text = halide.to_string();
    read_features(halide, target);
    target.vector_bytes = halide.natural_vector_size(Halide::UInt(8));
    const bool is_arm = halide.arch == Halide::Target::ARM;
    target.has_masks = halide.has_feature(Halide::Target::AVX512_Skylake);
    target.vector_registers = is_arm || target.has_masks ? 32 : 16;
    // What tiles load, the same offset in neighbouring pixels or rows, is often in one bank of the nearest cache, which
    // processors without AVX-512 access serially: of 14 loads they start three per two cycles (measured on Zen 3).
    // There, prefetching pixels of 1024 channels takes a quarter longer than leaving them to the hardware.
    if (!is_arm && !target.has_masks) {
        target.loads = 1.5;
        target.level2_bytes = 512 << 10;
        target.memory_rate = 4;
        target.follows_runs = true;
    }
    // On x86 a multiply-add has a memory operand. Inputs that several vectors share are loaded before, and on ARM all
    // operands are; LLVM issues several such loads ahead, and with fewer registers for them it spills sums. With only
    // 16 registers, fewer sums cost more than the spills.
    if (is_arm) target.operand_registers = 5;
    if (target.has_masks) target.operand_registers = 3;
    // Zen 4's units are half as wide as AVX-512's registers.
    if (halide.processor_tune == Halide::Target::ZnVer4 && target.vector_bytes == 64) target.multiply_adds = 1;
    if (halide.has_feature(Halide::Target::OpenCL)) target.gpu = Gpu::opencl;
    if (halide.has_feature(Halide::Target::CUDA)) target.gpu = Gpu::cuda;
    // With VNNI one instruction multiplies pairs and adds them to a sum; without it, this takes two.
    const std::vector<Halide::Target::Feature> vnni = {Halide::Target::AVXVNNI, Halide::Target::AVX512_Zen4,
                                                       Halide::Target::AVX512_SapphireRapids};
    const bool has_vnni = halide.features_any_of(vnni);
    if (!is_arm && !target.is_gpu()) target.pair_rate = has_vnni ? 2 : 1, target.quad_rate = has_vnni ? 4 : 0;
    target.multiplies_matrices = halide.has_feature(Halide::Target::AVX512_SapphireRapids) && !target.is_gpu();
    return target;
}

std::vector<Target> parse_targets(const std::string& list) {
    if (list.empty()) return {Target::parse("host")};
    std::vector<Target> targets;
    // With a comma at the end, the last target is empty.
    std::istringstream stream(list + ",");
    for (std::string text; std::getline(stream, text, ',');) {
        targets.push_back(Target::parse(text));
        for (size_t i = 0; i + 1 < targets.size(); ++i) check_pair(targets[i], targets.back());
    }
    return targets;
}

std::string targets_text(const std::vector<Target>& targets) {
    std::vector<std::string> texts;
    for (const Target& target : targets) texts.push_back(target.text);
    return fmt::format("{}", fmt::join(texts, ","));
}

int Target::lanes(ElementType type) const {
    const int bytes = info(type).bytes;
    return bytes > 0 && bytes < vector_bytes ? vector_bytes / bytes : 1;
}

}  // namespace onnx2halide
