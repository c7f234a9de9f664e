"""Random numbers have the moments of their distribution, follow their seed, and are the same in every run."""

import numpy as np
import onnx
import onnx2halide
from onnx import TensorProto, helper

COUNT = 1 << 16


def drawn(op: str, inputs: list[np.ndarray], shape: tuple = (COUNT,), element: int = TensorProto.FLOAT, **attributes) -> np.ndarray:
    ports = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, array.shape) for i, array in enumerate(inputs)]
    node = helper.make_node(op, [port.name for port in ports], ["y"], **attributes)
    graph = helper.make_graph([node], "random", ports, [helper.make_tensor_value_info("y", element, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.checker.check_model(model)
    return onnx2halide.compile(model).run(inputs)[0]


def test_uniform():
    numbers = drawn("RandomUniformLike", [np.zeros((256, 256), np.float32)], shape=(256, 256), low=-1.0, high=3.0)
    assert numbers.min() >= -1 and numbers.max() < 3
    assert abs(numbers.mean() - 1) < 0.02 and abs(numbers.std() - 4 / 12**0.5) < 0.02
    assert len(np.unique(numbers)) > 0.99 * COUNT
    # Neighbours along either axis are uncorrelated.
    for axis in (0, 1):
        assert abs(np.corrcoef(numbers.ravel(), np.roll(numbers, 1, axis).ravel())[0, 1]) < 0.02


def test_normal():
    numbers = drawn("RandomNormalLike", [np.zeros(COUNT, np.float32)], mean=2.0, scale=3.0)
    assert abs(numbers.mean() - 2) < 0.05 and abs(numbers.std() - 3) < 0.05
    assert abs((((numbers - 2) / 3) ** 4).mean() - 3) < 0.1


def test_shape_attribute():
    ports = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, (3, 5))]
    node = helper.make_node("RandomNormal", [], ["y"], shape=[3, 5], dtype=TensorProto.DOUBLE, mean=4.0)
    model = helper.make_model(helper.make_graph([node], "random", [], ports), opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    assert abs(onnx2halide.compile(model).run([])[0].mean() - 4) < 1


def test_seeds():
    first, again, other = (drawn("RandomUniformLike", [np.zeros(COUNT, np.float32)], seed=seed) for seed in (1.0, 1.0, 2.0))
    assert (first == again).all()
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.02


def test_bernoulli():
    chances = np.linspace(0, 1, COUNT, dtype=np.float32)
    drops = drawn("Bernoulli", [chances])
    assert set(np.unique(drops)) == {0, 1}
    assert np.abs(drops.reshape(16, -1).mean(axis=1) - chances.reshape(16, -1).mean(axis=1)).max() < 0.03


def test_multinomial():
    chances = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]], np.float32)
    classes = drawn("Multinomial", [np.log(chances) + 5], shape=(2, COUNT), element=TensorProto.INT32, sample_size=COUNT)
    for row, expected in zip(classes, chances, strict=True):
        assert np.abs(np.bincount(row, minlength=4) / COUNT - expected).max() < 0.01
