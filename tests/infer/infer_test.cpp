#include "compiler/infer/fixed_dims.h"
#include "compiler/infer/infer.h"

#include <catch2/catch.hpp>

#include "ops/known_elements.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The known elements of a value: `[2, batch * 3]`, or empty.
std::string known_text(const Value* value) {
    if (!value->known) return "unknown";
    std::string text;
    for (const Dim& dim : value->known->integers) text += (text.empty() ? "" : " ") + dim.text();
    for (const double real : value->known->reals) text += (text.empty() ? "" : " ") + std::to_string(real);
    return text;
}

}  // namespace

TEST_CASE("types are inferred node by node, with expressions of open dims") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,3,8]
        w = constant float32[8,5]
        m = MatMul(x, w)
        f = Flatten(m)
        t = Transpose(f)
        c = Concat(m, m) axis=0
        b = Cast(c) to=9
        output t, b)");
    const std::pair<const char*, const char*> rows[] = {
        {"m", "float32[batch,3,5]"},       {"f", "float32[batch,15]"},     {"t", "float32[15,batch]"},
        {"c", "float32[(batch * 2),3,5]"}, {"b", "bool[(batch * 2),3,5]"},
    };
    for (const auto& [name, type] : rows) CHECK(type_text(*graph->find(name)->type) == type);
}

TEST_CASE("elements of small tensors are tracked") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,12]
        three = constant int64[1] 3
        minus = constant int64[1] -1
        zero = constant int64[] 0
        s = Shape(x)
        n = Gather(s, zero)
        d = Mul(s, three)
        q = Concat(three, minus) axis=0
        r = Reshape(x, q)
        p = Shape(r)
        f = Cast(three) to=1
        output p, d, n, f)");
    const std::pair<const char*, const char*> rows[] = {
        {"s", "batch 12"},      {"n", "batch"},    {"d", "(batch * 3) 36"}, {"q", "3 -1"},
        {"p", "3 (batch * 4)"}, {"f", "3.000000"}, {"r", "unknown"},
    };
    for (const auto& [name, known] : rows) {
        INFO(name);
        CHECK(known_text(graph->find(name)) == known);
    }
}

TEST_CASE("elements of small tensors are tracked through nodes that combine them") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,12]
        zero = constant int64[] 0
        two = constant int64[1] 2
        half = constant float32[2] 0.1 1
        s = Shape(x)
        sum = ReduceSum(s) keepdims=0
        product = ReduceProd(s) keepdims=0
        mean = ReduceMean(s) keepdims=0
        largest = ReduceMax(s) keepdims=0
        sums = CumSum(s, zero)
        before = CumSum(s, zero) exclusive=1
        unsigned = Cast(s) to=13
        shift = Cast(two) to=13
        left = BitShift(unsigned, shift) direction=LEFT
        right = BitShift(unsigned, shift) direction=RIGHT
        place = ArgMax(half) keepdims=0
        open = ArgMax(s) keepdims=0
        narrow = Cast(half) to=10
        wide = Cast(narrow) to=11
        short = Cast(half) to=16
        output sum, product, mean, largest, sums, before, left, right, place, open, wide, short)");
    const std::pair<const char*, const char*> rows[] = {
        {"sum", "(batch + 12)"},       {"product", "(batch * 12)"},    {"mean", "((batch / 2) + 6)"},
        {"largest", "max(batch, 12)"}, {"sums", "batch (batch + 12)"}, {"before", "0 batch"},
        {"left", "(batch * 4) 48"},    {"right", "(batch / 4) 3"},     {"place", "1"},
        {"open", "unknown"},           {"wide", "0.099976 1.000000"},  {"short", "0.100098 1.000000"},
    };
    for (const auto& [name, known] : rows) {
        INFO(name);
        CHECK(known_text(graph->find(name)) == known);
    }
}

TEST_CASE("elements of small tensors are tracked through floats") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,length]
        one = constant float32[] 1
        eight = constant float32[] 8
        double = constant float64[] 2
        half = constant float32[2] 0.5 0.5
        inexact = constant float32[] 0.1
        last = constant int64[] 1
        axes = constant int64[1] 0
        s = Shape(x)
        length = Gather(s, last)
        f = Cast(length) to=1
        q = Div(f, eight)
        p = Add(q, one)
        frames = Ceil(p)
        up = Cast(frames) to=7
        down = Cast(p) to=6
        fs = Cast(s) to=1
        halves = Mul(fs, half)
        floors = Floor(halves)
        whole = Cast(floors) to=7
        vector = Unsqueeze(q, axes)
        negative = Neg(vector)
        below = Cast(negative) to=7
        wide = Cast(length) to=11
        twice = Mul(wide, double)
        rounded = Round(twice)
        even = Cast(rounded) to=7
        tenth = Mul(f, inexact)
        unclear = Cast(tenth) to=7
        narrow = Cast(length) to=10
        short = Cast(narrow) to=7
        root = Sqrt(f)
        other = Cast(root) to=7
        positive = Cast(q) to=9
        image = input float32[batch,5000,length]
        extents = Shape(image)
        reals = Cast(extents) to=1
        scales = constant float32[3] 1 0.5 2
        scaled = Mul(reals, scales)
        sizes = Cast(scaled) to=7
        output up, down, whole, below, even, unclear, short, other, positive, sizes)");
    const std::pair<const char*, const char*> rows[] = {
        {"up", "(((length + 7) / 8) + 1)"},
        {"down", "((length / 8) + 1)"},
        {"whole", "(batch / 2) (length / 2)"},
        {"below", "(-(length / 8))"},
        {"even", "(length * 2)"},
        {"unclear", "unknown"},
        {"short", "unknown"},
        {"other", "unknown"},
        {"positive", "unknown"},
        {"f", "unknown"},
        {"sizes", "batch 2500 (length * 2)"},
    };
    for (const auto& [name, known] : rows) {
        INFO(name);
        CHECK(known_text(graph->find(name)) == known);
    }
}

TEST_CASE("the other elements of a vector that is partly computed at run time stay known") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,4,length]
        end = input int64[1]
        rows = constant int64[2] -1 2
        all = constant int64[1] -1
        few = constant int64[2] 0 0
        ends = Concat(few, few, all, end) axis=0
        pairs = Reshape(ends, rows)
        turned = Transpose(pairs)
        pads = Reshape(turned, all)
        y = Pad(x, pads)
        output y)");
    CHECK(type_text(*graph->find("y")->type) == "float32[batch,4,(end_element_0 + length - 1)]");
    CHECK(known_text(graph->find("pads")) == "0 0 -1 0 0 end_element_0");
    CHECK(graph->find("end")->bindings.size() == 1);
    for (const char* joined : {"ends", "pads"}) CHECK(graph->find(joined)->bindings.empty());
}

TEST_CASE("extents that are split and joined again stay the same") {
    const auto graph = parse_graph(R"(
        a = input float32[open]
        b = input float32[other]
        p = input float32[batch]
        q = input float32[length]
        i = NonZero(a)
        j = NonZero(b)
        x = Cast(i) to=1
        y = Cast(j) to=1
        xy = Add(x, y)
        yx = Add(y, x)
        twice = Mul(xy, yx)
        thrice = Mul(x, twice)
        pq = Add(p, q)
        more = Mul(q, pq)
        output thrice, more)");
    CHECK(shape_text(graph->find("pq")->type->shape) == "[max(batch, length)]");
    CHECK(shape_text(graph->find("more")->type->shape) == "[max(batch, length)]");
    CHECK(shape_text(graph->find("xy")->type->shape) ==
          "[1, (max(i_extent_1, j_extent_1) * min(min(i_extent_1, j_extent_1), 1))]");
    for (const char* joined : {"yx", "twice", "thrice"})
        CHECK(graph->find(joined)->type->shape == graph->find("xy")->type->shape);
}

TEST_CASE("known floats are rounded to the element type") {
    using enum ElementType;
    const struct {
        ElementType type;
        double number;
        std::optional<double> held;
    } rows[] = {
        {float32, 0.1, 0.1f},           {float64, 0.1, 0.1},
        {float16, 2049, 2048},                                          // halfway: to the even one
        {float16, 2051, 2052},          {float16, -0x1p-24, -0x1p-24},  // the smallest
        {float16, 0x1p-26, 0},          {float16, 65519, 65504},
        {float16, 65520, std::nullopt}, {bfloat16, 257, 256},
        {bfloat16, 1e39, std::nullopt}, {float32, 1e39, std::nullopt},
        {int32, 1, std::nullopt},
    };
    for (const auto& row : rows) {
        const auto held = stored(row.number, row.type);
        INFO(row.number);
        CHECK((held ? std::optional(real(*held)) : std::nullopt) == row.held);
    }
}

TEST_CASE("open dims are at least as large as windows need") {
    const auto graph = parse_graph(R"(
        x = input float32[n,1,height,width,depth]
        w = constant float32[4,1,3,3,3]
        y = Conv(x, w) dilations=1,4,1 pads=1,0,0,1,0,0
        z = MaxPool(y) kernel_shape=1,3,2 strides=1,2,2
        output z)");
    CHECK(least_dims(*graph) == std::map<std::string, int64_t>{{"x:3", 11}, {"x:4", 4}});
}

TEST_CASE("open dims are at least as large as windows of integers need") {
    const auto graph = parse_graph(R"(
        x = input uint8[n,1,height,width]
        w = constant uint8[4,1,3,5]
        y = ConvInteger(x, w)
        output y)");
    CHECK(least_dims(*graph) == std::map<std::string, int64_t>{{"x:2", 3}, {"x:3", 5}});
}

TEST_CASE("tensors of more than 64 elements are not tracked") {
    const auto graph = parse_graph(R"(
        w = constant int64[64]
        v = constant int64[65]
        a = Neg(w)
        b = Neg(v)
        output a, b)");
    CHECK(graph->find("a")->known.has_value());
    CHECK_FALSE(graph->find("b")->known.has_value());
}

TEST_CASE("the initial value of a Scan's state is not computed by inference") {
    const auto graph = parse_graph(R"(
        x = input float32[5,80]
        zero = constant float32[]
        shape = constant int64[1] 80
        state = Expand(zero, shape)
        output state)");
    Node scan;
    scan.name = scan.op_type = "Scan";
    scan.version = 16;
    scan.attributes["body"] = std::shared_ptr<Graph>(parse_graph(R"(
        before = input float32[80]
        row = input float32[80]
        after = Add(before, row)
        output after)"));
    scan.attributes["num_scan_inputs"] = int64_t{1};
    scan.inputs = {graph->find("state"), graph->find("x")};
    scan.outputs = {graph->value("y")};
    graph->outputs = {graph->add(std::move(scan))->outputs[0]};
    std::vector<std::string> folded;
    infer_types(*graph, [&](Node& node) {
        folded.push_back(node.name);
        return false;
    });
    CHECK(folded.empty());
    CHECK(type_text(*graph->outputs[0]->type) == "float32[80]");
}

TEST_CASE("types that the model declares are checked") {
    const auto infer_with = [](ElementType element, std::vector<Dim> shape) {
        const auto graph = parse_graph("x = input float32[batch,3]\n y = Neg(x)\n output y");
        graph->find("y")->type.reset();
        graph->find("y")->declared = TensorType(element, std::move(shape));
        infer_types(*graph);
        return contradicted_shapes(*graph);
    };
    const Dim open = Dim::symbol("?", 0);
    using enum ElementType;
    CHECK(infer_with(float32, {open, open}).empty());
    CHECK(infer_with(float32, {5, 3}).empty());  // batch may be 5
    CHECK(infer_with(float32, {5, 4}) ==
          "node 'y' (Neg): output 'y' is float32 [batch, 3], but the model declares float32 5x4");
    // Open shapes are often wrong, such as those that exporters of scikit-learn write.
    CHECK(infer_with(float32, {open, 4}).empty());
    CHECK(infer_with(float32, {open}).empty());
    CHECK(infer_with(float32, {3}) ==
          "node 'y' (Neg): output 'y' is float32 [batch, 3], but the model declares float32 3");
    CHECK_THROWS_WITH(infer_with(int32, {open, open}),
                      "node 'y' (Neg): output 'y' is float32 [batch, 3], but the model declares int32 [?, ?]");
}

TEST_CASE("the declared rank of a single element does not matter") {
    const auto infer_with = [](std::vector<Dim> shape) {
        const auto graph = parse_graph("x = input bool[]\n y = Not(x)\n output y");
        graph->find("y")->type.reset();
        graph->find("y")->declared = TensorType(ElementType::boolean, std::move(shape));
        infer_types(*graph);
        return contradicted_shapes(*graph);
    };
    CHECK(infer_with({}).empty());
    CHECK(infer_with({1}).empty());
    CHECK(infer_with({2}) == "node 'y' (Not): output 'y' is bool scalar, but the model declares bool 2");
}

TEST_CASE("all unsupported nodes are reported together, without those that only depend on them") {
    CHECK_THROWS_WITH(parse_graph(R"(
        x = input float32[2,3]
        y = input float32[4,5]
        a = Add(x, y)
        b = Neg(a)
        c = MatMul(x, y)
        output b, c)"),
                      "2 nodes cannot be compiled:\n"
                      "  node 'a' (Add): shapes 2x3 and 4x5 cannot be broadcast together\n"
                      "  node 'c' (MatMul): A has 3 columns, B has 4 rows");
}

TEST_CASE("sizes that are computed at run time are not -1 once they have become extents") {
    // Exporters write this before an Expand, to which -1 would mean the existing size.
    const auto graph = parse_graph(R"(
        sizes = input int64[2]
        less = constant int64[2] -1 -1
        ones = constant int64[2]
        x = ConstantOfShape(sizes)
        shape = Shape(x)
        open = Equal(shape, less)
        wanted = Where(open, ones, shape)
        y = Expand(x, wanted)
        output y)");
    CHECK(known_text(graph->find("open")) == "0 0");
    CHECK(graph->find("y")->checked_type().shape == graph->find("x")->checked_type().shape);
}

TEST_CASE("nodes that find the same extents at run time are one, unless each makes an output") {
    const auto graph = parse_graph(R"(
        x = input float32[4,9]
        m = input bool[4]
        n = input bool[9]
        a = Compress(x, m) axis=0
        b = Compress(x, m) axis=0
        y = Add(a, b)
        c = Compress(x, n) axis=1
        d = NonZero(x)
        e = NonZero(x)
        z = Neg(e)
        output y, c, d, e, z)");
    const Node& sum = *graph->find("y")->producer;
    CHECK(sum.inputs[0] == sum.inputs[1]);
    CHECK(sum.inputs[0]->checked_type().shape != graph->find("c")->checked_type().shape);
    CHECK(find_node(*graph, "d") != find_node(*graph, "e"));
    CHECK(graph->find("z")->producer->inputs[0] == graph->find("e"));
}

TEST_CASE("a type that kernels cannot hold") {
    CHECK_THROWS_WITH(parse_graph("x = input complex64[2]\n y = Neg(x)\n output y"),
                      "value 'x' has type complex64, which is not supported");
}

TEST_CASE("an output that no node makes") {
    CHECK_THROWS_WITH(parse_graph("x = input float32[2]\n output y"), "no node makes output 'y'");
}

TEST_CASE("tensors with more elements than kernels can count") {
    CHECK_THROWS_WITH(parse_graph("x = input float32[65536,65536]\n y = Neg(x)\n output y"),
                      "value 'x' has shape 65536x65536, expected at most 2147483647 elements");
}

}  // namespace onnx2halide
