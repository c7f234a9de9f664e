"""`--pipeline whole`: one kernel that is the whole model."""

import json

import make_models
import numpy as np
import onnx2halide as package
import pytest
from make_models import FLOAT, chain, model, node
from onnx import TensorProto

HELP = "Run with --help for more information.\n"


@pytest.mark.filterwarnings("ignore:.* keeps its own schedule")
@pytest.mark.parametrize("schedule", ["default", "auto:mullapudi2016", "auto:li2018"])
def test_results_stay(tmp_path, schedule):
    network = make_models.image()
    kernels = package.compile(network, cache=tmp_path)
    whole = package.compile(network, cache=tmp_path, pipeline="whole", schedule=schedule)
    picture = np.random.default_rng(0).normal(size=kernels.inputs[0].shape).astype(np.float32)
    assert np.allclose(whole.run([picture])[0], kernels.run([picture])[0], rtol=1e-4, atol=1e-4)


def test_one_kernel(onnx2halide, tmp_path):
    (tmp_path / "image.onnx").write_bytes(make_models.image().SerializeToString())
    assert onnx2halide("image.onnx", "--pipeline", "whole", "-o", "out").returncode == 0
    manifest = json.loads((tmp_path / "out" / "image.json").read_text())
    assert [kernel["name"] for kernel in manifest["kernels"]] == ["whole"]
    assert manifest["arena_bytes"] == 0


def test_outputs_may_be_read_and_need_no_alignment(tmp_path):
    """Views among them, and one that is an output twice."""
    nodes = [node("Relu", "x", "a"), node("Flatten", "a", "b"), node("Exp", "b", "c"), node("Neg", "a", "d")]
    ports = [("a", FLOAT, [1, 4, 16]), ("b", FLOAT, [1, 64]), ("c", FLOAT, [1, 64]), ("a", FLOAT, [1, 4, 16]), ("d", FLOAT, [1, 4, 16])]
    compiled = package.compile(model(nodes, [("x", FLOAT, [1, 4, 16])], ports), pipeline="whole", schedule="auto:mullapudi2016", cache=tmp_path)
    memory = np.random.default_rng(0).normal(size=65).astype(np.float32)
    for offset in (0, 1):
        x = memory[offset : offset + 64].reshape(1, 4, 16)
        a = np.maximum(x, 0)
        for result, expected in zip(compiled.run([x]), [a, a.reshape(1, 64), np.exp(a.reshape(1, 64)), a, -a]):
            assert np.allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "what, words, status, message",
    [
        (chain("Neg", shape=("n", 3)), [], 1, "small.onnx: --pipeline whole: the model leaves dims open, expected none\n"),
        (chain(*["Neg"] * 65), [], 1, "small.onnx: --pipeline whole: the graph has 65 nodes when constants are folded, expected at most 64\n"),
        (
            model([node("Unique", "x", "y")], [("x", FLOAT, [5])], [("y", FLOAT, ["n"])]),
            [],
            1,
            "small.onnx: --pipeline whole: node 'y' (Unique) runs outside of kernels, expected only nodes with kernels\n",
        ),
        (
            model(
                [node("Mul", "n n", "p"), node("Concat", "p p", "pads", axis=0), node("Pad", "x pads", "b"), node("ReduceSum", "b", "y", keepdims=0)],
                [("x", FLOAT, [4]), ("n", TensorProto.INT64, [1])],
                [("y", FLOAT, [])],
            ),
            [],
            1,
            "small.onnx: --pipeline whole: sizes depend on elements known at run time, expected constant ones\n",
        ),
        (
            chain("Neg"),
            ["--target", "x86-64-linux-sse41-opencl"],
            2,
            "--pipeline: whole is for processors, and target x86-64-linux-opencl-sse41 has a GPU\n" + HELP,
        ),
        (chain("Neg"), ["--pipeline", "half"], 2, "--pipeline: 'half', expected one of kernels, whole\n" + HELP),
    ],
    ids=["open dims", "many nodes", "host", "sizes of elements", "GPU", "unknown"],
)
def test_refused(onnx2halide, tmp_path, what, words, status, message):
    (tmp_path / "small.onnx").write_bytes(what.SerializeToString())
    flag = [] if "--pipeline" in words else ["--pipeline", "whole"]
    done = onnx2halide("small.onnx", *flag, *words, "-o", "out")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)
    assert not (tmp_path / "out").exists()
