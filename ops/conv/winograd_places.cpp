#include "ops/conv/winograd_places.h"

#include <algorithm>
#include <tuple>

namespace onnx2halide {

namespace {

/// Tiles that are possible for all of these convolutions, which share weights.
std::vector<PerAxis> choices_of_places(std::span<const WinogradLoops> convs) {
    const bool have_lanes = std::ranges::any_of(convs, &WinogradLoops::places_are_lanes);
    std::vector<PerAxis> choices;
    std::vector<int> numbers = {1};
    numbers.insert(numbers.end(), winograd_places.begin(), winograd_places.end());
    for (const int rows : numbers) {
        for (const int columns : numbers) {
            // Vectors of 4, 6 or 8 lanes are cheap.
            const bool are_odd_lanes = have_lanes && (columns > 1 ? columns : rows) % 2 != 0;
            if (rows * columns > most_places || are_odd_lanes || !has_tiles(convs.front().kernel, {rows, columns}))
                continue;
            const bool are_exact = std::ranges::all_of(convs, [&](const WinogradLoops& conv) {
                return conv.with_places({rows, columns}).holds_integers();
            });
            if (are_exact) choices.push_back({rows, columns});
        }
    }
    return choices;
}

/// The loops for images of the usual sizes, if the size is open.
std::vector<WinogradLoops> usual_images(const WinogradLoops& loops) {
    if (!loops.is_open()) return {loops};
    const std::vector<int64_t> heights = usual_extents(loops.height), widths = usual_extents(loops.width);
    std::vector<WinogradLoops> images;
    for (size_t i = 0; i < heights.size(); ++i) {
        WinogradLoops& image = images.emplace_back(loops);
        if (loops.are_open[0]) image.height = heights[i];
        if (loops.are_open[1]) image.width = widths[i];
    }
    return images;
}

/// A convolution of images of the usual sizes, and what the direct algorithm takes for each.
class Yardstick {
public:
    Yardstick(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target)
        : policy_(policy), target_(target), images_(usual_images(loops)) {
        for (const WinogradLoops& image : images_) direct_.push_back(direct_cycles(image, policy, target));
    }

    /// Cycles of the direct algorithm, on average of the sizes.
    double mean_direct() const {
        return mean([&](size_t i) { return direct_[i]; });
    }
    /// The time that tiles of these places take relative to the direct algorithm, on average of the sizes; nullopt if
    /// they are neither faster nor requested.
    std::optional<double> time_if_gaining(const PerAxis& places) const {
        constexpr double least_gain = 1.03;
        const double time = mean(
            [&](size_t i) { return whole_walk(images_[i].with_places(places), policy_, target_).cycles / direct_[i]; });
        const bool gains = policy_.algorithm == ConvAlgorithm::winograd || time * least_gain <= 1;
        return gains ? std::optional(time) : std::nullopt;
    }

private:
    const ConvPolicy& policy_;
    const Target& target_;
    std::vector<WinogradLoops> images_;
    std::vector<double> direct_;  // cycles of each image

    template <typename Number>
    double mean(const Number& number) const {
        double sum = 0;
        for (size_t i = 0; i < images_.size(); ++i) sum += number(i);
        return sum / static_cast<double>(images_.size());
    }
};

/// By how much a choice may be slower than the fastest if it has fewer weights, or is simpler: more if the size, and
/// with it the estimate, is open.
double tolerance(std::span<const WinogradLoops> convs) {
    return std::ranges::any_of(convs, &WinogradLoops::is_open) ? 1.1 : 1.03;
}

}  // namespace

std::vector<std::optional<PerAxis>> choose_places(std::span<const WinogradLoops> convs, const ConvPolicy& policy,
                                                  const Target& target) {
    std::vector<std::optional<PerAxis>> chosen(convs.size());
    if (policy.algorithm == ConvAlgorithm::direct || target.is_gpu()) return chosen;
    struct Choice {
        PerAxis places;
        std::vector<bool> gain;  // which convolutions do
        double cycles;
        int64_t weights;  // bytes
    };
    std::vector<Yardstick> yardsticks;
    for (const WinogradLoops& conv : convs) yardsticks.emplace_back(conv, policy, target);
    std::vector<Choice> choices;
    for (const PerAxis& places : choices_of_places(convs)) {
        Choice choice{places, {}, 0, winograd_weight_bytes(convs.front().with_places(places))};
        for (size_t i = 0; i < convs.size(); ++i) {
            const auto time = yardsticks[i].time_if_gaining(places);
            choice.gain.push_back(time.has_value());
            choice.cycles += static_cast<double>(convs[i].images) * yardsticks[i].mean_direct() * time.value_or(1);
        }
        const auto gaining = std::ranges::count(choice.gain, true);
        if (gaining == 0) continue;
        if (gaining < std::ssize(convs)) choice.weights += direct_weight_bytes(convs.front());
        choices.push_back(std::move(choice));
    }
    if (choices.empty()) return chosen;
    const double most = std::ranges::min_element(choices, {}, &Choice::cycles)->cycles * tolerance(convs);
    std::erase_if(choices, [&](const Choice& choice) { return choice.cycles > most; });
    // Fewer weights also round less. Then the taller tile, as the loop over a tile's rows ends where an image does.
    const auto order = [](const Choice& choice) { return std::make_tuple(choice.weights, -choice.places[0]); };
    const auto best = std::ranges::min_element(choices, {}, order);
    for (size_t i = 0; i < convs.size(); ++i) {
        if (best->gain[i]) chosen[i] = best->places;
    }
    return chosen;
}

std::optional<WinogradWalk> choose_winograd(const WinogradLoops& loops, const ConvPolicy& policy,
                                            const Target& target) {
    const auto places = choose_places({&loops, 1}, policy, target).front();
    if (!places) return {};
    return whole_walk(loops.with_places(*places), policy, target);
}

namespace {

/// The alternative for this image, whose size is known; nullopt if the large image's tiles are good enough.
std::optional<SmallImages> alternative_for(const WinogradLoops& small, const WinogradLoops& large,
                                           const ConvPolicy& policy, const Target& target) {
    const auto walk = choose_winograd(small, policy, target);
    const PerAxis places = walk ? walk->places : PerAxis{1, 1};
    const auto cycles = [&](const WinogradLoops& of) {
        return places_of_tile(of.kernel) == PerAxis{1, 1} ? direct_cycles(of, policy, target)
                                                          : whole_walk(of, policy, target).cycles;
    };
    constexpr double least_gain = 2.1;  // that justifies another kernel and its weights
    if (cycles(small) < least_gain * cycles(small.with_places(places))) return {};
    struct Growth {
        double tile, start;
    };
    // The growth of cycles with the number of tiles; if both images have equally many, there is no start.
    const auto growth = [&](const PerAxis& of) {
        const WinogradLoops few = small.with_places(of), many = large.with_places(of);
        const auto more = static_cast<double>(many.tiles() - few.tiles());
        const double least = cycles(few), most = cycles(many);
        const double tile = more > 0 ? (most - least) / more : most / static_cast<double>(many.tiles());
        return Growth{tile, least - tile * static_cast<double>(few.tiles())};
    };
    const Growth own = growth(places_of_tile(large.kernel)), other = growth(places);
    return SmallImages{places, other.tile, own.tile, own.start - other.start};
}

}  // namespace

std::optional<SmallImages> choose_for_small_images(const WinogradLoops& loops, const ConvPolicy& policy,
                                                   const Target& target) {
    if (!loops.is_open() || policy.algorithm != ConvAlgorithm::automatic) return {};
    constexpr int64_t parts = 8, most = 8;
    WinogradLoops usual = usual_images(loops).front(),
                  smallest = loops.at_most(std::min(most, ceil_div(std::max(loops.height, loops.width), parts))),
                  large = loops;
    // At run time strips have as many tiles as are enough, so that one strip may be the whole image.
    for (WinogradLoops* image : {&usual, &smallest, &large}) image->are_open = {false, false};
    const auto small = alternative_for(usual, large, policy, target);
    return small ? small : alternative_for(smallest, large, policy, target);
}

}  // namespace onnx2halide
