"""Weights that a model stores as sparse tensors, against dense ones."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxRuntime

DENSE = np.zeros((3, 4), np.float32)
DENSE[0, 1], DENSE[1, 3], DENSE[2, 0] = 3, -4, 0.5


def sparse(indices: np.ndarray, numbers=(3, -4, 0.5), dims=(3, 4)) -> SparseTensorProto:
    values = numpy_helper.from_array(np.array(numbers, np.float32), "w")
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices, np.int64)), dims)


def adding(weight: SparseTensorProto, is_node: bool):
    made = model([node("Add", "x w", "y")], [("x", FLOAT, [3, 4])], [("y", FLOAT, [3, 4])])
    if is_node:
        made.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=weight))
    else:
        made.graph.sparse_initializer.append(weight)
    return made


@pytest.mark.parametrize("is_node", [False, True])
@pytest.mark.parametrize("indices", [[1, 7, 8], [[0, 1], [1, 3], [2, 0]]], ids=["numbers", "coordinates"])
def test_sparse_weights(indices, is_node):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    found = onnx2halide.compile(adding(sparse(indices), is_node)).run_by_name({"x": x})["y"]
    np.testing.assert_array_equal(found, x + DENSE)


def test_weight_of_zeros():
    weight = sparse(np.zeros(0), [])
    found = onnx2halide.compile(adding(weight, False)).run_by_name({"x": DENSE})["y"]
    np.testing.assert_array_equal(found, DENSE)


def test_too_many_elements():
    weight = sparse([1, 7, 8], dims=(1 << 20, 1 << 20))
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(adding(weight, False))
    assert str(error.value).endswith("initialiser 'w' has dim 1048576")


def test_texts():
    weight = sparse([1, 7, 8])
    weight.values.CopyFrom(helper.make_tensor("w", TensorProto.STRING, [3], [b"a", b"b", b"c"]))
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(adding(weight, False))
    assert str(error.value).endswith("initialiser 'w' is a sparse tensor of strings, which is not supported")


def test_name_that_an_expanded_node_would_use():
    """BiasGelu is computed in steps, whose names start with the node's."""
    weight = helper.make_sparse_tensor(numpy_helper.from_array(np.float32([2, 3]), "y_sum"), numpy_helper.from_array(np.int64([1, 3])), [4])
    nodes = [node("BiasGelu", "x b", "y", name="y", domain="com.microsoft"), node("Mul", "y y_sum", "z")]
    proto = model(nodes, [("x", FLOAT, [3, 4])], [("z", FLOAT, [3, 4])], {"b": np.float32([1, 2, 3, 4])})
    proto.graph.sparse_initializer.append(weight)
    found = onnx2halide.compile(proto).run_by_name({"x": DENSE})["z"]
    np.testing.assert_allclose(found, OnnxRuntime(proto).run({"x": DENSE})["z"], rtol=1e-4, atol=1e-5)
