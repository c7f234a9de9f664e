#include "runtime/arena.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

namespace onnx2halide {

namespace {

using Lifetimes = std::vector<onnx2halide_lifetime>;

int64_t place(Lifetimes& tensors) { return onnx2halide_place_arena(tensors.data(), static_cast<int>(tensors.size())); }

int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// The largest sum of the sizes of tensors that are live at one step: no arena can be smaller.
int64_t largest_live_sum(const Lifetimes& tensors) {
    int64_t largest = 0;
    for (const auto& at : tensors) {
        int64_t sum = 0;
        for (const auto& tensor : tensors) {
            if (tensor.first <= at.first && at.first <= tensor.last) sum += rounded(tensor.bytes);
        }
        largest = std::max(largest, sum);
    }
    return largest;
}

bool meet(const onnx2halide_lifetime& a, const onnx2halide_lifetime& b) {
    const bool in_time = a.first <= b.last && b.first <= a.last;
    return in_time && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

void check_placed(const Lifetimes& tensors, int64_t size) {
    for (size_t i = 0; i < tensors.size(); ++i) {
        REQUIRE(tensors[i].offset >= 0);
        REQUIRE(tensors[i].offset % 64 == 0);
        REQUIRE(tensors[i].offset + tensors[i].bytes <= size);
        for (size_t j = 0; j < i; ++j) REQUIRE_FALSE(meet(tensors[i], tensors[j]));
    }
}

/// Builds the lifetimes of a network's tensors step by step: each is live from the step that makes it to the last that
/// reads it.
class Network {
public:
    int make(int64_t bytes, const std::vector<int>& inputs = {}) {
        for (const int input : inputs) tensors_[input].last = step_;
        tensors_.push_back({step_, step_, bytes, 0});
        ++step_;
        return static_cast<int>(tensors_.size()) - 1;
    }
    const Lifetimes& tensors() const { return tensors_; }

private:
    Lifetimes tensors_;
    int step_ = 0;
};

/// A chain of convolutions, some of which halve the area and double the channels.
Lifetimes chain() {
    Network net;
    int64_t bytes = 64 * 224 * 224 * 4;
    for (int i = 0, last = net.make(bytes); i < 16; ++i) last = net.make(i % 4 == 3 ? bytes /= 2 : bytes, {last});
    return net.tensors();
}

/// Blocks of three convolutions whose input is added at the end, through a convolution where the shape changes.
Lifetimes residual() {
    Network net;
    int64_t bytes = 256 * 56 * 56 * 4;
    int last = net.make(bytes);
    for (int block = 0; block < 16; ++block) {
        const bool strides = block % 4 == 3;
        const int64_t out = strides ? bytes / 2 : bytes;
        const int a = net.make(bytes / 4, {last}), b = net.make(out / 4, {a});
        const int shortcut = strides ? net.make(out, {last}) : last;
        last = net.make(out, {b, shortcut});
        bytes = out;
    }
    return net.tensors();
}

/// Four branches from one tensor that are concatenated.
Lifetimes inception() {
    Network net;
    int64_t bytes = 192 * 28 * 28 * 4;
    int last = net.make(bytes);
    for (int block = 0; block < 9; ++block) {
        if (block % 3 == 2) last = net.make(bytes /= 3, {last});
        const int one = net.make(bytes / 3, {last}), three = net.make(bytes / 2, {net.make(bytes / 2, {last})});
        const int five = net.make(bytes / 6, {net.make(bytes / 12, {last})}),
                  pool = net.make(bytes / 6, {net.make(bytes, {last})});
        last = net.make(bytes += bytes / 6, {one, three, five, pool});
    }
    return net.tensors();
}

/// Every layer reads all earlier ones of its block.
Lifetimes dense_blocks() {
    Network net;
    int64_t area = 56 * 56 * 4;
    int last = net.make(64 * area);
    for (const int layers : {6, 12, 24, 16}) {
        int64_t channels = 64;
        for (int i = 0; i < layers; ++i) {
            const int grown = net.make(32 * area, {net.make(128 * area, {last})});
            last = net.make((channels += 32) * area, {last, grown});
        }
        area /= 4;
        last = net.make(channels / 2 * area, {last});
    }
    return net.tensors();
}

/// Each level's tensor on the way down is read again on the way up.
Lifetimes skips() {
    Network net;
    int64_t bytes = 64 * 256 * 256 * 4;
    std::vector<int> levels;
    int last = net.make(bytes);
    for (int level = 0; level < 4; ++level) {
        levels.push_back(net.make(bytes, {net.make(bytes, {last})}));
        last = net.make(bytes /= 2, {levels.back()});
    }
    for (int level = 3; level >= 0; --level) {
        bytes *= 2;
        const int joined = net.make(2 * bytes, {net.make(bytes, {last}), levels[level]});
        last = net.make(bytes, {net.make(bytes, {joined})});
    }
    return net.tensors();
}

/// Attention and a feed-forward part, each added to what came in.
Lifetimes transformer() {
    Network net;
    const int64_t hidden = 128 * 768 * 4, scores = 12 * 128 * 128 * 4;
    int last = net.make(hidden);
    for (int layer = 0; layer < 12; ++layer) {
        const int q = net.make(hidden, {last}), k = net.make(hidden, {last}), v = net.make(hidden, {last});
        const int weights = net.make(scores, {net.make(scores, {q, k})});
        const int attended = net.make(hidden, {net.make(hidden, {net.make(hidden, {weights, v})}), last});
        const int wide = net.make(4 * hidden, {net.make(4 * hidden, {attended})});
        last = net.make(hidden, {net.make(hidden, {wide}), attended});
    }
    return net.tensors();
}

}  // namespace

TEST_CASE("an arena of few tensors") {
    const struct {
        Lifetimes tensors;
        std::vector<int64_t> offsets;
        int64_t size;
    } rows[] = {
        {{}, {}, 0},
        {{{0, 0, 100, 0}}, {0}, 128},
        {{{0, 0, 0, 0}}, {0}, 0},
        {{{0, 1, 64, 0}, {2, 3, 64, 0}}, {0, 0}, 64},    // one after the other
        {{{0, 1, 64, 0}, {1, 2, 64, 0}}, {0, 64}, 128},  // a step reads the one and writes the other
        {{{0, 2, 64, 0}, {1, 3, 128, 0}, {3, 4, 64, 0}}, {128, 0, 128}, 192},  // the largest comes first
        {{{0, 9, 64, 0}, {0, 1, 256, 0}, {2, 3, 128, 0}}, {256, 0, 0}, 320},
    };
    for (const auto& row : rows) {
        Lifetimes tensors = row.tensors;
        CHECK(place(tensors) == row.size);
        std::vector<int64_t> offsets;
        for (const auto& tensor : tensors) offsets.push_back(tensor.offset);
        CHECK(offsets == row.offsets);
    }
}

TEST_CASE("tensors that are live at the same time never overlap in the arena") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        Lifetimes tensors(1 + random() % 60);
        for (auto& tensor : tensors) {
            tensor.first = static_cast<int32_t>(random() % 40);
            tensor.last = tensor.first + static_cast<int32_t>(random() % 10);
            tensor.bytes = static_cast<int64_t>(random() % 5000);
        }
        const int64_t size = place(tensors);
        check_placed(tensors, size);
        REQUIRE(size >= largest_live_sum(tensors));
    }
}

TEST_CASE("a network's arena is at most 1.3 times the largest sum of its live tensors") {
    const std::pair<const char*, Lifetimes> networks[] = {
        {"chain", chain()},        {"residual", residual()}, {"inception", inception()},
        {"dense", dense_blocks()}, {"skips", skips()},       {"transformer", transformer()},
    };
    for (auto [name, tensors] : networks) {
        const int64_t least = largest_live_sum(tensors), size = place(tensors);
        INFO(name << ": " << size << " bytes for " << least);
        check_placed(tensors, size);
        CHECK(static_cast<double>(size) <= 1.3 * static_cast<double>(least));
    }
}

}  // namespace onnx2halide
