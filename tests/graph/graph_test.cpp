#include "compiler/graph/graph.h"

#include <catch2/catch.hpp>

#include "compiler/graph/new_node.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> diamond() {
    return parse_graph(R"(
        x = input float32[2,3]
        a = Neg(x)
        b = Add(a, a)
        c = Abs(a)
        output b, c)");
}

std::vector<std::string> names_of(const std::vector<Node*>& nodes) {
    std::vector<std::string> names;
    for (const Node* node : nodes) names.push_back(node->name);
    return names;
}

Node node_with(std::map<std::string, Attribute> attributes) {
    Node node;
    node.name = "conv1";
    node.op_type = "Conv";
    node.attributes = std::move(attributes);
    return node;
}

}  // namespace

TEST_CASE("a graph links values to their producer and to each use") {
    const auto graph = diamond();
    const Value* a = graph->find("a");
    CHECK(a->producer == find_node(*graph, "a"));
    CHECK(names_of(a->consumers) == std::vector<std::string>{"b", "b", "c"});
    CHECK(graph->find("x")->producer == nullptr);
    CHECK(graph->find("none") == nullptr);
    CHECK(graph->is_output(graph->find("b")));
    CHECK_FALSE(graph->is_output(a));
}

TEST_CASE("a new node has an index that no node of its graph has had") {
    const auto graph = diamond();
    const Value* e = insert_node(*graph, {"Exp", 13, {graph->find("a")}}, "e", nullptr);
    CHECK(e->producer->index == 3);
    CHECK(e->producer->name == "e");
    graph->remove(e->producer);
    CHECK(graph->next_index() == 4);
    const Value* f = insert_node(*graph, {"Exp", 13, {graph->find("a")}, {}, "", 1}, "e", find_node(*graph, "b"));
    CHECK(f->producer->index == 1);
    CHECK(graph_text(*graph) == "a = Neg(x)\ne_2 = Exp(a)\nb = Add(a, a)\nc = Abs(a)\noutput b, c\n");
}

TEST_CASE("a node is added before another and removed with its links") {
    const auto graph = diamond();
    Value* extra = graph->new_value("a");
    CHECK(extra->name == "a_2");
    Node exp;
    exp.name = "e";
    exp.op_type = "Exp";
    exp.inputs = {graph->find("x"), nullptr};
    exp.outputs = {extra};
    Node* added = graph->add(exp, find_node(*graph, "b"));
    CHECK(graph_text(*graph) == "a = Neg(x)\na_2 = Exp(x, )\nb = Add(a, a)\nc = Abs(a)\noutput b, c\n");
    CHECK(names_of(graph->find("x")->consumers) == std::vector<std::string>{"a", "e"});

    graph->remove(added);
    CHECK(graph_text(*graph) == "a = Neg(x)\nb = Add(a, a)\nc = Abs(a)\noutput b, c\n");
    CHECK(names_of(graph->find("x")->consumers) == std::vector<std::string>{"a"});
    CHECK(extra->producer == nullptr);
}

TEST_CASE("a removed node leaves alone an output that another node has taken over") {
    const auto graph = diamond();
    Node* old = find_node(*graph, "c");
    Node copy = *old;
    Node* copied = graph->add(std::move(copy), old);
    graph->remove(old);
    CHECK(graph->find("c")->producer == copied);
    CHECK(names_of(graph->find("a")->consumers) == std::vector<std::string>{"b", "b", "c"});
}

TEST_CASE("uses of a value are replaced in nodes and outputs, not in the outputs' public names") {
    const auto graph = diamond();
    graph->replace_uses(graph->find("a"), graph->find("x"));
    graph->replace_uses(graph->find("c"), graph->find("b"));
    CHECK(graph_text(*graph) == "a = Neg(x)\nb = Add(x, x)\nc = Abs(x)\noutput b, b\n");
    CHECK(graph->output_names == std::vector<std::string>{"b", "c"});
    CHECK(graph->find("a")->consumers.empty());
    CHECK(names_of(graph->find("x")->consumers) == std::vector<std::string>{"a", "b", "b", "c"});
}

TEST_CASE("attributes are read by type") {
    const Node node = node_with({{"group", int64_t{4}},
                                 {"epsilon", 0.5f},
                                 {"auto_pad", std::string("VALID")},
                                 {"pads", std::vector<int64_t>{1, 2}},
                                 {"scales", std::vector<float>{0.5f}},
                                 {"value", make_constant(ElementType::int64, {1}, std::vector<int64_t>{7})}});
    CHECK(node.integer("group") == 4);
    CHECK(node.integer("dilation", 9) == 9);
    CHECK(node.real("epsilon") == 0.5f);
    CHECK(node.real("alpha", 2.0f) == 2.0f);
    CHECK(node.string("auto_pad") == "VALID");
    CHECK(node.string("mode", "constant") == "constant");
    CHECK(node.integers("pads") == std::vector<int64_t>{1, 2});
    CHECK(node.integers("strides", {1, 1}) == std::vector<int64_t>{1, 1});
    CHECK(node.reals("scales") == std::vector<float>{0.5f});
    CHECK(node.tensor("value").integers() == std::vector<int64_t>{7});
    CHECK(node.has("group"));
    CHECK_FALSE(node.has("strides"));
    CHECK_THROWS_WITH(node.integer("strides"), "attribute strides is missing");
    CHECK_THROWS_WITH(node.integer("epsilon"), "attribute epsilon has type float, expected int");
    CHECK_THROWS_WITH(node.integer("epsilon", 1), "attribute epsilon has type float, expected int");
}

TEST_CASE("a node's label has its name and operator") {
    Node node = node_with({});
    CHECK(node.label() == "node 'conv1' (Conv)");
    node.domain = "com.example";
    CHECK(node.label() == "node 'conv1' (com.example.Conv)");
}

TEST_CASE("elements of constants of all types are read") {
    using enum ElementType;
    const struct {
        Constant constant;
        std::vector<int64_t> integers;
        std::vector<double> reals;
    } rows[] = {
        {make_constant(float32, {2}, std::vector<float>{1.5f, -2}), {1, -2}, {1.5, -2}},
        {make_constant(float64, {1}, std::vector<double>{1e300}), {}, {1e300}},
        // one, the smallest subnormal, minus infinity, and 1/3 as float16 has it
        {make_constant(float16, {4}, std::vector<uint16_t>{0x3c00, 0x0001, 0xfc00, 0x3555}),
         {},
         {1, 0x1p-24, -INFINITY, 0x1.554p-2}},
        {make_constant(bfloat16, {2}, std::vector<uint16_t>{0x3f80, 0xc000}), {1, -2}, {1, -2}},
        {make_constant(boolean, {2}, std::vector<uint8_t>{0, 1}), {0, 1}, {0, 1}},
        {make_constant(int8, {1}, std::vector<int8_t>{-128}), {-128}, {-128}},
        {make_constant(uint8, {1}, std::vector<uint8_t>{255}), {255}, {255}},
        {make_constant(int16, {1}, std::vector<int16_t>{-32768}), {-32768}, {-32768}},
        {make_constant(uint16, {1}, std::vector<uint16_t>{65535}), {65535}, {65535}},
        {make_constant(int32, {1}, std::vector<int32_t>{INT32_MIN}), {INT32_MIN}, {INT32_MIN}},
        {make_constant(uint32, {1}, std::vector<uint32_t>{UINT32_MAX}), {UINT32_MAX}, {UINT32_MAX}},
        {make_constant(int64, {2}, std::vector<int64_t>{INT64_MIN, 3}), {INT64_MIN, 3}, {-0x1p63, 3}},
        {make_constant(uint64, {1}, std::vector<uint64_t>{5}), {5}, {5}},
        {make_constant(int64, {0}, std::vector<int64_t>{}), {}, {}},
    };
    for (const auto& row : rows) {
        INFO(info(row.constant.element).name);
        CHECK(row.constant.reals() == row.reals);
        if (!row.integers.empty()) CHECK(row.constant.integers() == row.integers);
    }
    CHECK_THROWS_WITH((Constant{complex64, {}, {}, {}}.reals()), "a constant of type complex64 has no numbers");
}

TEST_CASE("a graph counts the elements of its constants") {
    const auto graph = parse_graph(R"(
        x = input float32[3]
        w = constant float32[2,3]
        s = constant float32[]
        y = Add(x, w)
        z = Mul(y, s)
        output z)");
    CHECK(constant_elements(*graph) == 7);
}

TEST_CASE("a value without a type is an internal error") {
    Graph graph;
    CHECK_THROWS_WITH(graph.value("y")->checked_type(), "value 'y' has no type yet");
    CHECK_THROWS_AS(graph.value("y")->checked_type(), std::logic_error);
}

}  // namespace onnx2halide
