"""Small models for tests, some of them invalid."""

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

FLOAT = TensorProto.FLOAT


def node(op: str, inputs: str, outputs: str, **attributes):
    """A node whose inputs and outputs are names separated by spaces."""
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, outputs, initializers=(), opset=22, value_info=()) -> ModelProto:
    """Inputs and outputs are (name, type, shape); initialisers are arrays by name, or TensorProtos."""
    ports = ([helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs, value_info))
    inputs, outputs, value_info = ports
    if isinstance(initializers, dict):
        initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in initializers.items()]
    graph = helper.make_graph(nodes, "small", inputs, outputs, list(initializers), value_info=value_info)
    domains = sorted({node.domain for node in nodes if node.domain} | {"com.example"})
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def chain(*ops: str, shape=(2, 3), type=FLOAT) -> ModelProto:
    """A chain of unary operators from x to y."""
    names = ["x", *(f"v{i}" for i in range(1, len(ops))), "y"]
    nodes = [node(op, names[i], names[i + 1]) for i, op in enumerate(ops)]
    return model(nodes, [("x", type, shape)], [("y", type, shape)])


def with_external_weight(location, offset=None, length=None) -> ModelProto:
    """y = x + w, where w is four floats in an external file."""
    weight = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            weight.external_data.add(key=key, value=str(value))
    return model([node("Add", "x w", "y")], [("x", FLOAT, [4])], [("y", FLOAT, [4])], [weight])


def layer(rows=4, name="x") -> ModelProto:
    """y = Relu(x A) B: two steps, with a tensor in the session's memory between them."""
    nodes = [node("MatMul", f"{name} A", "product"), node("Relu", "product", "hidden"), node("MatMul", "hidden B", "y")]
    weights = {"A": _random(3, 8), "B": _random(8, 5)}
    return model(nodes, [(name, FLOAT, [rows, 3])], [("y", FLOAT, [rows, 5])], weights)


def image(batch=1) -> ModelProto:
    """A small convolutional network, large enough for its kernels to ask for scratch memory and to run in parallel."""
    nodes = [
        node("Conv", "picture W1 B1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 W2", "c2", pads=[1, 1, 1, 1]),
        node("Add", "c2 c1", "sum"),
        node("Relu", "sum", "r2"),
        node("GlobalAveragePool", "r2", "mean"),
        node("Flatten", "mean", "flat"),
        node("Gemm", "flat W3 B3", "features"),
    ]
    weights = {"W1": _random(32, 3, 3, 3), "B1": _random(32), "W2": _random(32, 32, 3, 3) / 8, "W3": _random(32, 10), "B3": _random(10)}
    return model(nodes, [("picture", FLOAT, [batch, 3, 56, 56])], [("features", FLOAT, [batch, 10])], weights)


def copied_channels() -> ModelProto:
    """A depthwise convolution of many taps whose pixels conflict in the nearest cache, so that tiles of channels are copied."""
    taps = {"taps": _random(256, 1, 7, 7)}
    return model([node("Conv", "picture taps", "features", pads=[3] * 4, group=256)], [("picture", FLOAT, [1, 256, 28, 28])], [("features", FLOAT, [1, 256, 28, 28])], taps)


def copied_strips() -> ModelProto:
    """A convolution of strips of rows of several planes, whose padded copies are smaller at the edges, as taps outside of the input are left out."""
    taps = {"taps": _random(32, 32, 3, 3, 3)}
    shape = [1, 32, 8, 32, 32]
    return model([node("Conv", "picture taps", "features", pads=[1] * 6)], [("picture", FLOAT, shape)], [("features", FLOAT, shape)], taps)


def packed() -> ModelProto:
    """y = -x, both of 4 bits, and the elements of y as float8."""
    nodes = [node("Cast", "x", "wide", to=FLOAT), node("Neg", "wide", "negative"), node("Cast", "negative", "y", to=TensorProto.INT4), node("Cast", "y", "small", to=TensorProto.FLOAT8E4M3FN)]
    return model(nodes, [("x", TensorProto.INT4, [3])], [("y", TensorProto.INT4, [3]), ("small", TensorProto.FLOAT8E4M3FN, [3])])


def boxes() -> ModelProto:
    """Appends an exclamation mark to each word and a tensor to a sequence; also returns its length, and the words as a sequence."""
    nodes = [
        node("StringConcat", "words mark", "shouts"),
        node("SequenceInsert", "tensors last", "longer"),
        node("SequenceLength", "longer", "length"),
        node("SequenceConstruct", "shouts", "all_shouts"),
    ]
    sequences = {name: helper.make_tensor_sequence_value_info(name, type, [None]) for name, type in (("tensors", FLOAT), ("longer", FLOAT), ("all_shouts", TensorProto.STRING))}
    strings = TensorProto.STRING
    result = model(nodes, [("words", strings, ["n"])], [("shouts", strings, ["n"])], {"mark": np.array(["!"], object), "last": np.zeros(3, np.float32)})
    result.graph.input.append(sequences["tensors"])
    length = helper.make_tensor_value_info("length", TensorProto.INT64, [])
    result.graph.output.extend([sequences["longer"], length, sequences["all_shouts"]])
    return result


def maps() -> ModelProto:
    """Maps classes to scores; turns word counts into columns, and weights into strings in the order of their keys."""
    strings = TensorProto.STRING
    nodes = [
        node("ZipMap", "scores", "classes", domain="ai.onnx.ml", classlabels_strings=["setosa", "", "virginica"]),
        node("DictVectorizer", "counts", "row", domain="ai.onnx.ml", string_vocabulary=["a", "b", ""]),
        node("CastMap", "weights", "texts", domain="ai.onnx.ml", cast_to="TO_STRING"),
    ]
    result = model(nodes, [("scores", FLOAT, ["n", "c"])], [])
    map_of = lambda key: helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, None))
    result.graph.input.extend(helper.make_value_info(name, map_of(key)) for name, key in (("counts", strings), ("weights", TensorProto.INT64)))
    result.graph.output.append(helper.make_value_info("classes", helper.make_sequence_type_proto(map_of(strings))))
    result.graph.output.extend([helper.make_tensor_value_info("row", FLOAT, [1, 3]), helper.make_tensor_value_info("texts", strings, [1, None])])
    result.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return result


def changing() -> ModelProto:
    """Sizes that depend on the shapes and elements of inputs: gathered rows, rows with a positive sum, the states of an LSTM over all rows, a
    loop of computed length that adds copies, and one of two tensors of different sizes."""
    text = """<ir_version: 10, opset_import: ["" : 22]>
    changing (float[n,3] x, int64[k] picks, int64 turns, bool all) =>
        (float[k,3] picked, float[m,3] positive, float[n,1,1,4] states, float[g,3] grown, float[c,3] chosen) {
        picked = Gather <axis = 0> (x, picks)
        axis_1 = Constant <value_ints = [1]> ()
        sums = ReduceSum <keepdims = 0> (x, axis_1)
        zero = Constant <value_float = 0.0> ()
        is_positive = Greater (sums, zero)
        positive = Compress <axis = 0> (x, is_positive)
        steps = Unsqueeze (x, axis_1)
        states = LSTM <hidden_size = 4> (steps, W, R)
        goes = Constant <value = bool {1}> ()
        grown = Loop (turns, goes, x) <body = turn (int64 i, bool on, float[r,3] rows) => (bool on_out, float[q,3] more) {
            on_out = Identity (on)
            more = Concat <axis = 0> (rows, x)
        }>
        chosen = If (all) <then_branch = whole () => (float[w,3] whole_y) { whole_y = Neg (x) },
                           else_branch = part () => (float[p,3] part_y) { part_y = Abs (positive) }>
    }"""
    result = parser.parse_model(text)
    weights = {"W": _random(1, 16, 3), "R": _random(1, 16, 4)}
    result.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return result


def words() -> ModelProto:
    """Whether strings are words."""
    nodes = [node("RegexFullMatch", "texts", "matches", pattern=r"\pL+")]
    return model(nodes, [("texts", TensorProto.STRING, ["n"])], [("matches", TensorProto.BOOL, ["n"])])


def _random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
