"""Samples of inputs."""

import pathlib

import onnx2halide
from onnx2halide.data import declared_inputs, sample, usual_inputs
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


def test_fixed_dims_have_no_least():
    model = onnx2halide.compile(windows(), {"batch": 1, "height": 8, "width": 5})
    assert (model.inputs[0].shape, model.inputs[0].least) == ((1, 1, 8, 5), ())
