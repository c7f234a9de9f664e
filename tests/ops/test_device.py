"""Programs with kernels on a GPU and steps on the CPU, each of which must see the other's results, against onnxruntime."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx2halide
import pytest
from onnx import helper, numpy_helper, parser
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime

TARGET = "host-opencl"

# NonZero and TopK of a kernel's result, and kernels that read what they find.
FOUND = """g (float[n,m] x, int64[1] k) => (int64[2,c] places, float[d] doubled, float[n,t] best, int64[n,t] where) {
    y = Relu (x)
    places = NonZero (y)
    rows = Transpose <perm = [1, 0]> (places)
    kept = GatherND (y, rows)
    doubled = Add (kept, kept)
    best, where = TopK (y, k)
}"""

# A shape that kernels compute: the host program reads its elements.
SHAPED = """g (float[n] x, int64[2] by) => (float[a,b] y, float[b2,a2] turned) {
    shape = Abs (by)
    y0 = Reshape (x, shape)
    y = Neg (y0)
    turned = Transpose <perm = [1, 0]> (y)
}"""

# Indices computed by a kernel are checked before another one uses them.
INDEXED = """g (float[5,3] x, int64[n] i) => (float[n,3] y) {
    one = Constant <value_int = 1> ()
    next = Add (i, one)
    rows = Gather <axis = 0> (x, next)
    y = Exp (rows)
}"""

# States and results that grow, a condition computed by a kernel, and slices made on the CPU.
GROWING = """g (float[n] x, float limit) => (float[m] y, float[t,2] ends, int64[t2,1] counts) {
    goes = Constant <value = bool {1}> ()
    y, ends, counts = Loop ("", goes, x) <body = turn (int64 i, bool on, float[k] s)
        => (bool on_out, float[k2] s_out, float[2] end, int64[1] count) {
        s_out = Concat <axis = 0> (s, s)
        sum = ReduceSum <keepdims = 0> (s_out)
        on_out = Less (sum, limit)
        most = ReduceMax <keepdims = 1> (s_out)
        end = Concat <axis = 0> (most, most)
        found = NonZero (s_out)
        shape = Shape (found)
        one = Constant <value_ints = [1]> ()
        two = Constant <value_ints = [2]> ()
        count = Slice (shape, one, two)
    }>
}"""

# A trip count from an input, results of known extents, one of them backwards, and states that are swapped.
STEPS = """g (float[t,n] x, float[n] a, float[n] b) => (float[n] c, float[n] d, float[t,n] sums, float[t,n] turned) {
    c, d, sums, turned = Scan <num_scan_inputs = 1, scan_output_directions = [0, 1], body = turn (float[n] p, float[n] q, float[n] step)
        => (float[n] p_out, float[n] q_out, float[n] sum, float[n] back) {
        p_out = Identity (q)
        q_out = Add (p, step)
        sum = Mul (q_out, q)
        back = Relu (step)
    }> (a, b, x)
}"""

# A Scan within a Scan, whose slices are slices.
NESTED = """g (float[s,t,n] x, float[n] a) => (float[n] c, float[s,t,n] all) {
    c, all = Scan <num_scan_inputs = 1, body = outer (float[n] p, float[t,n] rows) => (float[n] p_out, float[t,n] sums) {
        p_out, sums = Scan <num_scan_inputs = 1, body = inner (float[n] q, float[n] row) => (float[n] q_out, float[n] sum) {
            q_out = Add (q, row)
            sum = Neg (q_out)
        }> (p, rows)
    }> (a, x)
}"""

# Branches on a kernel's result: one computes on the device, the other one on the CPU.
BRANCHES = """g (float[n] x) => (float[m] y) {
    zero = Constant <value_float = 0.0> ()
    sum = ReduceSum <keepdims = 0> (x)
    is_large = Greater (sum, zero)
    z = If (is_large) <then_branch = large () => (float[k] doubled) {
        doubled = Add (x, x)
    }, else_branch = small () => (float[h] kept) {
        negative = Less (x, zero)
        kept = Compress <axis = 0> (x, negative)
    }>
    y = Exp (z)
}"""

# Sequences hold copies of kernels' results in the CPU's memory.
SEQUENCES = """g (float[n,m] x) => (float[n,m2] y, float[n,m] last) {
    double = Add (x, x)
    half = Neg (x)
    both = SequenceConstruct (double, half)
    y = ConcatFromSequence <axis = 1> (both)
    one = Constant <value_int = 1> ()
    taken = SequenceAt (both, one)
    last = Exp (taken)
}"""

# A view of a view of an input, read by a kernel and by the CPU, and an output that is a view.
VIEWS = """g (float[2,6] x, float[3,4] y) => (float[12] flat, int64[2,c] places, float[3,4] z) {
    three = Constant <value_ints = [3, 4]> ()
    all = Constant <value_ints = [-1]> ()
    tall = Reshape (x, three)
    sum = Add (tall, y)
    other = Reshape (x, three)
    product = Mul (tall, other)
    z = Sub (product, sum)
    places = NonZero (tall)
    flat = Reshape (z, all)
}"""


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


CASES = {
    "found": (FOUND, [{"x": floats(n, m), "k": ints(k)} for n, m, k in ((3, 4, 2), (5, 9, 4), (1, 2, 1))]),
    "shaped": (SHAPED, [{"x": floats(12), "by": ints(3, 4)}, {"x": floats(30), "by": ints(-5, 6)}, {"x": floats(2), "by": ints(1, 2)}]),
    "indexed": (INDEXED, [{"x": floats(5, 3), "i": ints(0, 3, -2)}, {"x": floats(5, 3), "i": ints(1, 1, 2, 3, -6)}]),
    "growing": (GROWING, [{"x": np.abs(floats(n)), "limit": np.array(limit, np.float32)} for n, limit in ((3, 20), (2, 300), (5, 1))]),
    "steps": (STEPS, [{"x": floats(t, n), "a": floats(n), "b": floats(n + 1)[1:]} for t, n in ((4, 3), (7, 33), (1, 2))]),
    "nested": (NESTED, [{"x": floats(s, t, n), "a": floats(n)} for s, t, n in ((2, 3, 4), (4, 5, 17), (1, 1, 1))]),
    "branches": (BRANCHES, [{"x": x} for x in (ints(1, -2, 3).astype(np.float32), ints(-3, 1, -1, -2).astype(np.float32), floats(40) + 1)]),
    "sequences": (SEQUENCES, [{"x": floats(n, m)} for n, m in ((2, 3), (4, 9), (1, 1))]),
    "views": (VIEWS, [{"x": floats(2, 6), "y": floats(3, 4)}, {"x": floats(2, 6) + 1, "y": floats(3, 4)}]),
}


def model(text: str):
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')


def check(compiled, reference, inputs) -> None:
    found = compiled.run_by_name(inputs)
    for name, expected in reference.run(inputs).items():
        distance = difference(found[name], expected)
        assert not distance.exceeds(1e-5), (name, distance.text())


@pytest.mark.parametrize("name", CASES)
def test_programs(name):
    text, runs = CASES[name]
    proto = model(text)
    compiled, reference = onnx2halide.compile(proto, target=TARGET), OnnxRuntime(proto)
    for inputs in [*runs, runs[0]]:
        check(compiled, reference, inputs)


def layer(op: str, gates: int):
    features, hidden, batch = 5, 9, 2
    weights = {"W": floats(2, gates * hidden, features), "R": floats(2, gates * hidden, hidden) / 4, "B": floats(2, 2 * gates * hidden)}
    node = helper.make_node(op, ["x", *weights], ["y", "h"], hidden_size=hidden, direction="bidirectional")
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info("x", 1, ["time", batch, features])],
        [helper.make_tensor_value_info("y", 1, ["time", 2, batch, hidden]), helper.make_tensor_value_info("h", 1, [2, batch, hidden])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("op, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers(op, gates):
    proto = layer(op, gates)
    compiled, reference = onnx2halide.compile(proto, target=TARGET), OnnxRuntime(proto)
    for time in (4, 1, 11):
        check(compiled, reference, {"x": floats(time, 2, 5)})


def test_sessions():
    """Two sessions of one library, used alternately, at the same time, and one after the other has been destroyed."""
    proto = model(GROWING)
    sessions, reference = [onnx2halide.compile(proto, target=TARGET) for _ in range(2)], OnnxRuntime(proto)
    runs = CASES["growing"][1]
    for i in range(4):
        check(sessions[i % 2], reference, runs[i % 3])
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda session: [check(session, reference, runs[i % 3]) for i in range(30)], sessions))
    del sessions[0]
    check(sessions[0], reference, runs[0])


def test_indices_outside():
    """Without an error, a kernel on a device would read out of bounds."""
    compiled, reference = onnx2halide.compile(model(INDEXED), target=TARGET, name="indexed"), OnnxRuntime(model(INDEXED))
    with pytest.raises(ValueError) as failure:
        compiled.run({"x": floats(5, 3), "i": ints(0, 4)})
    assert str(failure.value) == "indexed: node 'rows' (Gather): input 1 has the index 5, expected one in [-5, 4]"
    check(compiled, reference, CASES["indexed"][1][0])


@pytest.mark.parametrize("dims", ["3,4,h,w", "n,4,h,w", "3,4,h,6"])
@pytest.mark.parametrize(
    "node",
    [
        "ConvTranspose <strides = [3, 3]> (x, narrow)",
        "ConvTranspose <strides = [2, 2]> (x, w)",
        "Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, v)",
        "MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)",
        "DepthToSpace <blocksize = 2> (x)",
        "Transpose <perm = [0, 2, 3, 1]> (x)",
    ],
)
def test_several_open_extents(node, dims):
    rng = np.random.default_rng(0)
    weights = [("narrow", (4, 8, 1, 1)), ("w", (4, 8, 3, 3)), ("v", (8, 4, 3, 3))]
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g (float[{dims}] x) => (float[b,c,y_height,y_width] y) {{ y = {node} }}')
    model.graph.initializer.extend(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name) for name, shape in weights if name in node)
    compiled, reference = onnx2halide.compile(model, target=TARGET), OnnxRuntime(model)
    for height in (5, 40):
        x = rng.standard_normal((3, 4, height, 6)).astype(np.float32)
        assert not difference(compiled.run([x])[0], reference.run({"x": x})["y"]).exceeds(1e-4, 1e-5)
