"""Versions of operators that neither onnxruntime nor ONNX's reference has, against numpy."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node


@pytest.mark.parametrize("shape", [(), (1,)])
def test_tile_of_one_axis(shape):
    """Version 1. Its numbers have the data's type."""
    constants = {"tiles": np.full(shape, 2, np.float32), "axis": np.full(shape, 1, np.float32)}
    tile = model([node("Tile", "x tiles axis", "y")], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 6])], constants)
    del tile.opset_import[:]
    tile.opset_import.add().version = 1
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(onnx2halide.compile(tile).run([x])[0], np.tile(x, (1, 2)))
