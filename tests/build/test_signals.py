"""Signals that end the compiler while it builds."""

import os
import pathlib
import signal
import subprocess
import time

import make_models
import numpy as np
import pytest
from paths import COMPILER


COMPILE = ["layer.onnx", "-o", "out"]


def start(tmp_path, words=COMPILE, **options) -> subprocess.Popen:
    """Runs a command with an empty cache, so that there is something to do, and waits until it builds."""
    (tmp_path / "layer.onnx").write_bytes(make_models.layer().SerializeToString())
    (tmp_path / "found.onnx").write_bytes(found().SerializeToString())
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"ONNX2HALIDE_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen([COMPILER, *words], cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True, **options)
    deadline = time.monotonic() + 60
    # Unlike rglob, walk goes on if a folder disappears meanwhile.
    while not (any("generators.cpp" in files for _, _, files in os.walk(tmp_path / "temporary")) and len(in_session(process.pid)) > 1):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    return process


def found():
    """A model with a size that inference computes: the number of elements of a constant above 0."""
    weights = {"w": np.linspace(-1, 1, 1000, dtype=np.float32)}
    nodes = [make_models.node("Softmax", "w", "s"), make_models.node("Round", "s", "r"), make_models.node("NonZero", "r", "i"), make_models.node("Cast", "i", "f", to=1), make_models.node("MatMul", "x f", "y")]
    return make_models.model(nodes, [("x", make_models.FLOAT, [2, 1])], [("y", make_models.FLOAT, None)], weights)


def in_session(session: int) -> set[int]:
    """The processes of a session that are still running."""
    found = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rsplit(")", 1)[1].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state != "Z":
            found.add(int(stat.parent.name))
    return found


SIGNALS = [(signal.SIGINT, COMPILE), (signal.SIGTERM, COMPILE), (signal.SIGHUP, COMPILE), (signal.SIGINT, ["inspect", "found.onnx"])]


@pytest.mark.parametrize("number, words", SIGNALS, ids=lambda value: value.name if isinstance(value, signal.Signals) else value[0])
def test_a_signal_leaves_no_processes_and_no_files(tmp_path, number, words):
    process = start(tmp_path, words)
    process.send_signal(number)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 128 + number
    assert not any((tmp_path / "temporary").iterdir())
    assert not any((tmp_path / "out").rglob("*"))
    deadline = time.monotonic() + 10
    while in_session(process.pid) and time.monotonic() < deadline:  # a killed process may take a moment to go
        time.sleep(0.01)
    assert in_session(process.pid) == set()


def test_a_signal_that_is_ignored_from_above_ends_nothing(tmp_path):
    """As under nohup."""
    process = start(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=300)[1] == ""
    assert process.returncode == 0
    assert (tmp_path / "out" / "layer.a").exists()
