#include "ops/ml/tree_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

using Column = TreeTables::Column;
using Test = TreeEnsemble::Test;

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<std::string_view, 4> target_names = {"single", "of_tree", "all", "of_score"};

/// The size limit of a table. Leaves with scores for few of many targets are padded, which may multiply their size.
constexpr size_t most_elements = size_t{1} << 28;

/// `column < threshold`, and the two nodes that follow.
struct Comparison {
    Column column;
    double threshold = 0;
    size_t if_true = 0, if_false = 0;
};

/// An ensemble in which all branches are comparisons by `<`; a branch may take several. Leaves have the same numbers as
/// in the ensemble, comparisons come after all of these. Several may lead to the same node.
class Comparisons {
public:
    Comparisons(const TreeEnsemble& ensemble, bool is_double, bool has_nan)
        : ensemble_(ensemble), is_double_(is_double), has_nan_(has_nan) {
        for (size_t i = 0; i < ensemble.nodes.size(); ++i) {
            const auto& branch = ensemble.nodes[i].branch;
            entries_.push_back(branch ? add(*branch) : i);
        }
    }

    /// The node at which a node of the ensemble starts.
    size_t entry(size_t node) const {
        while (node < entries_.size() && entries_[node] != node) node = entries_[node];
        return node;
    }
    bool is_leaf(size_t node) const { return node < entries_.size(); }
    const Comparison& at(size_t node) const { return comparisons_[node - ensemble_.nodes.size()]; }
    /// One past the largest number of a node.
    size_t end() const { return ensemble_.nodes.size() + comparisons_.size(); }

private:
    // Each returns the number of a node that leads to `if_true` or `if_false`.

    size_t add(const TreeEnsemble::Branch& branch) {
        const bool passes = has_nan_ && branch.missing_tracks_true;
        const Column plain{branch.feature, false, passes}, negated{branch.feature, true, passes};
        const size_t if_true = branch.if_true, if_false = branch.if_false;
        const double split = is_double_ ? branch.split : static_cast<float>(branch.split);
        switch (branch.test) {
        case Test::at_most: return at_most(plain, split, if_true, if_false);
        case Test::below: return below(plain, split, if_true, if_false);
        case Test::at_least: return at_most(negated, -split, if_true, if_false);
        case Test::above: return below(negated, -split, if_true, if_false);
        case Test::equal: return equal(plain, split, if_true, if_false);
        // NaN differs from every number.
        case Test::unequal: return equal({branch.feature, false, false}, split, if_false, if_true);
        case Test::member: break;
        }
        std::vector<double> members = branch.members;
        std::sort(members.begin(), members.end());
        return member(plain, members, if_true, if_false);
    }

    size_t below(const Column& column, double bound, size_t if_true, size_t if_false) {
        if (std::isnan(bound) || bound == -infinity) return missing(column, if_true, if_false);
        comparisons_.push_back({column, bound, if_true, if_false});
        return end() - 1;
    }

    size_t at_most(const Column& column, double bound, size_t if_true, size_t if_false) {
        if (bound != infinity) return below(column, next(bound), if_true, if_false);
        const size_t is_infinite = below(opposite(column), next(-infinity), if_true, if_false);
        return below(column, infinity, if_true, is_infinite);
    }

    /// The next larger number in the kernel's type.
    double next(double number) const {
        if (is_double_) return std::nextafter(number, infinity);
        return std::nextafter(static_cast<float>(number), std::numeric_limits<float>::infinity());
    }

    static Column opposite(Column column) {
        column.is_negated = !column.is_negated;
        return column;
    }

    size_t equal(const Column& column, double number, size_t if_true, size_t if_false) {
        if (std::isnan(number)) return missing(column, if_true, if_false);
        return at_most(column, number, at_most(opposite(column), -number, if_true, if_false), if_false);
    }

    /// A binary search among numbers in ascending order.
    size_t member(const Column& column, std::span<const double> numbers, size_t if_true, size_t if_false) {
        if (numbers.empty()) return missing(column, if_true, if_false);
        if (numbers.size() == 1) return equal(column, numbers[0], if_true, if_false);
        const size_t half = numbers.size() / 2;
        return at_most(column, numbers[half - 1], member(column, numbers.first(half), if_true, if_false),
                       member(column, numbers.subspan(half), if_true, if_false));
    }

    /// A test that no number passes; whether NaN does is up to the column.
    size_t missing(Column column, size_t if_true, size_t if_false) {
        if (!column.missing_passes) return if_false;
        Column fails = column;
        fails.missing_passes = false;
        return at_most(column, -infinity, at_most(fails, -infinity, if_false, if_true), if_false);
    }

    const TreeEnsemble& ensemble_;
    const bool is_double_, has_nan_;
    std::vector<Comparison> comparisons_;
    std::vector<size_t> entries_;
};

/// The number of comparisons on the longest path from each node to a leaf.
class Depths {
public:
    explicit Depths(const Comparisons& nodes) : nodes_(nodes), depths_(nodes.end(), -1) {}

    int32_t of(size_t root) {
        std::vector<size_t> open = {root};
        while (!open.empty()) {
            const size_t node = open.back();
            if (nodes_.is_leaf(node)) depths_[node] = 0;
            if (depths_[node] < 0 && !add_children(open, node)) continue;
            open.pop_back();
        }
        return depths_[root];
    }
    /// The depth of a node on a path from a root for which it has been computed.
    int32_t known(size_t node) const { return depths_[node]; }

private:
    /// Whether the children's depths are known; if not, adds the children to the open nodes.
    bool add_children(std::vector<size_t>& open, size_t node) {
        const Comparison& comparison = nodes_.at(node);
        const size_t children[] = {nodes_.entry(comparison.if_true), nodes_.entry(comparison.if_false)};
        const size_t known = open.size();
        for (const size_t child : children) {
            if (depths_[child] < 0) open.push_back(child);
        }
        if (open.size() > known) return false;
        depths_[node] = 1 + std::max(depths_[children[0]], depths_[children[1]]);
        return true;
    }

    const Comparisons& nodes_;
    std::vector<int32_t> depths_;
};

/// The scores of leaves, one per target, in the order of targets.
class Scores {
public:
    explicit Scores(const TreeEnsemble& ensemble) : ensemble_(ensemble), by_leaf_(ensemble.nodes.size()) {
        for (size_t i = 0; i < ensemble.nodes.size(); ++i) {
            for (const TreeEnsemble::Score& score : ensemble.nodes[i].scores) {
                const auto [known, is_new] = by_leaf_[i].emplace(score.target, score.weight);
                if (!is_new) known->second = combined(known->second, score.weight);
            }
            most_ = std::max(most_, static_cast<int64_t>(by_leaf_[i].size()));
        }
    }

    const std::map<int64_t, double>& of(size_t leaf) const { return by_leaf_[leaf]; }
    /// The most scores of any leaf.
    int64_t most() const { return most_; }
    /// The neutral score.
    double neutral() const {
        if (ensemble_.aggregate == TreeEnsemble::Aggregate::min) return infinity;
        return ensemble_.aggregate == TreeEnsemble::Aggregate::max ? -infinity : 0;
    }

private:
    double combined(double a, double b) const {
        if (ensemble_.aggregate == TreeEnsemble::Aggregate::min) return std::min(a, b);
        return ensemble_.aggregate == TreeEnsemble::Aggregate::max ? std::max(a, b) : a + b;
    }

    const TreeEnsemble& ensemble_;
    std::vector<std::map<int64_t, double>> by_leaf_;
    int64_t most_ = 0;
};

class TableWriter {
public:
    TableWriter(const TreeEnsemble& ensemble, bool is_double, bool has_nan)
        : ensemble_(ensemble), nodes_(ensemble, is_double, has_nan), scores_(ensemble) {}

    TreeTables write() {
        number_columns();
        choose_targets();
        Depths depths(nodes_);
        for (const size_t root : ensemble_.roots) {
            const size_t node = nodes_.entry(root);
            tables_.depths.push_back(depths.of(node));
            tables_.roots.push_back(add_place(node));
            place_all();
            order_upwards(depths);
        }
        return std::move(tables_);
    }

private:
    void number_columns() {
        for (size_t i = ensemble_.nodes.size(); i < nodes_.end(); ++i) numbers_[nodes_.at(i).column] = 0;
        if (numbers_.empty()) numbers_[{}] = 0;  // leaves refer to a column, too
        for (auto& [column, number] : numbers_) {
            number = static_cast<int32_t>(tables_.columns.size());
            tables_.columns.push_back(column);
        }
    }

    void choose_targets() {
        using Targets = TreeTables::Targets;
        if (ensemble_.targets == 1) return;
        if (scores_.most() * 2 > ensemble_.targets) {
            tables_.targets_of = Targets::all;
            tables_.width = ensemble_.targets;
        } else {
            tables_.targets_of = Targets::of_score;
            tables_.width = std::max<int64_t>(1, scores_.most());
        }
        if (scores_.most() > 1) return;
        const std::vector<int32_t> targets = targets_of_trees();
        if (targets.empty()) return;
        tables_.targets_of = Targets::of_tree;
        tables_.width = 1;
        tables_.targets = targets;
    }

    /// The only target of each tree; empty if some tree has several.
    std::vector<int32_t> targets_of_trees() const {
        std::vector<int32_t> result;
        for (const size_t root : ensemble_.roots) {
            std::set<int64_t> targets;
            std::set<size_t> seen;  // several branches may lead to one node
            std::vector<size_t> open = {root};
            while (!open.empty()) {
                const size_t node = open.back();
                open.pop_back();
                if (!seen.insert(node).second) continue;
                for (const auto& [target, weight] : scores_.of(node)) targets.insert(target);
                const auto& branch = ensemble_.nodes[node].branch;
                if (branch) open.insert(open.end(), {branch->if_true, branch->if_false});
            }
            if (targets.size() > 1) return {};
            result.push_back(targets.empty() ? 0 : static_cast<int32_t>(*targets.begin()));
        }
        return result;
    }

    /// Orders the places of the last tree by height; nodes_of_ holds the node at each place.
    void order_upwards(const Depths& depths) {
        const int32_t root = tables_.roots.back(), end = root + static_cast<int32_t>(nodes_of_.size());
        std::vector<int32_t> ranks(nodes_of_.size());
        std::transform(nodes_of_.begin(), nodes_of_.end(), ranks.begin(),
                       [&](size_t node) { return depths.known(node); });
        const int32_t last = *std::max_element(ranks.begin(), ranks.end()) + 1;
        for (int32_t place = root; place < end; ++place) {
            if (ranks[place - root] != 1) continue;
            const int32_t leaf = tables_.children[place] - root;
            ranks[leaf] = ranks[leaf + 1] = last;
        }
        std::vector<int32_t> places(nodes_of_.size());
        std::iota(places.begin(), places.end(), root);
        std::stable_sort(places.begin(), places.end(),
                         [&](int32_t a, int32_t b) { return ranks[a - root] < ranks[b - root]; });
        tables_.upwards.insert(tables_.upwards.end(), places.begin(), places.end());
        const auto count = [&](int32_t from, int32_t to) {
            const auto is_among = [&](int32_t rank) { return rank >= from && rank < to; };
            return static_cast<int32_t>(std::count_if(ranks.begin(), ranks.end(), is_among));
        };
        tables_.leaf_counts.push_back(count(0, 1));
        tables_.low_counts.push_back(last > 1 ? count(1, 2) : 0);
        tables_.test_counts.push_back(count(2, last));
        nodes_of_.clear();
        children_of_.clear();
    }

    int32_t add_place(size_t node) {
        const auto place = static_cast<int32_t>(tables_.children.size());
        tables_.features.push_back(0);
        tables_.children.push_back(place);
        tables_.thresholds.push_back(nan);
        if (tables_.width > 1)
            tables_.rows.push_back(0);
        else
            add_scores(nodes_.is_leaf(node) ? node : ensemble_.nodes.size());
        nodes_of_.push_back(node);
        open_.push({place, node});
        return place;
    }

    void place_all() {
        for (; !open_.empty(); open_.pop()) {
            const auto [place, node] = open_.front();
            if (tables_.children.size() > most_elements || tables_.weights.size() > most_elements)
                throw CompileError("the trees make tables of more than {} elements", most_elements);
            if (!nodes_.is_leaf(node)) {
                const Comparison& comparison = nodes_.at(node);
                tables_.features[place] = numbers_.at(comparison.column);
                tables_.thresholds[place] = comparison.threshold;
                tables_.children[place] = children(node);
            } else if (tables_.width > 1) {
                tables_.rows[place] = static_cast<int32_t>(tables_.weights.size() / tables_.width);
                add_scores(node);
            }
        }
    }

    int32_t children(size_t node) {
        if (const auto known = children_of_.find(node); known != children_of_.end()) return known->second;
        const int32_t place = add_place(nodes_.entry(nodes_.at(node).if_false));
        add_place(nodes_.entry(nodes_.at(node).if_true));
        return children_of_[node] = place;
    }

    /// Adds the scores of a leaf, or neutral ones if there is no leaf of this number.
    void add_scores(size_t leaf) {
        const bool has_targets = tables_.targets_of == TreeTables::Targets::of_score;
        const bool is_dense = tables_.targets_of == TreeTables::Targets::all;
        const size_t first = tables_.weights.size();
        tables_.weights.resize(first + tables_.width, scores_.neutral());
        if (has_targets) tables_.targets.resize(first + tables_.width, 0);
        if (leaf >= ensemble_.nodes.size()) return;
        size_t next = first;
        for (const auto& [target, weight] : scores_.of(leaf)) {
            const size_t at = is_dense ? first + target : next++;
            tables_.weights[at] = weight;
            if (has_targets) tables_.targets[at] = static_cast<int32_t>(target);
        }
    }

    const TreeEnsemble& ensemble_;
    const Comparisons nodes_;
    const Scores scores_;
    TreeTables tables_;
    std::map<Column, int32_t> numbers_;
    // For the tree being placed: the node at each place, and the index of a comparison's children.
    std::vector<size_t> nodes_of_;
    std::unordered_map<size_t, int32_t> children_of_;
    std::queue<std::pair<int32_t, size_t>> open_;
};

}  // namespace

std::string name(TreeTables::Targets targets) { return std::string(target_names.at(static_cast<size_t>(targets))); }

TreeTables::Targets targets_of(const std::string& name) {
    const auto found = std::find(target_names.begin(), target_names.end(), name);
    if (found == target_names.end()) throw CompileError("targets_of is '{}'", name);
    return static_cast<TreeTables::Targets>(found - target_names.begin());
}

TreeTables make_tree_tables(const TreeEnsemble& ensemble, bool is_double, bool has_nan) {
    return TableWriter(ensemble, is_double, has_nan).write();
}

}  // namespace onnx2halide
