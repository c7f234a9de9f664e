#include <catch2/catch.hpp>
#include <cmath>

#include "ops/ml/tree_tables.h"

namespace onnx2halide {

namespace {

using Test = TreeEnsemble::Test;

/// One tree with one branch: rows that pass score 1, others 2.
TreeEnsemble stump(Test test, double split, std::vector<double> members = {}, bool missing_tracks_true = false) {
    TreeEnsemble ensemble;
    ensemble.nodes = {{TreeEnsemble::Branch{test, 0, split, std::move(members), missing_tracks_true, 1, 2}, {}},
                      {{}, {{0, 1}}},
                      {{}, {{0, 2}}}};
    ensemble.roots = {0};
    ensemble.targets = 1;
    return ensemble;
}

/// The score of a row of one feature, by the tables alone.
double walked(const TreeTables& tables, double number) {
    int32_t place = tables.roots[0];
    for (int32_t step = 0; step < tables.depths[0]; ++step) {
        const TreeTables::Column& column = tables.columns[tables.features[place]];
        double feature = column.is_negated ? -number : number;
        if (std::isnan(number) && column.missing_passes) feature = -INFINITY;
        place = tables.children[place] + (feature < tables.thresholds[place] ? 1 : 0);
    }
    return tables.weights[place];
}

bool passes(const TreeEnsemble& ensemble, double number) {
    return walked(make_tree_tables(ensemble, true, true), number) == 1;
}

}  // namespace

TEST_CASE("every test becomes comparisons by <") {
    const double numbers[] = {-INFINITY, -1, 0, 0.5, 1, 2, INFINITY};
    const double splits[] = {-INFINITY, -1, 0.5, 1, INFINITY};
    for (const double x : numbers) {
        for (const double split : splits) {
            CAPTURE(x, split);
            CHECK(passes(stump(Test::at_most, split), x) == (x <= split));
            CHECK(passes(stump(Test::below, split), x) == (x < split));
            CHECK(passes(stump(Test::at_least, split), x) == (x >= split));
            CHECK(passes(stump(Test::above, split), x) == (x > split));
            CHECK(passes(stump(Test::equal, split), x) == (x == split));
            CHECK(passes(stump(Test::unequal, split), x) == (x != split));
        }
        CHECK(passes(stump(Test::member, 0, {1, -1, INFINITY}), x) == (x == 1 || x == -1 || x == INFINITY));
        CHECK_FALSE(passes(stump(Test::member, 0, {}), x));
    }
}

TEST_CASE("NaN passes a test if the branch says so, and differs from every number") {
    for (const double split : {-HUGE_VAL, 0.0, HUGE_VAL, std::nan("")}) {
        CAPTURE(split);
        for (const Test test : {Test::at_most, Test::below, Test::at_least, Test::above, Test::equal}) {
            CHECK_FALSE(passes(stump(test, split), NAN));
            CHECK(passes(stump(test, split, {}, true), NAN));
            if (std::isnan(split)) CHECK_FALSE(passes(stump(test, split, {}, true), 1));
        }
        CHECK(passes(stump(Test::unequal, split), NAN));
    }
    CHECK(passes(stump(Test::member, 0, {2, 1, 3}, true), NAN));
    CHECK_FALSE(passes(stump(Test::member, 0, {2, 1, 3}), NAN));
}

TEST_CASE("from the leaves up, children come before their tests") {
    const auto at_zero = [](size_t if_true, size_t if_false) {
        return TreeEnsemble::Node{TreeEnsemble::Branch{Test::below, 0, 0, {}, false, if_true, if_false}, {}};
    };
    const TreeEnsemble::Node leaf{{}, {{0, 1}}};
    TreeEnsemble ensemble;
    // A leaf; a test of two leaves; a test of a leaf and a test.
    ensemble.nodes = {leaf, at_zero(2, 3), leaf, leaf, at_zero(5, 6), leaf, at_zero(7, 8), leaf, leaf};
    ensemble.roots = {0, 1, 4};
    ensemble.targets = 1;
    const TreeTables tables = make_tree_tables(ensemble, false, true);
    CHECK(tables.roots == std::vector<int32_t>{0, 1, 4});
    CHECK(tables.leaf_counts == std::vector<int32_t>{1, 0, 1});
    CHECK(tables.low_counts == std::vector<int32_t>{0, 1, 1});
    CHECK(tables.test_counts == std::vector<int32_t>{0, 0, 1});
    CHECK(tables.upwards == std::vector<int32_t>{0, 1, 2, 3, 6, 5, 4, 7, 8});
}

TEST_CASE("a test that takes several comparisons also comes after its children") {
    const TreeTables tables = make_tree_tables(stump(Test::member, 0, {1, 2, 3, 5}), false, true);
    REQUIRE(tables.leaf_counts.size() == 1);
    const int32_t leaves = tables.leaf_counts[0], tests = tables.low_counts[0] + tables.test_counts[0];
    std::vector<bool> is_known(tables.children.size());
    for (int32_t i = 0; i < leaves + tests; ++i) {
        const int32_t place = tables.upwards[i], child = tables.children[place];
        if (i >= leaves + tables.low_counts[0]) {
            CHECK(is_known[child]);
            CHECK(is_known[child + 1]);
        }
        is_known[place] = true;
    }
    CHECK(is_known[tables.roots[0]]);
}

TEST_CASE("children are adjacent, and leaves lead to themselves") {
    const TreeTables tables = make_tree_tables(stump(Test::below, 0.5), false, true);
    CHECK(tables.children == std::vector<int32_t>{1, 1, 2});
    CHECK(tables.thresholds[0] == 0.5);
    CHECK(std::isnan(tables.thresholds[1]));
    CHECK(tables.weights == std::vector<double>{0, 2, 1});
    CHECK(tables.depths == std::vector<int32_t>{1});
}

TEST_CASE("scores are as narrow as the targets allow") {
    TreeEnsemble ensemble = stump(Test::below, 0.5);
    ensemble.targets = 8;
    CHECK(make_tree_tables(ensemble, false, true).targets_of == TreeTables::Targets::of_tree);
    ensemble.nodes[1].scores = {{3, 1}};
    CHECK(make_tree_tables(ensemble, false, true).targets_of == TreeTables::Targets::of_score);
    ensemble.nodes[2].scores = {{0, 1}, {5, 1}};
    CHECK(make_tree_tables(ensemble, false, true).width == 2);
    ensemble.targets = 6;
    ensemble.nodes[2].scores = {{0, 1}, {1, 1}, {2, 1}, {5, 1}};
    CHECK(make_tree_tables(ensemble, false, true).width == 6);
}

TEST_CASE("nodes to which all branches of the one above lead are visited once") {
    constexpr size_t branches = 64;  // 2^64 paths
    TreeEnsemble ensemble;
    for (size_t i = 0; i < branches; ++i)
        ensemble.nodes.push_back({TreeEnsemble::Branch{Test::below, 0, 0, {}, false, i + 1, i + 1}, {}});
    ensemble.nodes.push_back({{}, {{2, 1}}});
    ensemble.roots = {0};
    ensemble.targets = 3;
    const TreeTables tables = make_tree_tables(ensemble, false, false);
    CHECK(tables.targets == std::vector<int32_t>{2});
    CHECK(tables.children.size() == 2 * branches + 1);
}

}  // namespace onnx2halide
