"""Small graphs that test the interaction of passes, kernels and memory planning, against onnxruntime."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.references import OnnxRuntime


@dataclass
class Graph:
    name: str
    text: str  # from the inputs on, as ONNX's textual syntax has it
    inputs: dict[str, tuple[int, ...]]  # shapes
    constants: dict = field(default_factory=dict)  # shapes of random numbers, or arrays
    opset: int = 17

    def __str__(self):
        return self.name


def rows(shape):
    """Positive numbers, as variances and scales are."""
    return np.abs(np.random.default_rng(1).normal(size=shape)).astype(np.float32) + 0.1


CASES = [
    Graph(
        "the first token of a transformer's last layer, and its last two",
        """(float[n, 9, 24] x) => (float[n, 24] y, float[n, 2, 24] z)
            { q = MatMul(x, w) r = Reshape(q, heads) t = Transpose<perm = [0, 2, 1, 3]>(r) k = Transpose<perm = [0, 2, 3, 1]>(r)
              s = MatMul(t, k) p = Softmax<axis = -1>(s) o = MatMul(p, t) u = Transpose<perm = [0, 2, 1, 3]>(o) c = Reshape(u, rows)
              a = Add(c, x) l = LayerNormalization<axis = -1>(a, g, b) m = MatMul(l, w) e = Relu(m) f = Add(a, e)
              y = Gather<axis = 1>(f, first) d = Tanh(q) z = Gather<axis = 1>(d, last) }""",
        {"x": (2, 9, 24)},
        {"w": (24, 24), "g": (24,), "b": (24,), "heads": np.array([0, 9, 4, 6]), "rows": np.array([0, 9, 24]), "first": np.array(0), "last": np.array([-1, -2])},
    ),
    Graph(
        "heads of keys and values that groups of queries share, of several queries and of one",
        """(float[n, t, 48] x, float[n, 2, p, 8] a, float[n, 2, p, 8] b, float[n, 1, t, u] mf) => (float[n, t, 48] y, float[n, 1, 48] z)
            { q = MatMul(x, w) qr = Reshape(q, heads) qt = Transpose<perm = [0, 2, 1, 3]>(qr)
              k = MatMul(x, kw) kr = Reshape(k, shared) kt = Transpose<perm = [0, 2, 1, 3]>(kr) kc = Concat<axis = 2>(a, kt) ku = Unsqueeze(kc, two)
              ke = Expand(ku, group) kh = Reshape(ke, whole) kk = Transpose<perm = [0, 1, 3, 2]>(kh) ks = Mul(kk, scale)
              v = MatMul(x, vw) vr = Reshape(v, shared) vt = Transpose<perm = [0, 2, 1, 3]>(vr) vc = Concat<axis = 2>(b, vt) vu = Unsqueeze(vc, two)
              ve = Expand(vu, group) vh = Reshape(ve, whole)
              s = MatMul(qt, ks) m = Greater(mf, nothing) f = Where(m, s, low) e = Add(f, bias) pr = Softmax<axis = -1>(e) o = MatMul(pr, vh)
              ot = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(ot, rows)
              q1 = Slice(qt, zero, one, two) s1 = MatMul(q1, kk) e1 = Add(s1, bias) p1 = Softmax<axis = 3>(e1) nan = IsNaN(p1) c1 = Where(nan, nothing, p1)
              o1 = MatMul(c1, vh) t1 = Transpose<perm = [0, 2, 1, 3]>(o1) z = Reshape(t1, rows) }""",
        {"x": (2, 5, 48), "a": (2, 2, 4, 8), "b": (2, 2, 4, 8), "mf": (2, 1, 5, 9)},
        {"w": (48, 48), "kw": (48, 16), "vw": (48, 16), "heads": np.array([0, 0, 6, 8]), "shared": np.array([0, 0, 2, 8]), "two": np.array([2]), "one": np.array([1]), "zero": np.array([0]),
         "group": np.array([1, 1, 3, 1, 1]), "whole": np.array([0, 6, -1, 8]), "rows": np.array([0, 0, 48]), "scale": np.float32(0.3), "low": np.float32(-1e9), "nothing": np.float32(0), "bias": (1, 6, 1, 1)},
    ),
    Graph(
        "averages of convolutions of single pixels, padded and of whole images",
        """(float[n, 24, h, 13] x) => (float[n, 40, u, v] y, float[n, 8, 1, 1] z)
            { c = Conv(x, w, b) a = AveragePool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1]>(c) y = Relu(a)
              d = Conv<group = 2>(x, k) z = GlobalAveragePool(d) }""",
        {"x": (2, 24, 10, 13)},
        {"w": (40, 24, 1, 1), "b": (40,), "k": (8, 12, 1, 1)},
    ),
    Graph(
        "parallel convolutions of one tensor, depthwise ones and strided ones too",
        """(float[n, 8, 11, 9] x) => (float[n, 8, 11, 9] y, float[n, 8, 11, 9] z, float[n, 4, 6, 5] s)
            { a = Conv<pads = [1, 1, 1, 1]>(x, w, b) c = Conv(x, v) d = BatchNormalization(x, f, b, m, u) e = Add(a, c) g = Sub(e, d) h = Add(g, x)
              i = BatchNormalization(h, f, m, b, u) y = Relu(i)
              j = Conv<group = 8, pads = [2, 1, 2, 1], dilations = [2, 1]>(x, k, b) l = Conv<group = 8>(x, o) p = Conv<group = 8, pads = [2, 0, 2, 0], dilations = [2, 1]>(x, q)
              t = Mul(x, r) z = Sum(j, x, l, p, t)
              aa = Conv<group = 2, strides = [2, 2], pads = [0, 1, 1, 1]>(x, ww) cc = Conv<group = 2, strides = [2, 2]>(x, vv) s = Sub(cc, aa) }""",
        {"x": (2, 8, 11, 9)},
        {"w": (8, 8, 3, 3), "b": (8,), "v": (8, 8, 1, 1), "f": (8,), "m": (8,), "u": rows(8) + 1, "k": (8, 1, 3, 3), "o": (8, 1, 1, 1), "q": (8, 1, 3, 1), "r": (8, 1, 1), "ww": (4, 4, 2, 3), "vv": (4, 4, 1, 1)},
    ),
    Graph(
        "a normalisation of rows behind a product",
        "(float[3, 5, 24] x) => (float[3, 5, 16] y) { m = MatMul(x, w) y = BatchNormalization(m, s, b, u, v) }",
        {"x": (3, 5, 24)},
        {"w": (24, 16), "s": (5,), "b": (5,), "u": (5,), "v": rows(5)},
    ),
    Graph(
        "a small constant of a whole image's shape behind a convolution",
        "(float[1, 4, 2, 3] x) => (float[1, 8, 2, 3] y, float[1, 8, 2, 3] z) { c = Conv(x, w) y = Add(c, k) z = Mul(k, c) }",
        {"x": (1, 4, 2, 3)},
        {"w": (8, 4, 1, 1), "k": (1, 8, 2, 3)},
    ),
    Graph(
        "factors that are expanded to an image's shape",
        """(float[n, 4, 3, 5] x, float[n, 4, 1, 1] f) => (float[n, 4, 3, 5] y)
            { g = Sigmoid(f) s = Shape(x) e = Expand(g, s) m = Mul(e, x) t = Tile(slope, repeats) y = PRelu(m, t) }""",
        {"x": (2, 4, 3, 5), "f": (2, 4, 1, 1)},
        {"slope": (4, 1, 1), "repeats": np.array([1, 3, 5])},
    ),
    Graph(
        "axes of a product's view that are moved though nothing else is",
        "(float[3, 1, 8] x) => (float[3, 1, 1, 6] y) { k = MatMul(x, w) v = Reshape(k, s) y = Transpose<perm = [0, 2, 1, 3]>(v) }",
        {"x": (3, 1, 8)},
        {"w": (8, 6), "s": np.array([0, 0, 1, -1])},
    ),
    Graph(
        "an axis of a product's view that is reversed though it is one long",
        "(float[4, 8] x) => (float[4, 1, 6] y) { k = MatMul(x, w) v = Reshape(k, s) y = Slice(v, start, end, one, step) }",
        {"x": (4, 8)},
        {"w": (8, 6), "s": np.array([4, 1, 6]), "start": np.array([0]), "end": np.array([-5]), "one": np.array([1]), "step": np.array([-1])},
    ),
    Graph(
        "a pool with windows of padding alone",
        "(float[1, 1, 4, 4] x) => (float[1, 1, 9, 9] y) { p = Pad(x, pads, lowest) y = MaxPool<kernel_shape = [2, 2]>(p) }",
        {"x": (1, 1, 4, 4)},
        {"pads": np.array([0, 0, 3, 3, 0, 0, 3, 3]), "lowest": np.array(-np.inf, np.float32)},
    ),
    Graph(
        "a product of quantised constants",
        """(float[8] x) => (float[1, 8] y)
            { d = DequantizeLinear(a, sa, za) e = DequantizeLinear(w, sw, zw) m = MatMul(d, e) y = Add(m, x) }""",
        {"x": (8,)},
        {
            "a": (np.arange(16) * 15 % 251).astype(np.uint8)[None],
            "w": (np.arange(128) * 37 % 255 - 127).astype(np.int8).reshape(16, 8),
            "sa": np.float32(0.02), "za": np.uint8(128), "sw": np.float32(0.01), "zw": np.int8(0),
        },
    ),
    Graph(
        "as many axes as a tensor may have",
        f"(float[{', '.join(['1'] * 15)}, 3] x) => (float[{', '.join(['1'] * 15)}, 3] y) {{ y = Neg(x) }}",
        {"x": (1,) * 15 + (3,)},
    ),
    Graph("a kernel that is called like the runtime", "(float[3] x) => (float[3] runtime) { runtime = Relu(x) }", {"x": (3,)}),
    Graph(
        "a matrix less its transpose, which is a view",
        "(float[7, 7] x) => (float[7, 7] y) { a = Softmax(x) t = Transpose(a) d = Sub(a, t) y = Softmax(d) }",
        {"x": (7, 7)},
    ),
    Graph(
        "a state of a loop less its transpose",
        """(float[7, 7] x) => (float[7, 7] y) { y = Loop(three, , x) <body = turn (int64 i, bool c, float[7, 7] a) => (bool go, float[7, 7] d)
            { go = Identity(c) t = Transpose(a) d = Sub(t, a) }> }""",
        {"x": (7, 7)},
        {"three": np.array(3)},
    ),
    Graph(
        "single elements joined in rows that are read in the same kernel",
        "(float[2, 4, 12, 2] x, float[12, 2] s, float[12, 2] c) => (float[2, 4, 12, 2] y)"
        "{ a = Mul(x, c) l, r = Split<axis = 3>(x) n = Neg(r) t = Concat<axis = 3>(n, l) b = Mul(t, s) y = Add(a, b) }",
        {"x": (2, 4, 12, 2), "s": (12, 2), "c": (12, 2)},
    ),
    Graph(
        "a Concat along the outermost of open axes",
        "(float[a, b, c] x, float[d, b, c] z) => (float[e, b, c] y) { y = Concat<axis = 0>(x, z, x) }",
        {"x": (2, 3, 5), "z": (1, 3, 5)},
    ),
    Graph(
        "an output that is what a run finds in a shape that the model gives",
        "(float[2, 3] x) => (int64[3, 4] y, int64[2, m] z) { z = NonZero(x) y = Reshape(z, s) }",
        {"x": (2, 3)},
        {"s": np.array([3, 4])},
    ),
    Graph(
        "an output in whose shape nodes read what a run finds last",
        "(float[2, 3] x) => (int64[2, m] y, int64[3, 4] z) { f = NonZero(x) z = Reshape(f, s) y = Mul(f, f) }",
        {"x": (2, 3)},
        {"s": np.array([3, 4])},
    ),
    Graph(
        "a branch that gives what a run finds a shape",
        """(float[2, 3] x) => (int64[3, 4] y) { m = ReduceMax<keepdims = 0>(x) c = Greater(m, zero)
            y = If(c) <then_branch = found () => (int64[3, 4] a) { z = NonZero(x) a = Reshape(z, s) },
                else_branch = given () => (int64[3, 4] b) { b = Constant<value = int64[3, 4] {0,1,2,3,4,5,6,7,8,9,10,11}>() }> }""",
        {"x": (2, 3)},
        {"s": np.array([3, 4]), "zero": np.float32(0)},
    ),
    Graph(
        "a scale for each row behind a product",
        "(float[batch, 5, 24] x) => (float[batch, 5, 16] y) { m = MatMul(x, w) q = QuantizeLinear(m, s, z) y = DequantizeLinear(q, s, z) }",
        {"x": (3, 5, 24)},
        {"w": (24, 16), "s": rows(5), "z": np.zeros(5, np.uint8)},
    ),
    Graph(
        "a loop of a hundred turns that an exporter has unrolled",
        "(float[6, 9] x) => (float[6, 9] y) { v0 = Neg(x) "
        + " ".join(f"m{i} = Mul(v{i}, x) s{i} = Sin(m{i}) v{i + 1} = Add(s{i}, b)" for i in range(100))
        + " y = Relu(v100) }",
        {"x": (6, 9)},
        {"b": (9,)},
    ),
    Graph(
        "computed indices of a box",
        "(float[12, 10] x, float[8, 8] u) => (float[12, 10] y, float[8, 8] z) { i = Transpose<perm = [0, 2, 1]>(t) z = Relu(u) y = ScatterND(x, i, z) }",
        {"x": (12, 10), "u": (8, 8)},
        {"t": np.mgrid[2:10, 1:9].transpose(1, 0, 2)},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_small_graphs(case):
    draw = np.random.default_rng(0)
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {case.opset}]> g {case.text}')
    for name, value in case.constants.items():
        array = np.asarray(value) if isinstance(value, np.ndarray | np.generic) else draw.normal(size=value).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    inputs = {name: draw.normal(size=shape).astype(np.float32) for name, shape in case.inputs.items()}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
