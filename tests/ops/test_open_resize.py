"""Resize and Upsample of images with sizes known only at run time, against ONNX's reference and onnxruntime: one compiled model at
several sizes."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.compare import difference
from onnx2halide.references import OnnxReference, OnnxRuntime

IMAGES = [(1, 2, 5, 7), (3, 2, 9, 6), (1, 2, 4, 13), (2, 2, 31, 17)]
SMALL_IMAGES = [(1, 2, 2, 5), (1, 2, 4, 3), (2, 2, 6, 5)]
WEIGHTS = np.random.default_rng(0).normal(size=(4, 2, 1, 1)).astype(np.float32)


def model(op: str, constants: list[np.ndarray | None], opset: int = 19, **attributes) -> onnx.ModelProto:
    """An image of two channels, resized, followed by a convolution, which must know the number of channels."""
    names = ["" if constant is None else f"c{i}" for i, constant in enumerate(constants)]
    nodes = [helper.make_node(op, ["x", *names], ["resized"], "resize", **attributes), helper.make_node("Conv", ["resized", "w"], ["y"])]
    initialisers = [numpy_helper.from_array(constant, name) for constant, name in zip(constants, names) if name]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name, shape in (("x", ["n", 2, "h", "w"]), ("y", ["n", 4, "a", "b"]))]
    graph = helper.make_graph(nodes, "resized", *ports, [*initialisers, numpy_helper.from_array(WEIGHTS, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def check(*models: onnx.ModelProto, engine: type = OnnxReference, images=IMAGES) -> None:
    for proto, compiled in zip(models, onnx2halide.compile_many(models)):
        reference = engine(proto)
        for shape in images:
            x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            expected, found = reference.run({"x": x})["y"], compiled.run([x])[0]
            assert found.shape == expected.shape, (proto.graph.node[0], shape)
            assert not difference(found, expected).exceeds(1e-5, 1e-5), (proto.graph.node[0], shape)


MODES = [("nearest", 0), ("linear", 0), ("cubic", 0), ("linear", 1), ("cubic", 1)]


@pytest.mark.parametrize("mode, antialias", MODES)
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio(mode, antialias, policy):
    attributes = {"mode": mode, "antialias": antialias, "keep_aspect_ratio_policy": policy}
    cases = (([2, 3], [3, 11]), ([3, 2], [3, 2]), ([2], [8]))
    check(*(model("Resize", [None, None, np.array(sizes)], axes=axes, **attributes) for axes, sizes in cases))


@pytest.mark.parametrize("mode, antialias", MODES)
def test_scales_that_are_no_simple_fractions(mode, antialias):
    models = []
    for transformation in ("half_pixel", "align_corners"):
        attributes = {"mode": mode, "antialias": antialias, "coordinate_transformation_mode": transformation}
        models.append(model("Resize", [None, np.float32([1, 1, 1.41, 0.123])], **attributes))
        models.append(model("Resize", [None, np.float32([0.37, 2.2])], axes=[3, 2], **attributes))
    check(*models)


# Of rows and columns: fewer than a vector has lanes, as many, and some that fill none to the end.
SIZES = [(1, 1), (2, 3), (3, 4), (5, 16), (7, 19), (16, 33), (37, 61)]
AXES = {"rows": (1, 2, 1), "columns": (1, 1, 1.5), "up": (1, 2, 2), "down": (1, 0.5, 0.5), "up and down": (1, 0.5, 3), "down and up": (1, 1.5, 0.25), "all": (2, 1.5, 1.5)}


@pytest.mark.parametrize("mode, transformation", [("nearest", "half_pixel"), ("nearest", "align_corners"), ("linear", "half_pixel"), ("cubic", "half_pixel")])
@pytest.mark.parametrize("is_transposed", [False, True], ids=["rows", "channels"])
def test_vectors_of_open_rows(mode, transformation, is_transposed):
    """Planar images, and images with channels innermost."""
    names = {name: scales for name, scales in AXES.items() if mode != "cubic" or scales[0] == 1}
    models = []
    for scales in names.values():
        resize = helper.make_node("Resize", ["x", "", "s"], ["r"], mode=mode, coordinate_transformation_mode=transformation)
        nodes = [resize, helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 3, 1])] if is_transposed else [resize, helper.make_node("Relu", ["r"], ["y"])]
        shapes = (("x", ["n", 3, "h", "w"]), ("y", ["a", "b", "c", "d"]))
        ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name, shape in shapes]
        graph = helper.make_graph(nodes, "resized", *ports, [numpy_helper.from_array(np.float32([1, *scales]), "s")])
        models.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8))
    for name, proto, compiled in zip(names, models, onnx2halide.compile_many(models)):
        reference = OnnxReference(proto)
        for n, (h, w) in enumerate(SIZES):
            x = np.random.default_rng(0).normal(size=(n % 2 + 1, 3, h, w)).astype(np.float32)
            expected, found = reference.run({"x": x})["y"], compiled.run([x])[0]
            assert found.shape == expected.shape, (name, x.shape)
            assert not difference(found, expected).exceeds(1e-5, 1e-5), (name, x.shape)


# Axes of two elements are halved to one, where ONNX's reference differs from the standard's text.
@pytest.mark.parametrize("engine, transformation", [(OnnxRuntime, "pytorch_half_pixel"), (OnnxReference, "align_corners")])
def test_axes_that_come_to_have_one_element(engine, transformation):
    scales = ((0.5, 0.5), (1, 0.4), (3, 0.34))
    attributes = {"mode": "cubic", "coordinate_transformation_mode": transformation}
    check(*(model("Resize", [None, np.float32([1, 1, *pair])], **attributes) for pair in scales), engine=engine, images=SMALL_IMAGES)


def test_versions_without_sizes():
    scales = np.float32([1, 1, 1.37, 1.71])
    models = [
        model("Upsample", [], opset=7, mode="nearest", scales=scales.tolist()),
        model("Upsample", [scales], opset=9, mode="nearest"),
        model("Resize", [scales], opset=10, mode="nearest"),
    ]
    check(*models, engine=OnnxRuntime)


@pytest.mark.parametrize("scales", [(0.6, 0.5), (0.3, 1.7), (0.7, 0.25), (2, 0.8)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_shrinking_before_there_were_modes_of_rounding(mode, scales):
    scales = np.float32([1, 1, *scales])
    check(model("Resize", [scales], opset=10, mode=mode), engine=OnnxRuntime)


def test_scales_of_a_run_before_there_were_modes_of_rounding():
    proto = model("Resize", [np.float32([1, 1, 1, 1])], opset=10, mode="nearest")
    del proto.graph.node[1]
    proto.graph.node[0].output[0] = "y"
    del proto.graph.initializer[:]
    proto.graph.input.append(helper.make_tensor_value_info("c0", TensorProto.FLOAT, [4]))
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    x = np.random.default_rng(0).normal(size=(1, 2, 14, 12)).astype(np.float32)
    for scales in ((0.7, 0.6), (1.3, 0.3), (0.5, 2)):
        inputs = {"x": x, "c0": np.float32([1, 1, *scales])}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"], err_msg=str(scales))


@pytest.mark.parametrize(
    "scales, message",
    [
        ([0.37, 0.37], "node 'resize' (Resize): scales has 2 values, expected 4"),
        ([1, 1, 0.37, -0.37], "node 'resize' (Resize): scales has the value -0.37"),
    ],
)
def test_errors(scales, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model("Resize", [None, np.float32(scales)]))
    assert message in str(error.value)
