"""MatMul, Softmax and MatMul, computed by one kernel in blocks of rows, against onnxruntime."""

import dataclasses
import json

import numpy as np
import onnx
import onnx2halide as package
import pytest
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxRuntime

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def operators(onnx2halide, tmp_path, proto: onnx.ModelProto) -> list[list[str]]:
    """Those of each kernel."""
    onnx.save(proto, tmp_path / "attention.onnx")
    assert onnx2halide("attention.onnx", "-o", "out", "--sources-only").returncode == 0
    steps = json.loads((tmp_path / "out" / "attention.json").read_text())["steps"]
    return [[node.split()[0] for node in step["nodes"]] for step in steps if step["kernels"]]


@dataclasses.dataclass(frozen=True)
class Sizes:
    queries: int
    keys: int
    size: int  # of a query and a key
    result: int  # of a value
    batch: tuple[int, ...] = (2, 3)

    def __str__(self):
        return "x".join(map(str, dataclasses.astuple(self)[:4])) + "_" + "x".join(map(str, self.batch))

    def inputs(self, dtype=np.float32) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.queries + self.keys)
        shapes = {"q": (*self.batch, self.queries, self.size), "k": (*self.batch, self.keys, self.size)}
        shapes |= {"v": (*self.batch, self.keys, self.result), "mask": (self.queries, self.keys)}
        return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def model(inputs: dict[str, list], scores: str, dtype="float") -> onnx.ModelProto:
    """Attention to values v with the scores that `scores` computes from queries q, keys k and a mask."""
    rank = len(inputs["q"])
    swap = [*range(rank - 2), rank - 1, rank - 2]
    ports = ", ".join(f"{dtype}[{','.join(map(str, shape))}] {name}" for name, shape in inputs.items())
    result = ",".join(map(str, [*inputs["q"][:-1], inputs["v"][-1]]))
    return onnx.parser.parse_model(f"""{HEADER}
        attention ({ports}) => ({dtype}[{result}] y) {{
            columns = Transpose<perm = {swap}>(k)
            {scores}
            rows = Softmax<axis = -1>(scores)
            y = MatMul(rows, v)
        }}""")


PLAIN = "scores = MatMul(q, columns)"
SCALED = f"""products = MatMul(q, columns)
    scale = Constant<value_float = 0.25>()
    scores = Mul(products, scale)"""
MASKED = f"{SCALED.replace('scores', 'scaled')}\nscores = Add(scaled, mask)"
FACTORS = """half = Constant<value_floats = [0.5]>()
    third = Constant<value_float = 0.3>()
    queries = Mul(q, half)
    keys = Mul(third, columns)
    scores = MatMul(queries, keys)"""
# The rows are not computed from the product element by element: a kernel has only these and the values.
READ = f"{PLAIN.replace('scores', 'columns_of_scores')}\nshape = Shape(columns_of_scores)\nscores = Reshape(columns_of_scores, shape)"


def check(compiled, proto: onnx.ModelProto, inputs: dict[str, np.ndarray], about="") -> None:
    inputs = {port.name: inputs[port.name] for port in proto.graph.input}
    expected, found = OnnxRuntime(proto).run(inputs)["y"], compiled.run_by_name(inputs)["y"]
    assert found.shape == expected.shape
    error = difference(found, expected)
    assert not error.exceeds(default_tolerance(found.dtype), default_floor(found.dtype, inputs.values())), f"{about} {error.text()}"


def shapes_of(inputs: dict[str, np.ndarray], scores: str) -> dict[str, list]:
    return {name: list(array.shape) for name, array in inputs.items() if name != "mask" or scores is MASKED}


FIXED = [
    Sizes(5, 10, 8, 8),
    Sizes(7, 2, 16, 3, (2,)),
    Sizes(8, 16, 16, 16),
    Sizes(33, 65, 24, 40, ()),
    Sizes(6, 197, 64, 64, (1, 3)),
    Sizes(197, 197, 32, 17, (9,)),
    Sizes(40, 1000, 5, 1, (1,)),
    Sizes(5, 1, 8, 8),
    Sizes(5, 0, 8, 8),
]


@pytest.mark.parametrize("scores", [PLAIN, MASKED, FACTORS], ids=["plain", "masked", "factors"])
@pytest.mark.parametrize("sizes", FIXED, ids=str)
def test_fixed_sizes(sizes, scores):
    inputs = sizes.inputs()
    proto = model(shapes_of(inputs, scores), scores)
    check(package.compile(proto, threads=2), proto, inputs)


@pytest.mark.parametrize("target", ["x86-64-linux-sse41", "x86-64-linux-sse41-avx-f16c-fma-avx2"])
def test_targets(target):
    for sizes in FIXED[:4]:
        inputs = sizes.inputs()
        proto = model(shapes_of(inputs, MASKED), MASKED)
        check(package.compile(proto, target=target), proto, inputs, sizes)


@pytest.mark.parametrize("dtype, name", [(np.float64, "double"), (np.float16, "float16")])
def test_other_types(onnx2halide, tmp_path, dtype, name):
    inputs = Sizes(9, 21, 8, 12).inputs(dtype)
    proto = model(shapes_of(inputs, MASKED), "products = MatMul(q, columns)\nscores = Add(products, mask)", name)
    assert operators(onnx2halide, tmp_path, proto) == [["MatMul", "Add", "SoftmaxMatMul"]]
    check(package.compile(proto), proto, inputs)


STANDARD = """<ir_version: 10, opset_import: ["" : 23]>
    attention (float[2,4,9,8] q, float[2,{heads},21,8] k, float[2,{heads},21,16] v, {mask} mask) => (float[2,4,9,16] y) {{
        y = Attention<is_causal = {causal}>(q, k, v, mask)
    }}"""


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", ["bool[9,21]", "float[2,4,9,21]"])
def test_standard_operator(onnx2halide, tmp_path, heads, causal, mask):
    """With rows whose keys are all masked."""
    proto = onnx.parser.parse_model(STANDARD.format(heads=heads, causal=causal, mask=mask))
    inputs = Sizes(9, 21, 8, 16, (2, 4)).inputs()
    inputs |= {name: inputs[name][:, :heads] for name in "kv"}
    shown = inputs["mask"] > -0.5
    shown[3] = False
    inputs["mask"] = shown if mask.startswith("bool") else np.broadcast_to(np.where(shown, inputs["mask"], -np.inf).astype(np.float32), (2, 4, 9, 21))
    check(package.compile(proto), proto, inputs)
    assert operators(onnx2halide, tmp_path, proto)[-1][-2:] == ["SoftmaxMatMul", "Where"]


OPEN = [(1, 1), (2, 2), (1, 9), (3, 3), (5, 10), (6, 6), (7, 16), (8, 17), (9, 33), (13, 64), (16, 31), (50, 50), (70, 200)]


@pytest.mark.parametrize("scores", [PLAIN, MASKED, READ], ids=["plain", "masked", "read"])
@pytest.mark.parametrize("batch", [["n", 3], ["n"], []], ids=str)
def test_open_sizes(batch, scores):
    shapes = {"q": [*batch, "queries", 8], "k": [*batch, "keys", 8], "v": [*batch, "keys", 20]}
    proto = model(shapes | ({"mask": ["queries", "keys"]} if scores is MASKED else {}), scores)
    compiled = package.compile(proto, threads=2)
    for number, (queries, keys) in enumerate(OPEN):
        extents = [1 + number % 3 if dim == "n" else dim for dim in batch]
        sizes = Sizes(queries, keys, 8, 20, tuple(extents))
        check(compiled, proto, sizes.inputs(), sizes)


def test_one_open_size():
    for shapes in ({"q": [4, "queries", 8], "k": [4, 24, 8], "v": [4, 24, 8]}, {"q": [4, 24, 8], "k": [4, "keys", 8], "v": [4, "keys", 8]}):
        proto = model(shapes, SCALED)
        compiled = package.compile(proto)
        for size in (1, 2, 5, 8, 24, 100):
            sizes = Sizes(*(size if "queries" in shapes["q"] else 24, size if "keys" in shapes["k"] else 24), 8, 8, (4,))
            check(compiled, proto, sizes.inputs(), sizes)


@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min, -1e4])
def test_hidden_keys_count_as_nothing(hidden):
    """The values of masked keys have no effect, whatever they are."""
    inputs = Sizes(9, 40, 8, 16).inputs()
    inputs["mask"] = np.where(np.tri(9, 40, 3), 0, hidden).astype(np.float32)
    proto = model(shapes_of(inputs, MASKED), MASKED)
    compiled = package.compile(proto)
    check(compiled, proto, inputs)
    found = compiled.run_by_name(inputs)["y"]
    inputs["v"][..., 12:, :] = 1e30
    np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], found)


@pytest.mark.parametrize("odd", [np.nan, np.inf], ids=str)
def test_rows_that_have_no_probabilities(odd):
    """NaN and infinite scores make their own row NaN, and no other."""
    inputs = Sizes(9, 40, 8, 16).inputs()
    inputs["mask"][4, 7] = odd
    proto = model(shapes_of(inputs, MASKED), MASKED)
    found = package.compile(proto).run_by_name(inputs)["y"]
    is_row = np.arange(9) == 4
    assert np.isnan(found[..., is_row, :]).all()
    assert np.isfinite(found[..., ~is_row, :]).all()


@pytest.mark.parametrize("odd", [-np.inf, np.nan], ids=str)
def test_rows_that_are_nan_are_cleared(onnx2halide, tmp_path, odd):
    """As exported by PyTorch. NaN among the values still affects rows that are not cleared."""
    sizes = Sizes(9, 40, 8, 16)
    inputs = sizes.inputs()
    inputs["mask"][4] = odd
    inputs["v"][0, 1, 3, 5] = np.nan
    proto = model(shapes_of(inputs, MASKED), MASKED)
    cleared = onnx.parser.parse_model(f"""{HEADER}
        cleared (float[2,3,9,40] rows, float[2,3,40,16] v) => (float[2,3,9,16] y) {{
            zero = Constant<value_float = 0.0>()
            is_nan = IsNaN(rows)
            kept = Where(is_nan, zero, rows)
            y = MatMul(kept, v)
        }}""").graph.node
    del proto.graph.node[-1]
    proto.graph.node.extend(cleared)
    assert operators(onnx2halide, tmp_path, proto) == [["MatMul", "Mul", "Add", "SoftmaxMatMul"]]
    expected, found = OnnxRuntime(proto).run(inputs)["y"], package.compile(proto).run_by_name(inputs)["y"]
    np.testing.assert_array_equal(np.isnan(found[0, 1, :4]), np.isnan(expected[0, 1, :4]))
    assert np.isnan(found[0, 1, :4, 5]).all()
    inputs["v"][0, 1, 3, 5] = 0
    check(package.compile(proto), proto, inputs)


@pytest.mark.parametrize(
    "scores, shapes, kernels",
    [
        (MASKED, {"q": [2, 9, 8], "k": [2, 40, 8], "v": [2, 40, 16], "mask": [9, 40]}, [["MatMul", "Mul", "Add", "SoftmaxMatMul"]]),
        # Scores that are themselves the result of attention.
        (
            "first = MatMul(q, columns)\nweights = Softmax(first)\nscores = MatMul(weights, mask)",
            {"q": [2, 9, 8], "k": [2, 40, 8], "v": [2, 24, 16], "mask": [2, 40, 24]},
            [["MatMul", "SoftmaxMatMul"], ["SoftmaxMatMul"]],
        ),
        # A single row reads the keys in place.
        (SCALED, {"q": [2, 1, 8], "k": [2, 40, 8], "v": [2, 40, 16]}, [["MatMul", "Mul"], ["Softmax"], ["MatMul"]]),
        # Factors of queries and of keys become one of the scores.
        (FACTORS, {"q": [2, 9, 8], "k": [2, 40, 8], "v": [2, 40, 16]}, [["MatMul", "Mul", "SoftmaxMatMul"]]),
        # Values that several images share.
        (SCALED, {"q": [2, 9, 8], "k": [2, 40, 8], "v": [40, 16]}, [["MatMul", "Mul"], ["Softmax"], ["MatMul"]]),
    ],
)
def test_kernels(onnx2halide, tmp_path, scores, shapes, kernels):
    assert operators(onnx2halide, tmp_path, model(shapes, scores)) == kernels


@pytest.mark.parametrize("queries, kernels", [(5, [["MatMul", "Mul", "Where", "SoftmaxMatMul"]]), (1, [["MatMul", "Mul", "Where"], ["Softmax"], ["MatMul"]])])
def test_heads_that_share_keys(onnx2halide, tmp_path, queries, kernels):
    """Their scores are not stored either, and a group's only queries are rows of one product."""
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["com.microsoft" : 1]> heads (
        float[1,{queries},48] q, float[1,{queries},16] k, float[1,{queries},16] v, float[1,2,9,8] past_k, float[1,2,9,8] past_v)
        => (float[1,{queries},48] y, float[1,2,9,8] next_k, float[1,2,9,8] next_v) <int32[1] last = {{8}}, int32 total = {{9}}> {{
            y, next_k, next_v = com.microsoft.GroupQueryAttention<num_heads = 6, kv_num_heads = 2>(q, k, v, past_k, past_v, last, total)
        }}""")
    appended = [["AppendStates"], ["AppendStates"]]
    assert sorted(operators(onnx2halide, tmp_path, proto)) == sorted(kernels + appended)
    rng = np.random.default_rng(0)
    inputs = {port.name: rng.normal(size=[dim.dim_value for dim in port.type.tensor_type.shape.dim]).astype(np.float32) for port in proto.graph.input}
    check(package.compile(proto), proto, inputs)


def test_many_heads_that_share_keys_of_a_length_known_at_run_time(onnx2halide, tmp_path):
    proto = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["com.microsoft" : 1]> heads (
        float[1,length,128] q, float[1,length,16] k, float[1,length,16] v, float[1,2,9,8] past_k, float[1,2,9,8] past_v, int32[1] last, int32 total)
        => (float[1,length,128] y, float[1,2,places,8] next_k, float[1,2,places,8] next_v) {
            y, next_k, next_v = com.microsoft.GroupQueryAttention<num_heads = 16, kv_num_heads = 2>(q, k, v, past_k, past_v, last, total)
        }""")
    assert ["MatMul", "Mul", "Where", "SoftmaxMatMul"] in operators(onnx2halide, tmp_path, proto)
    compiled, rng = package.compile(proto), np.random.default_rng(0)
    for length, total in ((5, 7), (1, 9), (3, 3)):
        shapes = {name: (1, length, width) for name, width in (("q", 128), ("k", 16), ("v", 16))} | {"past_k": (1, 2, 9, 8), "past_v": (1, 2, 9, 8)}
        inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        check(compiled, proto, inputs | {"last": np.int32([total - 1]), "total": np.array(total, np.int32)}, (length, total))


def test_an_output_keeps_its_name():
    """The product of scaled operands as the model's output."""
    proto = onnx.parser.parse_model(f"""{HEADER}
        product (float[7, 8] a, float[8, 9] b) => (float[7, 9] y) {{
            half = Constant<value_float = 0.5>()
            scaled = Mul(a, half)
            y = MatMul(scaled, b)
        }}""")
    rng = np.random.default_rng(0)
    check(package.compile(proto), proto, {"a": rng.normal(size=(7, 8)).astype(np.float32), "b": rng.normal(size=(8, 9)).astype(np.float32)})
