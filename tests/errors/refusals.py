"""Checks that the compiler refuses models, and inputs that such models share."""

from make_models import FLOAT

X, Y = ("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 3])
OPEN = ("y", FLOAT, [None, None])


def refused(onnx2halide, tmp_path, words, status, message):
    """Runs `compile`, which must exit with this status and message and leave nothing in the output folder."""
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    done = onnx2halide("compile", *words)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)
    (tmp_path / "out").is_dir() and (tmp_path / "out").rmdir()  # fails unless it is empty
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def refused_model(onnx2halide, tmp_path, bad, message):
    """Runs `compile` and `inspect` on a model, which both must refuse with this message; `inspect` prints what it could read."""
    (tmp_path / "tiny.onnx").write_bytes(bad.SerializeToString())
    refused(onnx2halide, tmp_path, ["tiny.onnx", "-o", "out"], 1, f"tiny.onnx: {message}\n")
    inspected = onnx2halide("inspect", "tiny.onnx")
    assert (inspected.returncode, inspected.stderr) == (1, f"tiny.onnx: {message}\n")
    assert inspected.stdout.startswith("model       tiny.onnx (opset ")
