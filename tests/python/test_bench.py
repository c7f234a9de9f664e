"""onnx2halide bench. No test depends on the speed of anything."""

import ctypes
import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from paths import COMPILER, ROOT

from onnx2halide.clocks import Machine, Traffic, machine
from onnx2halide.peers import PeerClock, PeerFault

DIGITS = ROOT / "scripts" / "digits" / "digits.onnx"


def bench(*words) -> subprocess.CompletedProcess:
    return subprocess.run([COMPILER, "bench", *words], capture_output=True, text=True)


def test_rows_and_kernels_as_json():
    done = bench(DIGITS, "--against", "onnxruntime", "--threads", "1,2", "--seconds", "0.1", "--kernels", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    assert [row["threads"] for row in rows] == [1, 2]
    for row in rows:
        assert set(row["times"]) == {"onnx2halide", "onnxruntime"} and row["faults"] == {}
        assert all(0 < times["best"] <= times["median"] for times in row["times"].values())
        assert row["difference"]["onnxruntime"] < 1e-5
        assert [kernel["step"] for kernel in row["kernels"]] == list(range(len(row["kernels"])))
        assert all(0 < kernel["warm"] and 0 < kernel["least"] for kernel in row["kernels"])
        assert any(node.startswith("PackedConv") for kernel in row["kernels"] for node in kernel["nodes"])


def test_schedules_are_contestants():
    done = bench(DIGITS, "--against", "naive,auto:mullapudi2016", "--seconds", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert set(row["times"]) == {"onnx2halide", "naive", "auto:mullapudi2016"} and row["faults"] == {}
    assert all(difference < 1e-5 for difference in row["difference"].values())


def test_a_table_alone():
    done = bench(DIGITS, "--against", "none", "--seconds", "0.1", "--kernels")
    assert (done.returncode, done.stderr) == (0, "")
    titles, units, row, _, *kernels = done.stdout.splitlines()
    assert (titles.split(), units.split()) == (["model", "threads", "onnx2halide", "ratio"], ["best", "/", "median,", "ms"])
    assert (row.split()[:2], row.split()[-1]) == (["digits", "1"], "-")
    assert kernels[1].split()[:3] == ["step", "calls", "us"] and len(kernels) > 4


@pytest.mark.parametrize(
    "words, message",
    [(["--against", "me"], "'me', expected some of onnxruntime, openvino, naive, auto:mullapudi2016, auto:adams2019, auto:li2018, fixed, or none"), (["--threads", "x"], "'x', expected numbers such as 1,2"), (["--seconds", "-1"], "'-1', expected a number of seconds")],
)
def test_bad_words(words, message):
    done = bench(DIGITS, *words)
    assert (done.returncode, done.stderr) == (2, f"{words[0]}: {message}\nRun with --help for more information.\n")


def test_limits():
    """Work of a known size on a machine of known speed."""
    levels = (Traffic("L1", 1000, 100.0, 50.0), Traffic("memory", 1 << 62, 10.0, 5.0))
    own = Machine(flops=1000.0, traffic=levels)
    assert own.least_seconds(2000, 100, 0) == (2.0, "FMA")
    assert own.least_seconds(2000, 100, 0, threads=2) == (1.0, "FMA")
    assert own.least_seconds(0, 500, 500) == (15.0, "L1")
    assert own.least_seconds(0, 1000, 500) == (200.0, "memory")
    assert own.least_seconds(0, 1000, 500, threads=2) == (10.0, "L1")


def test_the_machine_is_measured():
    found = machine()
    assert found.flops > 1e9
    assert found.traffic[-1].level == "memory" and all(level.reads > 1e8 and level.writes > 1e8 for level in found.traffic)


class Crashing:
    """A peer whose outputs are right, and that crashes once it is timed."""

    def __init__(self, model: bytes, inputs: dict, threads: int):
        if model == b"unknown":
            raise ValueError("no operator of that name\nin line 5")

    def outputs(self) -> list:
        return [1]

    def run(self) -> None:
        ctypes.string_at(0)


def test_a_peer_that_crashes():
    clock = PeerClock(Crashing, b"", {}, 1)
    assert clock.outputs == [1]
    with pytest.raises(PeerFault, match="^its process crashed$"):
        clock(1)
    clock.close()
    with pytest.raises(PeerFault, match="^no operator of that name$"):
        PeerClock(Crashing, b"unknown", {}, 1)


def test_open_sizes(tmp_path):
    """A model compiled for all sizes against one compiled for those of the run. The kernel of a loop is listed once, with its calls."""
    x, w = (helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", 4]), np.full((1, 12, 4), 0.1, np.float32))
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=4)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["steps", 1, "batch", 4])
    graph = helper.make_graph([node], "gru", [x], [y], [numpy_helper.from_array(w, name) for name in "wr"])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "gru.onnx")
    words = (tmp_path / "gru.onnx", "--against", "fixed", "--seconds", "0.1", "--kernels", "--json", "--size", "batch=2", "--size")
    done = bench(*words, "steps=7")
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = json.loads(done.stdout)["rows"]
    assert set(row["times"]) == {"onnx2halide", "fixed"} and row["difference"]["fixed"] < 1e-6
    assert {kernel["calls"] for kernel in row["kernels"]} == {1, 7}
    assert all(0 < kernel["warm"] for kernel in row["kernels"])
    done = bench(*words, "length=7")
    assert (done.returncode, done.stderr) == (1, "--size length=7: the model leaves no dim of that name open\n")


def test_an_output_of_maps(tmp_path):
    node = helper.make_node("ZipMap", ["x"], ["maps"], classlabels_int64s=[3, 5], domain="ai.onnx.ml")
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, None))))
    graph = helper.make_graph([node], "maps", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 2])], [maps])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "maps.onnx")
    done = bench(tmp_path / "maps.onnx", "--against", "onnxruntime", "--seconds", "0.1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = json.loads(done.stdout)["rows"]
    assert row["faults"] == {} and row["difference"]["onnxruntime"] == 0


def test_no_model(tmp_path):
    file = tmp_path / "text.onnx"
    file.write_text("no model")
    done = bench(file, "--against", "none")
    assert (done.returncode, done.stderr) == (1, f"{file}: is not an ONNX model, or is truncated\n")
    done = bench(file, "--random-weights")
    assert done.returncode == 1 and done.stderr.startswith(f"{file}: cannot be read: ") and "Traceback" not in done.stderr


def test_bounds_of_open_dims(tmp_path):
    proto = helper.make_model(helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "rows", 8])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "rows", 8])]), opset_imports=[helper.make_opsetid("", 20)])
    onnx.save(proto, tmp_path / "open.onnx")
    done = bench(tmp_path / "open.onnx", "--dim", "batch=2..4", "--size", "batch=3", "--size", "rows=5", "--against", "fixed", "--seconds", "0.05")
    assert (done.returncode, done.stderr) == (0, "")
    done = bench(tmp_path / "open.onnx", "--dim", "batch=2..4", "--size", "batch=5", "--against", "none")
    assert done.returncode == 1 and "expected 2 to 4" in done.stderr


def test_json_has_null_for_what_is_no_number():
    done = bench(DIGITS, "--against", "none", "--seconds", "0.1", "--json")
    (row,) = json.loads(done.stdout, parse_constant=pytest.fail)["rows"]
    assert row["ratio"] is None
