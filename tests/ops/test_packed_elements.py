"""Elements of 4 and 2 bits, which share bytes in a model's inputs, outputs and file, and have one byte each in between."""

import ml_dtypes
import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.references import OnnxReference

TYPES = {
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    TensorProto.INT2: ml_dtypes.int2,
    TensorProto.UINT2: ml_dtypes.uint2,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
}
names = TensorProto.DataType.Name


def model(nodes: list[onnx.NodeProto], takes: list[tuple], gives: list[tuple], constants=()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info(*port) for port in takes], [helper.make_tensor_value_info(*port) for port in gives], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)


def sample(code: int, *shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(len(shape)).integers(-8, 8, shape)).astype(TYPES[code])


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert (got == expected).all(), f"{got}, expected {expected}"


@pytest.mark.parametrize("code", TYPES, ids=names)
def test_movement(code):
    """Elements of inputs, of an initialiser in each of its two forms, of tensors with a partial last byte, of scalars and of empty tensors."""
    x, w, z = sample(code, 3, 5), sample(code, 2, 5), sample(code)
    numbers = w.astype(np.float32).ravel()
    constants = [
        helper.make_tensor("w", code, w.shape, numbers),
        helper.make_tensor("one", code, (), [1]),
        helper.make_tensor("pads", TensorProto.INT64, (4,), [1, 0, 2, 1]),
        helper.make_tensor("shape", TensorProto.INT64, (2,), [5, 2]),
        helper.make_tensor("first", TensorProto.INT64, (1,), [0]),
    ]
    nodes = [
        helper.make_node("Constant", [], ["v"], value=helper.make_tensor("v", code, w.shape, onnx.numpy_helper.from_array(w).raw_data, raw=True)),
        helper.make_node("Concat", ["w", "x", "v"], ["concat"], axis=0),
        helper.make_node("Transpose", ["x"], ["transpose"]),
        helper.make_node("Pad", ["x", "pads", "one"], ["pad"]),
        helper.make_node("Reshape", ["w", "shape"], ["reshape"]),
        helper.make_node("Unsqueeze", ["z", "first"], ["unsqueeze"]),
        helper.make_node("ConstantOfShape", ["shape"], ["filled"], value=helper.make_tensor("value", code, (1,), [1])),
        helper.make_node("Flatten", ["empty"], ["flatten"]),
        helper.make_node("Identity", ["x"], ["identity"]),
        helper.make_node("Transpose", ["w"], ["folded"]),
        helper.make_node("Cast", ["folded"], ["wide"], to=TensorProto.FLOAT),
    ]
    one = np.array(1).astype(TYPES[code])
    expected = {
        "concat": np.concatenate([w, x, w]), "transpose": x.T, "pad": np.pad(x, [(1, 2), (0, 1)], constant_values=one), "reshape": w.reshape(5, 2),
        "unsqueeze": z.reshape(1), "filled": np.full((5, 2), one), "flatten": x[:0], "identity": x, "w": w,
        "folded": w.T, "wide": w.T.astype(np.float32),
    }  # fmt: skip
    takes = [("x", code, (3, 5)), ("z", code, ()), ("empty", code, (0, 5))]
    gives = [(name, TensorProto.FLOAT if name == "wide" else code, array.shape) for name, array in expected.items()]
    made = model(nodes, takes, gives, constants)
    for name, array in onnx2halide.compile(made).run_by_name({"x": x, "z": z, "empty": x[:0]}).items():
        assert_same(array, expected[name])


@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT2], ids=names)
def test_open_batch(code):
    nodes = [helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT), helper.make_node("Abs", ["wide"], ["abs"]), helper.make_node("Cast", ["abs"], ["y"], to=code)]
    compiled = onnx2halide.compile(model(nodes, [("x", code, ("batch", 5))], [("wide", TensorProto.FLOAT, ("batch", 5)), ("y", code, ("batch", 5))]))
    for batch in (3, 1, 4):
        x = sample(code, batch, 5)
        wide, y = compiled.run([x])
        assert_same(wide, x.astype(np.float32))
        assert_same(y, np.abs(wide).astype(TYPES[code]))


@pytest.mark.parametrize(
    "source, target",
    [(TensorProto.INT4, TensorProto.UINT4), (TensorProto.UINT4, TensorProto.INT4), (TensorProto.UINT4, TensorProto.FLOAT4E2M1), (TensorProto.FLOAT4E2M1, TensorProto.INT4), (TensorProto.INT2, TensorProto.UINT2)],
    ids=names,
)
def test_bitcast(source, target):
    x = sample(source, 17)
    nodes = [helper.make_node("BitCast", ["x"], ["y"], to=target), helper.make_node("Cast", ["y"], ["wide"], to=TensorProto.FLOAT)]
    made = model(nodes, [("x", source, x.shape)], [("y", target, x.shape), ("wide", TensorProto.FLOAT, x.shape)])
    for got, expected in zip(onnx2halide.compile(made).run([x]), OnnxReference(made).run({"x": x}).values()):
        assert_same(got, expected)


def test_operators_that_are_not_defined_for_them():
    made = model([helper.make_node("Relu", ["x"], ["y"], name="relu")], [("x", TensorProto.FLOAT8E5M2, (3,))], [("y", TensorProto.FLOAT8E5M2, (3,))])
    with pytest.raises(onnx2halide.CompileError) as caught:
        onnx2halide.compile(made)
    assert str(caught.value) == "small.onnx: node 'relu' (Relu): input 0 has type float8e5m2, which is not supported"
