"""Col2Im of blocks that are known at compile time, against ONNX's reference; the backend suite has blocks that come at run time."""

import numpy as np
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto

TYPES = {"float32": FLOAT, "float16": TensorProto.FLOAT16, "int8": TensorProto.INT8, "uint64": TensorProto.UINT64}

CASES = {
    "channels and a batch": ([2, 18, 16], [6, 6], [3, 3], {}, "float32"),
    "strides": ([1, 18, 6], [5, 7], [3, 3], {"strides": [2, 2]}, "float32"),
    "strides that leave elements out": ([1, 4, 6], [8, 12], [2, 2], {"strides": [5, 4]}, "float32"),
    "other pads at each end": ([1, 12, 35], [4, 5], [2, 3], {"pads": [0, 1, 2, 3]}, "float32"),
    "all attributes": ([2, 12, 9], [7, 8], [2, 3], {"strides": [2, 3], "dilations": [3, 2], "pads": [1, 2, 0, 3]}, "float32"),
    "one axis": ([2, 6, 5], [7], [3], {"dilations": [2], "pads": [1, 1]}, "float32"),
    "three axes": ([1, 16, 12], [3, 4, 3], [2, 2, 2], {}, "float32"),
    "rows that fill vectors": ([1, 9, 1369], [37, 37], [3, 3], {"pads": [1, 1, 1, 1]}, "float32"),
    "narrow floats are added as wide ones": ([1, 9, 9], [5, 5], [3, 3], {}, "float16"),
    "integers": ([1, 9, 9], [5, 5], [3, 3], {}, "int8"),
    "large integers": ([1, 9, 9], [5, 5], [3, 3], {}, "uint64"),
}


@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(onnx2halide, tmp_path, name):
    shape, image, block, attributes, element = CASES[name]
    col2im = node("Col2Im", "x image block", "y", **attributes)
    ports = [("x", TYPES[element], shape)], [("y", TYPES[element], [None] * (2 + len(image)))]
    (tmp_path / "tiny.onnx").write_bytes(model([col2im], *ports, {"image": np.array(image), "block": np.array(block)}).SerializeToString())
    # onnxruntime takes images of two axes or more.
    done = onnx2halide("verify", "tiny.onnx", "--against", "reference")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
