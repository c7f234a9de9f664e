"""The commands run and verify."""

import json
import os
import signal
import re
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from small_models import WEIGHTS, dense, difference_of_two, make, unary, windows

from onnx2halide.compare import default_floor, difference
from onnx2halide.compiler import find_compiler
from onnx2halide.verify import Tolerance

A = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
B = np.array([1, 1, 2], np.float32)


@pytest.fixture
def command(tmp_path):
    """Runs a command in a folder that contains layer.onnx and difference.onnx."""
    onnx.save(dense(), tmp_path / "layer.onnx")
    onnx.save(difference_of_two(), tmp_path / "difference.onnx")

    def run(*words) -> subprocess.CompletedProcess:
        return subprocess.run([find_compiler(), *words], cwd=tmp_path, capture_output=True, text=True)

    return run


def test_run_reads_every_kind_of_file(command, tmp_path):
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "both.npz", a=A, b=B)
    (tmp_path / "b.pb").write_bytes(numpy_helper.from_array(B).SerializeToString())
    for inputs in (["--input", "a=a.npy", "--input", "b=b.pb"], ["--input", "both.npz"], ["--input", "a=both.npz", "--input", "b=both.npz"]):
        done = command("run", "difference.onnx", *inputs, "-o", "out")
        assert (done.returncode, done.stdout, done.stderr) == (0, "y: float32 2x3\n", "")
        assert np.array_equal(np.load(tmp_path / "out" / "y.npy"), A - B)


def test_outputs_of_like_names_have_files_of_their_own(command, tmp_path):
    names = ["a/b", "a_b", "A.b", "long" * 100]
    ports = [(name, TensorProto.FLOAT, [2, 3]) for name in names]
    onnx.save(make([helper.make_node("Neg", ["x"], [name]) for name in names], [("x", TensorProto.FLOAT, [2, 3])], ports), tmp_path / "many.onnx")
    np.save(tmp_path / "x.npy", A)
    assert command("run", "many.onnx", "--input", "x.npy", "-o", "out").returncode == 0
    assert len(list((tmp_path / "out").iterdir())) == len(names)


def test_run_takes_bounds(command, tmp_path):
    np.save(tmp_path / "x.npy", A[:1])
    done = command("run", "layer.onnx", "--input", "x.npy", "--dim", "batch=1..4")
    assert done.stdout == "scores: float32 1x4\n[[ 2.  8. 14. 20.]]\n"
    done = command("run", "layer.onnx", "--input", "x.npy", "--dim", "batch=2..4")
    assert done.returncode == 1 and "expected 2 to 4" in done.stderr


def test_run_prints_without_a_folder(command, tmp_path):
    np.save(tmp_path / "x.npy", A[:1])
    done = command("run", "layer.onnx", "--input", "x.npy", "--dim", "batch=1")
    assert done.stdout == "scores: float32 1x4\n[[ 2.  8. 14. 20.]]\n"


def classes() -> onnx.ModelProto:
    """Labels that are strings, and for each row a map from labels to scores."""
    labels = {"keys_int64s": [0, 1, 2], "values_strings": ["no", "yes", "maybe"]}
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("LabelEncoder", ["best"], ["label"], domain="ai.onnx.ml", **labels),
        helper.make_node("ZipMap", ["x"], ["scores"], domain="ai.onnx.ml", classlabels_strings=labels["values_strings"]),
    ]
    model = make(nodes, [("x", TensorProto.FLOAT, ["rows", 3])], [("label", TensorProto.STRING, ["rows"])])
    row = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    model.graph.output.append(helper.make_value_info("scores", helper.make_sequence_type_proto(row)))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


def test_run_and_verify_of_strings_and_maps(command, tmp_path):
    onnx.save(classes(), tmp_path / "classes.onnx")
    np.save(tmp_path / "x.npy", A)
    rows = [{"no": 1.0, "yes": 2.0, "maybe": 3.0}, {"no": -1.0, "yes": 0.0, "maybe": 1.0}]
    done = command("run", "classes.onnx", "--input", "x.npy")
    assert done.stdout == f"label: object 2\n['maybe' 'maybe']\nscores: sequence of 2\n{rows[0]}\n{rows[1]}\n"
    done = command("run", "classes.onnx", "--input", "x.npy", "-o", "out")
    assert (done.returncode, done.stdout) == (0, "label: object 2\nscores: sequence of 2\n")
    assert json.loads((tmp_path / "out" / "scores.json").read_text()) == rows
    done = command("verify", "classes.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  equal  label: max |a - b| 0, relative 0\n  equal  scores[0]: max |a - b| 0, relative 0\n" in done.stdout


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


@pytest.mark.parametrize("type", [TensorProto.BFLOAT16, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FN, TensorProto.INT4], ids=TensorProto.DataType.Name)
def test_run_writes_what_it_reads(command, tmp_path, type):
    """Elements of types that numpy lacks are plain bytes in .npy files."""
    for name, source, target in (("there", TensorProto.FLOAT, type), ("back", type, TensorProto.FLOAT)):
        onnx.save(make([helper.make_node("Cast", ["x"], ["y"], to=target)], [("x", source, [2, 3])], [("y", target, [2, 3])], opset=21), tmp_path / f"{name}.onnx")
    np.save(tmp_path / "x.npy", A)
    command("run", "there.onnx", "--input", "x.npy", "-o", "out")
    done = command("run", "back.onnx", "--input", "out/y.npy")
    assert (done.stdout, done.stderr) == ("y: float32 2x3\n[[ 1.  2.  3.]\n [-1.  0.  1.]]\n", "")


def test_run_reads_images(command, tmp_path):
    onnx.save(unary("Neg", shape=[1, 3, 2, 2]), tmp_path / "image.onnx")
    Image.fromarray(np.full((2, 2, 3), [255, 0, 51], np.uint8)).save(tmp_path / "image.png")
    command("run", "image.onnx", "--input", "x=image.png", "-o", "out")
    assert np.allclose(np.load(tmp_path / "out" / "y.npy")[0, :, 0, 0], [-1, 0, -0.2])
    command("run", "image.onnx", "--input", "image.png", "--pixels", "0,255", "-o", "out")
    assert np.allclose(np.load(tmp_path / "out" / "y.npy")[0, :, 0, 0], [-255, 0, -51])


def test_run_reads_images_of_16_bits(command, tmp_path):
    onnx.save(unary("Neg", shape=[1, 1, 2, 2]), tmp_path / "image.onnx")
    Image.fromarray(np.array([[0, 65535], [257 * 51, 257 * 102]], np.uint16)).save(tmp_path / "image.png")
    command("run", "image.onnx", "--input", "image.png", "-o", "out")
    assert np.allclose(np.load(tmp_path / "out" / "y.npy")[0, 0], [[0, -1], [-0.2, -0.4]])


def test_run_resizes_images_when_asked(command, tmp_path):
    onnx.save(unary("Neg", shape=[1, 1, 2, 3]), tmp_path / "image.onnx")
    Image.fromarray(np.full((4, 6), 255, np.uint8)).save(tmp_path / "image.png")
    done = command("run", "image.onnx", "--input", "image.png")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "image.png: has 6x4 pixels, input 'x' takes 3x2; --resize scales it\n")
    done = command("run", "image.onnx", "--input", "image.png", "--resize", "-o", "out")
    assert done.returncode == 0 and np.array_equal(np.load(tmp_path / "out" / "y.npy"), np.full((1, 1, 2, 3), -1))


HINT = "Run with --help for more information.\n"


@pytest.mark.parametrize(
    "words, message",
    [
        (["layer.onnx"], "--input x=FILE is missing; the inputs are x\n"),
        (["difference.onnx", "--input", "b=wide.npy"], "--input a=FILE is missing; the inputs are a, b\n"),
        (["layer.onnx", "--dim", "batch=x"], "--dim: 'batch=x', expected NAME=N or NAME=MIN..MAX\n"),
        (["layer.onnx", "--threads", "-1"], "--threads: '-1', expected 0 to 256\n"),
        (["layer.onnx", "--threads", "257"], "--threads: '257', expected 0 to 256\n"),
        (["layer.onnx", "--pixels", "0"], "--pixels: '0', expected two numbers such as 0,255\n"),
        (["layer.onnx", "--schedule", "fast", "--input", "row.npy"], "--schedule: 'fast', expected a file or one of default, naive, auto:mullapudi2016, auto:adams2019, auto:li2018\n"),
        (["layer.onnx", "--fast"], "unrecognized arguments: --fast\n"),
        ([], "the following arguments are required: MODEL.onnx\n"),
        (["layer.onnx", "--target", "pdp11", "--input", "row.npy"], "--target: 'pdp11' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, arm-64-linux or host-opencl\n"),
        (["layer.onnx", "--input", "z=row.npy"], "--input z=row.npy: expected NAME=FILE, with one of the inputs x\n"),
        (["layer.onnx", "--input", "x=row.npy", "--input", "x=row.npy"], "--input x=row.npy: 'x' is given twice\n"),
        (["difference.onnx", "--input", "c=c.npy"], "--input c=c.npy: expected NAME=FILE, with one of the inputs a, b\n"),
    ],
)
def test_run_refuses_wrong_usage(command, tmp_path, words, message):
    np.save(tmp_path / "row.npy", A[:1])
    np.save(tmp_path / "wide.npy", B)
    done = command("run", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message + HINT)


@pytest.mark.parametrize(
    "words, message",
    [
        (["layer.onnx", "--input", "x=x.npy"], "x.npy: No such file or directory\n"),
        (["none.onnx", "--input", "x=x.npy"], "none.onnx: No such file or directory\n"),
        (["text.onnx", "--input", "x=x.npy"], "text.onnx: is not an ONNX model, or is truncated\n"),
        (["layer.onnx", "--input", "x=layer.onnx"], "layer.onnx: expected .npy, .npz, .pb or an image\n"),
        (["layer.onnx", "--input", "x=text.npy"], "text.npy: is not a file of numbers that numpy wrote, or is truncated\n"),
        (["layer.onnx", "--input", "x=text.npz"], "text.npz: is not a file of numbers that numpy wrote, or is truncated\n"),
        (["layer.onnx", "--input", "text.npz"], "text.npz: is not a file of numbers that numpy wrote, or is truncated\n"),
        (["layer.onnx", "--input", "x=text.pb"], "text.pb: is not a TensorProto\n"),
        (["layer.onnx", "--input", "x=wide.npy"], "input 'x' has shape [2, 4], expected [None, 3]\n"),
        (["layer.onnx", "--dim", "batch=1", "--input", "x=rows.npy"], "input 'x' has shape [2, 3], expected [1, 3]\n"),
        (["layer.onnx", "--input", "x=double.npy"], "input 'x' has elements of type float64, expected float32\n"),
        (["layer.onnx", "--dim", "b=1", "--input", "x=rows.npy"], "layer.onnx: --dim b=1: the model leaves no dim of that name open; open are: batch\n"),
    ],
)
def test_run_says_what_is_wrong(command, tmp_path, words, message):
    for suffix in ("onnx", "npy", "npz", "pb"):
        (tmp_path / f"text.{suffix}").write_text("no model")
    for name, array in (("rows", A), ("wide", np.zeros((2, 4), np.float32)), ("double", A.astype(float))):
        np.save(tmp_path / f"{name}.npy", array)
    done = command("run", *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_run_checks_inputs_before_it_compiles(command, tmp_path):
    """For a model that cannot be compiled and a wrong input, the message is about the input."""
    onnx.save(make([helper.make_node("Mystery", ["x"], ["y"])], [("x", 1, [2, 3])], [("y", 1, [2, 3])]), tmp_path / "mystery.onnx")
    np.save(tmp_path / "b.npy", B)
    done = command("run", "mystery.onnx", "--input", "b.npy")
    assert (done.returncode, done.stderr) == (1, "input 'x' has shape [3], expected [2, 3]\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", ["run", "verify"])
def test_signals_end_it_quietly(command, tmp_path, name, number):
    """A signal while the compiler runs, in place of which a program prints the folder of its temporary files and waits."""
    compiler, temporary = tmp_path / "compiler", tmp_path / "temporary"
    compiler.write_text("#!/bin/sh\necho $TMPDIR >started.part && touch $TMPDIR/kernel && mv started.part started\nsleep 60\necho late >late\n")
    compiler.chmod(0o755)
    temporary.mkdir()
    np.save(tmp_path / "x.npy", A)
    words = ["layer.onnx", *(["--input", "x.npy"] if name == "run" else [])]
    environment = os.environ | {"ONNX2HALIDE_COMPILER": str(compiler), "TMPDIR": str(temporary), "ONNX2HALIDE_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        [find_compiler(), name, *words],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    assert list(temporary.rglob("kernel"))
    process.send_signal(number)
    printed = process.communicate(timeout=20)
    assert (process.returncode, *printed) == (128 + number, "", "")
    assert list(temporary.iterdir()) == []


def test_progress_is_shown_on_terminals(command, tmp_path):
    terminal, other = os.openpty()
    subprocess.run([find_compiler(), "verify", "layer.onnx"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=other, check=True)
    os.close(other)
    lines = os.read(terminal, 10000).decode().split("\r\x1b[K")
    assert lines[1:4] == ["compiling layer.onnx", "layer.onnx: running on seed 0", "layer.onnx: comparing every value on seed 0"]
    assert set(lines[4:]) == {""}


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


def test_strings_are_written_as_they_are_read(command, tmp_path):
    onnx.save(make([helper.make_node("StringConcat", ["a", "b"], ["y"])], [(n, TensorProto.STRING, [2]) for n in "ab"], [("y", TensorProto.STRING, [2])], opset=20), tmp_path / "joined.onnx")
    np.save(tmp_path / "a.npy", np.array(["x", "日本"]))
    np.save(tmp_path / "b.npy", np.array(["", "1"]))
    assert command("run", "joined.onnx", "--input", "a=a.npy", "--input", "b=b.npy", "-o", "once").returncode == 0
    assert command("run", "joined.onnx", "--input", "a=once/y.npy", "--input", "b=b.npy", "-o", "twice").returncode == 0
    assert np.load(tmp_path / "twice" / "y.npy").tolist() == ["x", "日本11"]


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


def test_python_can_be_named(command, monkeypatch):
    monkeypatch.setenv("ONNX2HALIDE_PYTHON", "/no/such/python")
    done = command("verify", "layer.onnx")
    assert (done.returncode, done.stderr) == (2, "/no/such/python cannot be started: No such file or directory; name a Python by --python or $ONNX2HALIDE_PYTHON\n")
    monkeypatch.delenv("ONNX2HALIDE_PYTHON")
    assert command("verify", "--python", "/no/python", "layer.onnx").stderr.startswith("/no/python cannot be started")


@pytest.mark.parametrize("name", ["verify", "bench", "tune"])
def test_crashed_compiler(command, tmp_path, monkeypatch, name):
    """A crash of the compiler, which prints nothing, is named."""
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nkill -SEGV $$\n")
    compiler.chmod(0o755)
    words = [find_compiler(), name, "layer.onnx"]
    monkeypatch.setenv("ONNX2HALIDE_COMPILER", str(compiler))
    monkeypatch.setenv("ONNX2HALIDE_CACHE", str(tmp_path / "cache"))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "layer.onnx: the compiler ended with status -11\n")
