"""Signals that end the compiler while it builds."""

import os
import pathlib
import signal
import subprocess
import time

import make_models
import pytest
from paths import COMPILER


def start(tmp_path, **options) -> subprocess.Popen:
    """Compiles with an empty cache, so that there is something to do, and waits until it builds."""
    (tmp_path / "layer.onnx").write_bytes(make_models.layer().SerializeToString())
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"ONNX2HALIDE_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen([COMPILER, "layer.onnx", "-o", "out"], cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True, **options)
    deadline = time.monotonic() + 60
    while not (any((tmp_path / "temporary").rglob("generators.cpp")) and len(in_session(process.pid)) > 1):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    return process


def in_session(session: int) -> set[int]:
    """Processes of a session that still run."""
    found = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rsplit(")", 1)[1].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state != "Z":
            found.add(int(stat.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_leaves_no_processes_and_no_files(tmp_path, number):
    process = start(tmp_path)
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
