"""Products with matrices that a Tile repeats along the batch, which are not copied."""

import numpy as np
import onnx2halide
import pytest
from onnx import parser

PRODUCTS = {  # of x and the repeated m, whose shape is given
    "right": ((5, 7), "t = Tile (m, r) y = MatMul (x, t)", lambda x, m: x @ m),
    "transposed": ((7, 5), "t = Tile (m, r) u = Transpose <perm = [0, 2, 1]> (t) y = MatMul (x, u)", lambda x, m: x @ m.transpose(0, 2, 1)),
    "left": ((7, 4), "t = Tile (m, r) y = MatMul (t, x)", lambda x, m: m @ x),
    "read twice": ((5, 5), "t = Tile (m, r) p = MatMul (x, t) y = MatMul (p, t)", lambda x, m: x @ m @ m),
    "epilogue": ((5, 7), "t = Tile (m, r) p = MatMul (x, t) z = Tanh (p) y = Mul (z, z)", lambda x, m: np.tanh(x @ m) ** 2),
}
# Reshaped as heads of attention are: the product's batch is that of the sentences times the matrices.
OPERANDS = """
    sizes = Shape (sentences)
    zero = Constant <value_ints = [0]> ()
    n = Gather (sizes, zero)
    ones = Constant <value_ints = [1, 1]> ()
    r = Concat <axis = 0> (n, ones)
    shape = Constant <value_ints = [-1, 4, 5]> ()
    x = Reshape (sentences, shape)"""


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("batch", [3, 1])
@pytest.mark.parametrize("sentences", [2, "n"])
def test_repeated_matrices(name, batch, sentences):
    shape, body, expected = PRODUCTS[name]
    inputs = f"float[{sentences},{batch},4,5] sentences, float[{batch},{shape[0]},{shape[1]}] m"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[a,b,c] y) {{ {OPERANDS} {body} }}')
    compiled, matrices = onnx2halide.compile(model), random(batch, *shape)
    for count in (2, 1, 5) if sentences == "n" else (2,):
        x = random(count, batch, 4, 5)
        (y,) = compiled.run([x, matrices])
        np.testing.assert_allclose(y, expected(x.reshape(-1, 4, 5), np.tile(matrices, (count, 1, 1))), rtol=1e-5, atol=1e-5)
