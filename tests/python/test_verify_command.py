"""The command verify."""

import json
import re

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from small_models import A, HINT, WEIGHTS, make, unary, windows

from onnx2halide.compare import default_floor, difference
from onnx2halide.verify import Tolerance


def test_verify_against_a_reference(command):
    done = command("verify", "layer.onnx", "--against", "onnxruntime")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("layer.onnx: seed 0 against onnxruntime\n  equal  scores: max |a - b| ")
    assert done.stdout.endswith("layer.onnx: all 2 values of the graph are equal\n")


def test_verify_of_a_schedule_in_a_file(command, tmp_path):
    """The node that differs is found with other kernels, which the file does not name."""
    assert command("compile", "layer.onnx", "-o", "emitted", "--sources-only").returncode == 0
    kernel = re.search(r"^class (\w+) ", (tmp_path / "emitted" / "layer_generators.cpp").read_text(), re.MULTILINE)[1]
    (tmp_path / "mine.cpp").write_text(f"void {kernel}::schedule() {{\n}}\n")
    done = command("verify", "layer.onnx", "--schedule", "mine.cpp")
    assert (done.returncode, done.stderr) == (0, "")


def test_verify_against_shipped_data(command, tmp_path):
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    expected = np.maximum(A @ WEIGHTS, 0)
    expected[1, 2] = 7
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(A).SerializeToString())
    (folder / "output_0.pb").write_bytes(numpy_helper.from_array(expected).SerializeToString())
    done = command("verify", "layer.onnx", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and not report["equal"]
    (data_set,) = report["data_sets"]
    assert (data_set["name"], data_set["against"]) == ("test_data_set_0", "its data")
    assert data_set["outputs"] == [{"name": "scores", "equal": False, "max_abs": 1.0, "relative": pytest.approx(0.05)}]
    assert report["values"] == 2 and report["first_difference"] is None


def test_verify_of_sizes_of_open_dims(command, tmp_path):
    """Data of other sizes beside the model is left alone."""
    onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }'), tmp_path / "open.onnx")
    np.savez(tmp_path / "io.npz", x=A[:1], y=A[:1] + 1)
    done = command("verify", "open.onnx", "--size", "n=70")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("open.onnx: seed 0 against onnxruntime\n")
    done = command("verify", "open.onnx", "--size", "m=70")
    assert (done.returncode, done.stderr) == (1, "--size m=70: the model leaves no dim of that name open\n")
    done = command("verify", "open.onnx", "--size", "n=70", "--data", "io.npz")
    assert (done.returncode, done.stderr) == (2, "--size: the inputs of --data have their sizes\n" + HINT)


def test_verify_names_the_first_node_that_differs(command):
    # With a negative tolerance even the first node differs.
    done = command("verify", "layer.onnx", "--tolerance", "-1")
    assert done.returncode == 1
    assert "layer.onnx: node 'product_node' (MatMul) differs first, after 0 equal values, on seed 0:\n  product: max |a - b| " in done.stdout


def saturated(tmp_path, got_wrong=False):
    """A Sigmoid with results of 1e-7 and less, one of which is off by less, or by more, than rounding may cause."""
    onnx.save(unary("Sigmoid"), tmp_path / "saturated.onnx")
    x = np.float32([[-16, -17, -18], [-19, -20, -21]])
    y = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    y[0, 0] += 3e-6 if got_wrong else 3e-7
    np.savez(tmp_path / "io.npz", x=x, y=y)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--tolerance", "nan"], "--tolerance: 'nan', expected a number\n"),
        (["--floor", "x"], "--floor: 'x', expected a number\n"),
        (["--seed", "-1"], "--seed: '-1', expected an integer of at least 0\n"),
    ],
)
def test_verify_refuses_wrong_usage(command, words, message):
    done = command("verify", "layer.onnx", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message + HINT)


def test_verify_of_sequences_as_onnx_stores_them(command, tmp_path):
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (seq(float[n]) x, int64 i) => (float[m] y) { y = SequenceAt (x, i) }')
    data = tmp_path / "picked" / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, tmp_path / "picked" / "picked.onnx")
    items = [np.float32([1, 2, 3]), np.float32([4])]
    for name, proto in (("input_0", numpy_helper.from_list(items)), ("input_1", numpy_helper.from_array(np.array(1))), ("output_0", numpy_helper.from_array(items[1]))):
        (data / f"{name}.pb").write_bytes(proto.SerializeToString())
    done = command("verify", "picked/picked.onnx")
    assert done.returncode == 0, done.stderr
    assert "test_data_set_0" in done.stdout


def test_verify_allows_what_rounding_explains_near_zero(command, tmp_path):
    saturated(tmp_path)
    done = command("verify", "saturated.onnx", "--data", "io.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert " (nowhere above 1e-06, which says little)\n" in done.stdout
    assert command("verify", "saturated.onnx", "--data", "io.npz", "--floor", "1e-7").returncode == 1
    saturated(tmp_path, got_wrong=True)
    done = command("verify", "saturated.onnx", "--data", "io.npz")
    assert done.returncode == 1 and "  DIFFERS  y: max |a - b| 3e-06, " in done.stdout


@pytest.mark.parametrize(
    "dtype, inputs, floor",
    [
        (np.float32, [A], 1e-6),
        (np.float32, [A, 1e-9 * A], 1e-6),
        (np.float32, [1e-9 * A], 3e-15),
        (np.float32, [np.array([7])], 1e-6),
        (np.float32, [], 1e-6),
        (np.float16, [A.astype(np.float16)], 1e-4),
        (np.int64, [A], 0),
        (np.bool_, [A], 0),
    ],
)
def test_floor(dtype, inputs, floor):
    assert default_floor(np.dtype(dtype), inputs) == pytest.approx(floor)


def test_small_values_are_not_all_equal():
    expected = np.float32([1e-9, 2e-9])
    found = difference(expected * np.float32([1, 1.5]), expected)
    assert found.exceeds(1e-4, default_floor(expected.dtype, [expected]))


def test_verify_skips_what_nothing_reads(command, tmp_path):
    nodes = [helper.make_node("Dropout", ["x"], ["kept", "mask"]), helper.make_node("Neg", ["kept"], ["y"])]
    onnx.save(make(nodes, [("x", 1, [2, 3])], [("y", 1, [2, 3])]), tmp_path / "dropout.onnx")
    done = command("verify", "dropout.onnx", "--against", "reference")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("values of the graph are equal\ndropout.onnx: not compared, because nothing reads them: mask\n")


def test_verify_makes_images_as_large_as_windows(command, tmp_path):
    onnx.save(windows(), tmp_path / "windows.onnx")
    done = command("verify", "windows.onnx")
    assert (done.returncode, done.stderr) == (0, "")


ROW = {"a": 1.0, "b": 2.0}
BOXES = [
    ([ROW, ROW], [ROW, {"a": 1.0, "b": 4.0}], "y[1]: max |a - b| 2, relative 0.5 at [1]: 2.0, expected 4.0"),
    ([ROW], [{"a": 1.0, "c": 2.0}], "y[0]: keys ['a', 'b'], expected ['a', 'c']"),
    ([A], [A, A], "y: 1 items, expected 2"),
    (None, A, "y: nothing, expected a value"),
    (np.array(["a", "b"], object), np.array(["a", "c"], object), "y: max |a - b| 1, relative 1 at [1]: b, expected c"),
]


@pytest.mark.parametrize("got, expected, text", BOXES, ids=["value", "keys", "length", "nothing", "string"])
def test_differences_of_sequences_maps_and_strings(got, expected, text):
    found = Tolerance().compare("y", got, expected, {})
    assert not found.equal and found.text() == text
    assert Tolerance().compare("y", expected, expected, {}).equal
