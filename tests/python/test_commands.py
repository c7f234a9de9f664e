"""What the commands run and verify have in common with others."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import A, make

from onnx2halide.compiler import find_compiler


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
