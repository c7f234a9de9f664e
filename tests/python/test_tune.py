"""onnx2halide tune. No test depends on speed: with LEAST_GAIN far below 0, any variant wins."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

import make_models
import numpy as np
import onnx2halide as package
import pytest
from make_models import FLOAT, model, node
from onnx2halide import arguments, tune
from onnx2halide import trials as onnx2halide_trials
from onnx2halide.compiler import Options
from onnx2halide.trials import Trials

ANYTHING_WINS = -1e9
ENTRY = {"default_seconds", "defaults", "kernel", "model", "nodes", "params", "seconds", "target", "threads"}


@pytest.fixture
def image(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "image.onnx"
    path.write_bytes(make_models.image().SerializeToString())
    return path


@pytest.fixture
def tune_here(monkeypatch, capsys):
    """Runs the command in this process, with settings by which any variant wins and few are tried. Returns its output."""
    neighbours = tune.neighbours
    monkeypatch.setattr(tune, "LEAST_GAIN", ANYTHING_WINS)
    monkeypatch.setattr(tune, "LEAST_SHARE", 0.1)
    monkeypatch.setattr(tune, "neighbours", lambda params: neighbours(params)[:2])

    def run(*words) -> str:
        monkeypatch.setattr(sys, "argv", ["tune", *map(str, words)])
        assert tune.main() == arguments.DONE
        return capsys.readouterr().out

    return run


def test_what_is_found_is_kept_compiled_and_computes_the_same(image, tune_here):
    report = json.loads(tune_here(image, "--budget", "600", "--threads", "2", "--json"))
    assert report["file"] == "image.tuning.json" and report["variants"] > 0 and report["changed"]
    entries = json.loads((image.parent / "image.tuning.json").read_text())
    assert entries["format"] == 1
    found = {entry["kernel"]: entry for entry in entries["kernels"].values()}
    assert set(found) <= {changed["kernel"] for changed in report["changed"]}
    for entry in found.values():
        assert set(entry) == ENTRY and (entry["model"], entry["threads"]) == ("image.onnx", 2)
        assert set(entry["params"]) == set(entry["defaults"]) and entry["seconds"] > 0 < entry["default_seconds"]
        assert all(value != entry["defaults"][role] for role, value in entry["params"].items())
    tuned = package.compile(image, tuning="image.tuning.json", cache=image.parent / "cache")
    own = package.compile(image, cache=image.parent / "cache")
    picture = np.random.default_rng(0).normal(size=(1, 3, 56, 56)).astype(np.float32)
    assert np.allclose(tuned.run([picture])[0], own.run([picture])[0], rtol=1e-4, atol=1e-4)


def test_a_file_is_extended(image, tune_here):
    other = {"params": {"odd": 3}}
    (image.parent / "mine.json").write_text(json.dumps({"format": 1, "kernels": {"0123456789abcdef": other}}))
    printed = tune_here(image, "--budget", "600", "--tuning", "mine.json")
    assert printed.splitlines()[0].split() == ["kernel", "default", "us", "tuned", "us", "gain", "parameters", "(default)"]
    assert printed.endswith("use them with --tuning mine.json\n")
    first = json.loads((image.parent / "mine.json").read_text())["kernels"]
    assert first.pop("0123456789abcdef") == other and first
    # The next run starts from the contents of the file.
    with Trials(image, Options(tuning="mine.json"), 1) as trials:
        starts = {kernel.key: {role: kernel.value[role] for role in kernel.value if kernel.value[role] != kernel.own[role]} for kernel in trials.kernels}
    assert {key: params for key, params in starts.items() if params} == {key: entry["params"] for key, entry in first.items()}


def test_faults_in_a_part_of_another_tensor_are_found(tmp_path):
    """The rows of what a Concat joins are apart."""
    weights = {name: np.random.default_rng(1).normal(size=shape).astype(np.float32) for name, shape in (("w1", (16, 16, 3, 3)), ("w2", (32, 16, 1, 1)), ("w3", (16, 48, 3, 3)))}
    nodes = [node("Conv", "x w1", "a", pads=[1] * 4), node("Conv", "x w2", "b"), node("Concat", "a b", "c", axis=1), node("Conv", "c w3", "y", pads=[1] * 4)]
    proto = model(nodes, [("x", FLOAT, [1, 16, 12, 12])], [("y", FLOAT, [1, 16, 12, 12])], weights)
    (tmp_path / "parts.onnx").write_bytes(proto.SerializeToString())
    are_parts = []
    with Trials(tmp_path / "parts.onnx", Options(), 1) as trials:
        for kernel in trials.kernels:
            own = trials.compiled(kernel)
            pointer = ctypes.POINTER(onnx2halide_trials._Buffer)
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[pointer] * (kernel.inputs + kernel.outputs))
            run = prototype(own.address)

            def with_wrong_last_element(*arguments):
                status = run(*arguments)
                found = arguments[-1].contents.array()
                are_parts.append(not found.flags.c_contiguous)
                found.flat[-1] += 1
                return status

            wrong = prototype(with_wrong_last_element)
            variant = onnx2halide_trials.Variant({}, b"", ctypes.cast(wrong, ctypes.c_void_p).value)
            assert trials.fault(kernel, variant, own)
    assert True in are_parts and False in are_parts


def test_nothing_wins(image, onnx2halide):
    done = onnx2halide("tune", image, "--budget", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"0 variants of 0 of \d kernels were tried: none is faster by 2%, nothing is written\n", done.stdout)
    assert not (image.parent / "image.tuning.json").exists()


def test_a_variant_that_computes_something_else_is_found(tmp_path):
    """Compares kernels in place or not; the results of the reference remain."""
    path = tmp_path / "two.onnx"
    nodes = [node("Softmax", "x", "a", axis=0), node("LogSoftmax", "x", "b", axis=0)]
    path.write_bytes(model(nodes, [("x", FLOAT, [4, 8])], [("a", FLOAT, [4, 8]), ("b", FLOAT, [4, 8])]).SerializeToString())
    with Trials(path, Options(), 1) as trials:
        one, two = trials.kernels
        own, other = trials.compiled(one), trials.compiled(two)
        assert trials.fault(one, own, own) is None
        assert trials.fault(one, other, own).startswith("max |a - b| ")


def test_a_signal_while_variants_are_compared_is_not_lost(image, monkeypatch):
    """The comparison is called from C, through which exceptions do not propagate."""
    monkeypatch.setattr(onnx2halide_trials, "_difference", lambda *_: signal.raise_signal(signal.SIGINT))
    with Trials(image, Options(), 1) as trials:
        kernel = trials.kernels[0]
        with pytest.raises(KeyboardInterrupt):
            trials.fault(kernel, trials.compiled(kernel), trials.compiled(kernel))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_generators_that_fail_leave_their_variant_out(image):
    with Trials(image, Options(), 1) as trials:
        kernel = next(kernel for kernel in trials.kernels if kernel.own)
        role = next(iter(kernel.own))
        assert trials.variants(kernel, [kernel.own | {role: -1}, kernel.own], time.monotonic() + 60) == []


def test_neighbours():
    assert tune.neighbours({"rows": 1}) == [{"rows": 2}]
    assert tune.neighbours({"rows": 5}) == [{"rows": 2}, {"rows": 4}, {"rows": 6}, {"rows": 10}]
    assert tune.neighbours({"rows": 64}) == [{"rows": 32}, {"rows": 48}, {"rows": 80}, {"rows": 128}]
    assert {"rows": 4, "pixels": 3} in tune.neighbours({"rows": 2, "pixels": 6})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_run_that_is_cut_off_keeps_its_file(image, number):
    temporary = image.parent / "temporary"
    temporary.mkdir()
    code = f"from onnx2halide import __main__, tune; tune.LEAST_GAIN = {ANYTHING_WINS}; __main__.main()"
    command = [sys.executable, "-c", code, "tune", image, "--budget", "600"]
    process = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True)
    file, deadline = image.parent / "image.tuning.json", time.monotonic() + 120
    while not file.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 128 + number)
    assert json.loads(file.read_text())["kernels"]
    assert not any(temporary.iterdir())
    assert {path.name for path in image.parent.iterdir()} == {"image.onnx", "image.tuning.json", "temporary"}


@pytest.mark.parametrize(
    "words, status, message",
    [
        (["--budget", "x"], 2, "--budget: 'x', expected a number of seconds\nRun with --help for more information.\n"),
        (["--budget", "-1"], 2, "--budget: '-1', expected a number of seconds\nRun with --help for more information.\n"),
        (["--tuning", "none/t.json"], 1, "none/t.json: cannot be written: its folder is missing or read-only\n"),
        (["--target", "host,x86-64-linux"], 2, "--target: 'host,x86-64-linux', expected one of a processor: kernels are tried on this machine\nRun with --help for more information.\n"),
        (["--target", "host-opencl"], 2, "--target: 'host-opencl', expected one of a processor: kernels are tried on this machine\nRun with --help for more information.\n"),
    ],
)  # fmt: skip
def test_bad_words(image, onnx2halide, words, status, message):
    done = onnx2halide("tune", image, *words)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)


def test_a_bad_file_is_the_compilers_to_tell(image, onnx2halide):
    (image.parent / "image.tuning.json").write_text("{")
    done = onnx2halide("tune", "image.onnx")
    assert (done.returncode, done.stderr) == (1, "image.onnx: image.tuning.json:1: is not JSON, expected a file that onnx2halide tune wrote\n")
    assert (image.parent / "image.tuning.json").read_text() == "{"
