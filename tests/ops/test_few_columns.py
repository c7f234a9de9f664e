"""Products with few columns of weights, against numpy: of so few rows that sums are added up in parts, with depths that are and are not
multiples of the parts; of many rows, with columns that are and are not whole vectors and blocks of weights; elements of three types,
and what follows in the same kernel."""

import itertools

import numpy as np
import onnx
import onnx2halide
import pytest
from make_models import model, node

ROWS_DEPTHS_COLUMNS = [
    *[(1, 128, 24), (1, 256, 10), (1, 36, 16), (1, 127, 5), (1, 7, 3), (2, 64, 16), (3, 40, 2), (1, 30, 1), (1, 64, 33), (1, 512, 257)],
    *[(50, 4, 4), (29, 64, 20), (40, 33, 24), (31, 64, 9), (33, 10, 40), (27, 16, 6)],
]
TYPES = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE, "int32": onnx.TensorProto.INT32}


def product(kind: str, rows: int, weights: np.ndarray) -> onnx.ModelProto:
    nodes = [node("MatMul", "a w", "p"), node("Add", "p p", "y")]
    return model(nodes, [("a", TYPES[kind], [rows, weights.shape[0]])], [("y", TYPES[kind], [rows, weights.shape[1]])], {"w": weights})


@pytest.mark.parametrize("kind, target", [*itertools.product(TYPES, ["host", "x86-64-linux-avx2-fma-f16c"]), ("float32", "x86-64-linux")])
def test_few_columns(kind, target):
    rng = np.random.default_rng(3)
    all_weights = [rng.integers(-9, 9, (depth, columns)).astype(kind) for _, depth, columns in ROWS_DEPTHS_COLUMNS]
    protos = [product(kind, rows, weights) for (rows, _, _), weights in zip(ROWS_DEPTHS_COLUMNS, all_weights, strict=True)]
    for proto, weights, sizes, compiled in zip(
        protos, all_weights, ROWS_DEPTHS_COLUMNS, onnx2halide.compile_many(protos, target=target), strict=True
    ):
        a = rng.integers(-9, 9, sizes[:2]).astype(kind)
        # Sums of small integers are exact in every order.
        np.testing.assert_array_equal(compiled.run([a])[0], 2 * (a @ weights), err_msg=str(sizes))


@pytest.mark.parametrize("target", ["host", "x86-64-linux"])
def test_tasks_of_computed_matrices(target):
    """Tasks of several tiles, the last of which fills no vector, over a matrix that is packed at run time."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((16, 16), (16, 333)))
    ports = [("a", TYPES["float32"], [*a.shape]), ("b", TYPES["float32"], [*b.shape])], [("y", TYPES["float32"], [16, 333])]
    compiled = onnx2halide.compile(model([node("MatMul", "a b", "y")], *ports), target=target)
    np.testing.assert_array_equal(compiled.run([a, b])[0], a @ b)
