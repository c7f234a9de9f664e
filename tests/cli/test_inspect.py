"""The whole output of `inspect`."""

import hashlib
import json

import numpy as np
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto, helper

LONG = "a/name/that/is/longer/than/any/column/would/be/if/it/had/a/fixed/width"


def write(tmp_path, proto) -> str:
    content = proto.SerializeToString()
    (tmp_path / "tiny.onnx").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def test_model(onnx2halide, tmp_path):
    digest = write(tmp_path, model([node("Neg", "x", LONG), node("Abs", LONG, "y")], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])]))
    done = onnx2halide("inspect", "tiny.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"""\
model       tiny.onnx (opset 22, sha256 {digest})
input       x  float32 [2, 3]
output      y  float32 [2, 3]
operators   1 Abs, 1 Neg
nodes       2
parameters  0
FLOPs       12
kernels     1 distinct, 1 calls
arena       0 bytes in all, without scratch memory

node  operator  {"result":<{len(LONG)}}  type
0     Neg       {LONG}  float32 [2, 3]
1     Abs       {"y":<{len(LONG)}}  float32 [2, 3]

step  kernel  FLOPs
0     y_Abs   12
"""


def test_open_batch(onnx2halide, tmp_path):
    write(tmp_path, model([node("Neg", "x", "y")], [("x", FLOAT, ["batch", 3])], [("y", FLOAT, ["batch", 3])]))
    lines = onnx2halide("inspect", "tiny.onnx").stdout.splitlines()
    assert lines[1:5] == ["input       x  float32 [batch, 3]", "output      y  float32 [batch, 3]", "operators   1 Neg", "open dims   batch"]
    assert "arena       depends on batch" in lines


def test_what_is_no_tensor(onnx2halide, tmp_path):
    sequence = helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2])))
    proto = model([node("SequenceLength", "s", "y")], [], [("y", TensorProto.INT64, [])])
    proto.graph.input.append(sequence)
    write(tmp_path, proto)
    inspected = json.loads(onnx2halide("inspect", "--json", "tiny.onnx").stdout)
    assert inspected["inputs"] == [{"name": "s", "type": "sequence of float32 2"}]


BAD = model(
    [node("ImageDecoder", "x", "a"), node("Fancy", "a", "b", domain="com.example"), node("ImageDecoder", "b", "y")],
    [("x", FLOAT, ["n", None, 2]), ("vector", TensorProto.INT64, [1]), ("scalar", TensorProto.BOOL, [])],
    [("y", FLOAT, [])],
)
WHY = """\
tiny.onnx: unsupported operators in 3 of 3 nodes:
  ImageDecoder (version 20): 2 nodes, first 'a'
  com.example.Fancy (version 1): node 'b'
"""


def test_model_that_cannot_be_compiled(onnx2halide, tmp_path):
    digest = write(tmp_path, BAD)
    done = onnx2halide("inspect", "tiny.onnx")
    assert (done.returncode, done.stderr) == (1, WHY)
    assert done.stdout == f"""\
model       tiny.onnx (opset 22, sha256 {digest})
input       x       float32 [n, ?, 2]
input       vector  int64 [1]
input       scalar  bool []
output      y       float32 []
operators   2 ImageDecoder, 1 com.example.Fancy
"""


def test_json_of_a_model_that_cannot_be_compiled(onnx2halide, tmp_path):
    digest = write(tmp_path, BAD)
    done = onnx2halide("inspect", "--json", "tiny.onnx")
    assert (done.returncode, done.stderr) == (1, WHY)
    assert json.loads(done.stdout) == {
        "file": "tiny.onnx",
        "sha256": digest,
        "opset": 22,
        "inputs": [
            {"name": "x", "element": "float32", "shape": ["n", "?", 2]},
            {"name": "vector", "element": "int64", "shape": [1]},
            {"name": "scalar", "element": "bool", "shape": []},
        ],
        "outputs": [{"name": "y", "element": "float32", "shape": []}],
        "operators": {"ImageDecoder": 2, "com.example.Fancy": 1},
        "error": WHY.rstrip("\n"),
    }


def test_what_is_no_tensor(onnx2halide, tmp_path):
    lengths = model([node("SequenceLength", "x", "y")], [("x", FLOAT, [1])], [("y", TensorProto.INT64, [])])
    lengths.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", FLOAT, [2, "n"]))
    write(tmp_path, lengths)
    done = onnx2halide("inspect", "tiny.onnx")
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "input       x  sequence of float32 [2, ?]")


def test_output_without_a_type(onnx2halide, tmp_path):
    for operator, status, text in (("Neg", 0, "float32 [2, 3]"), ("ImageDecoder", 1, "unknown")):
        proto = model([node(operator, "x", "y")], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])])
        proto.graph.output[0].ClearField("type")
        write(tmp_path, proto)
        done = onnx2halide("inspect", "tiny.onnx")
        assert (done.returncode, done.stdout.splitlines()[2]) == (status, f"output      y  {text}")


@pytest.mark.parametrize("words, kernels, outputs", [("", 4, ["y"]), ("--convolution direct", 3, ["y"]), ("--until a", 4, ["a"])])
def test_kernels_are_those_of_compile(onnx2halide, tmp_path, words, kernels, outputs):
    """By default, a dilated convolution of an image of open size has a second kernel for small images."""
    nodes = [node("Conv", "x w", "a", pads=[4, 4, 4, 4], dilations=[4, 4]), node("Relu", "a", "y")]
    weights = {"w": np.ones((64, 64, 3, 3), np.float32)}
    write(tmp_path, model(nodes, [("x", FLOAT, [1, 64, "height", "width"])], [("y", FLOAT, [None] * 4)], weights))
    words = [*words.split(), "--target", "x86-64-linux-avx2-fma"]
    inspected = json.loads(onnx2halide("inspect", "--json", "tiny.onnx", *words).stdout)
    assert onnx2halide("compile", "tiny.onnx", "--sources-only", *words).returncode == 0
    compiled = json.loads((tmp_path / "tiny.json").read_text())
    assert inspected["distinct_kernels"] == len(compiled["kernels"]) == kernels
    assert [step["kernel"] for step in inspected["steps"]] == [step["kernels"][0] for step in compiled["steps"]]
    assert [output["name"] for output in inspected["outputs"]] == outputs


def test_a_past_that_a_window_wants(onnx2halide, tmp_path):
    """Concat takes a past of 0, and the convolution's window wants one of at least 1."""
    nodes = [node("Concat", "past x", "a", axis=2), node("Conv", "a w", "y")]
    inputs = [("past", FLOAT, [1, 1, "n"]), ("x", FLOAT, [1, 1, 4])]
    write(tmp_path, model(nodes, inputs, [("y", FLOAT, [None] * 3)], {"w": np.ones((1, 1, 5), np.float32)}))
    assert onnx2halide("compile", "tiny.onnx", "--sources-only", timeout=60).returncode == 0
    assert '{"n", 0, 2, 1, 2147483647}' in (tmp_path / "tiny.c").read_text()


def test_no_model(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(b"")
    done = onnx2halide("inspect", "tiny.onnx")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "tiny.onnx: is not an ONNX model, or is truncated\n")


def test_constants_that_compile_would_compute(onnx2halide, tmp_path):
    """They have types, but no elements."""
    nodes = [node("Add", "i i", "places"), node("ScatterND", "x places u", "y")]
    constants = {"i": np.zeros((10, 10, 1), np.int64)}
    write(tmp_path, model(nodes, [("x", FLOAT, [3]), ("u", FLOAT, [10, 10])], [("y", FLOAT, [3])], constants))
    done = onnx2halide("inspect", "tiny.onnx")
    assert (done.returncode, done.stderr) == (0, "")
