"""Kernels that read operands with another innermost axis than the result's, against onnxruntime: sizes that do and do not fill tiles,
strides that conflict in the caches, and sizes known only at run time."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.references import OnnxRuntime

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
SIZES = [(16, 8, 8), (5, 3, 2), (64, 64, 64), (48, 7, 7), (20, 9, 33), (3, 1, 40), (32, 14, 1), (17, 6, 16)]

# The innermost axis is the last one for `a`, and channels for `b` and the result.
BODIES = {
    "sum": "s = Add(a, last) t = Relu(s)",
    "long": "s = Mul(a, last) t = Tanh(s)",
    "two": "half = Constant<value_float = 0.5>() b2 = Mul(b, half) l2 = Transpose<perm = [0, 3, 1, 2]>(b2) s = Sub(a, last) r = Max(a2, l2) t = Sub(s, r)",
    "one of two readers": "r = Mul(a, last) q = Add(a2, last) t = Sub(r, q)",
    # Values that a kernel may overwrite, unless it transposes.
    "computed": "p = Softmax(a) s = Sub(p, last) t = Tanh(s)",
    "gather": "i = Constant<value_ints = [0, -1, 0]>() t = Gather<axis = 2>(last, i)",
    "gather behind": "i = Constant<value_ints = [0, -1, 0]>() g = Gather<axis = 2>(last, i) t = Exp(g)",
}


def model(body: str, sizes: tuple) -> onnx.ModelProto:
    c, y, x = sizes
    outer = f"float[n,{c},{y},{x}]"
    return onnx.parser.parse_model(f"""{HEADER}
        transposed ({outer} a, {outer} a2, float[n,{y},{x},{c}] b) => (float[n,y_of_result,{x},{c}] z) {{
            last = Transpose<perm = [0, 3, 1, 2]>(b)
            {BODIES[body]}
            z = Transpose<perm = [0, 2, 3, 1]>(t)
        }}""")


def check(compiled, proto: onnx.ModelProto, sizes: tuple, batch: int) -> None:
    c, y, x = sizes
    rng = np.random.default_rng(c + x)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((batch, c, y, x), (batch, c, y, x), (batch, y, x, c))]
    inputs = dict(zip(("a", "a2", "b"), arrays, strict=True))
    np.testing.assert_allclose(compiled.run_by_name(inputs)["z"], OnnxRuntime(proto).run(inputs)["z"], rtol=2e-6, atol=2e-6, err_msg=str(sizes))


@pytest.mark.parametrize("body", BODIES)
def test_fixed_sizes(body):
    protos = [model(body, sizes) for sizes in SIZES]
    for proto, sizes, compiled in zip(protos, SIZES, onnx2halide.compile_many(protos), strict=True):
        check(compiled, proto, sizes, 2)


@pytest.mark.parametrize("body", BODIES)
def test_open_sizes(body):
    proto = model(body, ("c", "y", "x"))
    compiled = onnx2halide.compile(proto)
    for sizes in SIZES:
        check(compiled, proto, sizes, 1)


def test_a_chain_that_reads_each_value_twice():
    """It is traversed only once."""
    chain = "\n".join(f"v{i + 1} = Mul(v{i}, v{i})" for i in range(64))
    proto = onnx.parser.parse_model(f"""{HEADER}
        chain (float[2,8,4] v0) => (float[2,8,4] v64) {{ {chain} }}""")
    x = np.full((2, 8, 4), 1 + 2**-23, np.float32)
    np.testing.assert_array_equal(onnx2halide.compile(proto).run([x])[0], OnnxRuntime(proto).run({"v0": x})["v64"])
