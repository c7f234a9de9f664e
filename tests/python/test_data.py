"""Samples of inputs."""

import json
import pathlib
import subprocess

import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.compiler import find_compiler
from onnx2halide.data import declared_inputs, identifier, sample, usual_inputs
from small_models import windows

NOWHERE = pathlib.Path("/no/such/folder")


def test_open_dims_are_as_large_as_windows():
    model = onnx2halide.compile(windows())
    (image,), (y,) = model.inputs, model.outputs
    assert (image.shape, image.least, y.least) == ((None, 1, None, None), (1, 1, 7, 5), ())
    assert sample(model.inputs)["image"].shape == (2, 1, 7, 5)
    assert usual_inputs(NOWHERE, model)["image"].shape == (1, 1, 7, 5)
    declared = declared_inputs(windows().SerializeToString(), {"batch": 3, "width": 9})
    assert usual_inputs(NOWHERE, model, declared)["image"].shape == (3, 1, 7, 9)


def test_open_dims_go_by_name_place_and_identifier():
    inputs = [helper.make_tensor_value_info("a/b", TensorProto.FLOAT, ["unk__1", None, "2.h", 5])]
    proto = helper.make_model(helper.make_graph([helper.make_node("Neg", ["a/b"], ["y"])], "open", inputs, []))
    for dims in ({"unk__1": 3, "a/b:1": 4, "2.h": 6}, {"unk_1": 3, "a_b_dim_1": 4, "v2_h": 6}):
        assert declared_inputs(proto.SerializeToString(), dims)[0].shape == (3, 4, 6, 5)
    assert declared_inputs(proto.SerializeToString(), {"h": 7})[0].shape == (None, None, None, 5)


def test_identifiers_are_those_of_the_compiler(tmp_path):
    names = ["batch", "unk__1", "_a_", "2.h", "größe", "::", "a b/c-d", "A"]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, names)]
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "open", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, names)])), tmp_path / "open.onnx")
    inspected = subprocess.run([find_compiler(), "inspect", "--json", tmp_path / "open.onnx"], capture_output=True, text=True, check=True).stdout
    assert json.loads(inspected)["inputs"][0]["shape"] == [identifier(name) for name in names]


def test_what_is_no_tensor():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])
    inputs = [helper.make_value_info("s", helper.make_sequence_type_proto(tensor)), helper.make_tensor_value_info("i", TensorProto.INT64, [])]
    nodes = [helper.make_node("SequenceAt", ["s", "i"], ["y"])]
    proto = helper.make_model(helper.make_graph(nodes, "at", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])]), opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(TypeError, match="input 's' is not a tensor, and files contain only tensors"):
        declared_inputs(proto.SerializeToString(), {})
    with pytest.raises(TypeError, match="input 's' is of kind sequence, and samples are only tensors"):
        sample(onnx2halide.compile(proto).inputs)


def test_strings():
    text = helper.make_tensor_value_info("x", TensorProto.STRING, [2, 3])
    proto = helper.make_model(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "text", [text], [helper.make_tensor_value_info("y", TensorProto.STRING, [2, 3])]), opset_imports=[helper.make_opsetid("", 20)])
    words = sample(onnx2halide.compile(proto).inputs)["x"]
    assert words.shape == (2, 3) and set(words.flat) <= {"yes", "no"}


def test_fixed_dims_have_no_least():
    model = onnx2halide.compile(windows(), {"batch": 1, "height": 8, "width": 5})
    assert (model.inputs[0].shape, model.inputs[0].least) == ((1, 1, 8, 5), ())
