"""`--schedule auto:NAME`: kernels that Halide's autoschedulers schedule, and those that they fail on."""

import re

import make_models
import numpy as np
import onnx2halide as package
import pytest
from link_programs import link, numbers, run
from make_models import FLOAT, model, node

AUTOSCHEDULERS = ["mullapudi2016", "adams2019", "li2018"]


@pytest.fixture
def compile_image(onnx2halide, tmp_path):
    """Compiles a small network and returns its folder."""
    (tmp_path / "image.onnx").write_bytes(make_models.image().SerializeToString())

    def compile(schedule: str):
        folder = tmp_path / schedule.replace(":", "_")
        done = onnx2halide("image.onnx", "-o", folder, "--schedule", schedule)
        assert done.returncode == 0, done.stderr
        return folder

    return compile


def features(folder, tmp_path) -> list[float]:
    return numbers(run(link("print_features.c", [folder], tmp_path / "program")))


@pytest.mark.parametrize("name", AUTOSCHEDULERS)
def test_results_stay(compile_image, tmp_path, name):
    own = compile_image("default")
    scheduled = compile_image(f"auto:{name}")
    assert (scheduled / "image.a").read_bytes() != (own / "image.a").read_bytes()
    assert np.allclose(features(scheduled, tmp_path), features(own, tmp_path), rtol=1e-4, atol=1e-4)
    # Neither takes the other's objects from the cache.
    assert (compile_image("default") / "image.a").read_bytes() == (own / "image.a").read_bytes()


@pytest.mark.parametrize("name", AUTOSCHEDULERS)
def test_build_schedules_in_the_same_way(onnx2halide, compile_image, name):
    folder = compile_image(f"auto:{name}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert onnx2halide("build", folder).returncode == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "fault, why",
    [
        ('throw std::runtime_error("no\\n  idea");', "no idea"),
        ("abort();", "Aborted"),
        ("raise(SIGXCPU);", "CPU time limit exceeded"),
    ],
)
def test_kernel_that_an_autoscheduler_fails_on_keeps_its_own_schedule(onnx2halide, compile_image, tmp_path, fault, why):
    folder = compile_image("auto:mullapudi2016")
    expected = features(folder, tmp_path)
    path = folder / "image_generators.cpp"
    text = path.read_text().replace('#include "onnx2halide_generators.h"\n', '#include "onnx2halide_generators.h"\n#include <csignal>\n')
    path.write_text(text.replace("if (using_autoscheduler()) {\n", "if (using_autoscheduler()) {\n" + fault, 1))
    kernel = re.search(r"class (\w+) ", text)[1]
    warning = f"image_generators.cpp: kernel '{kernel}' keeps its own schedule, mullapudi2016 fails: {why}\n"
    for _ in range(2):  # the second time from the cache
        done = onnx2halide("build", folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", warning)
    assert np.allclose(features(folder, tmp_path), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.* keeps its own schedule")
@pytest.mark.parametrize("name", AUTOSCHEDULERS)
def test_shapes_that_are_hard_to_schedule(tmp_path, name):
    """No dims, one element, fewer than a vector holds, an open batch."""
    scalar = model([node("ReduceSum", "x", "y", keepdims=0)], [("x", FLOAT, [5])], [("y", FLOAT, [])])
    images = np.random.default_rng(0).normal(size=(2, 3, 6, 6)).astype(np.float32)
    pool = model([node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2])], [("x", FLOAT, ["n", 3, 6, 6])], [("y", FLOAT, ["n", 3, 3, 3])])
    rows = np.arange(5, dtype=np.float32)
    compiled = package.compile_many([scalar, make_models.chain("Neg", shape=()), pool], schedule=f"auto:{name}", cache=tmp_path)
    assert compiled[0].run([rows])[0] == 10
    assert compiled[1].run([np.float32(3)])[0] == -3
    assert np.array_equal(compiled[2].run([images])[0], images.reshape(2, 3, 3, 2, 3, 2).max(axis=(3, 5)))


def test_python_passes_warnings_on(tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    real = package.compiler.find_compiler()
    compiler.write_text(f"#!/bin/sh\n{real} \"$@\"\necho \"$2: kernel 'y' is odd\" >&2\necho \"$2: and slow\" >&2\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("ONNX2HALIDE_COMPILER", str(compiler))
    with pytest.warns(UserWarning) as told:
        package.compile(make_models.chain("Neg"), name="small", cache=tmp_path / "cache")
    assert [str(warning.message) for warning in told] == ["small.onnx: kernel 'y' is odd\nsmall.onnx: and slow"]
