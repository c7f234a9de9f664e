"""The command run."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from small_models import A, B, HINT, make, unary


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


def test_strings_are_written_as_they_are_read(command, tmp_path):
    onnx.save(make([helper.make_node("StringConcat", ["a", "b"], ["y"])], [(n, TensorProto.STRING, [2]) for n in "ab"], [("y", TensorProto.STRING, [2])], opset=20), tmp_path / "joined.onnx")
    np.save(tmp_path / "a.npy", np.array(["x", "日本"]))
    np.save(tmp_path / "b.npy", np.array(["", "1"]))
    assert command("run", "joined.onnx", "--input", "a=a.npy", "--input", "b=b.npy", "-o", "once").returncode == 0
    assert command("run", "joined.onnx", "--input", "a=once/y.npy", "--input", "b=b.npy", "-o", "twice").returncode == 0
    assert np.load(tmp_path / "twice" / "y.npy").tolist() == ["x", "日本11"]
