"""The README's programs and its CMake project, verbatim."""

import os
import re
import subprocess
import textwrap

import numpy as np
import pytest
from link_programs import link_file, run
from make_models import FLOAT, model, node
from paths import COMPILER, ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"(?:^(?: {4}.*)?\n)+", README, re.MULTILINE) if block.strip()]
FIRST, BATCHES = (next(block for block in BLOCKS if f'#include "{name}.h"' in block) for name in ("mnist", "net"))
CMAKE = next(block for block in BLOCKS if "find_package" in block)


def classifier(batch, image: str, scores: str):
    """Scores of ten classes for images of 28x28: those of a black one are 3, 4, 5 and so on."""
    weights = {"W": np.random.default_rng(0).standard_normal((784, 10)).astype(np.float32), "shape": np.array([-1, 784])}
    weights["b"] = np.arange(3, 13, dtype=np.float32)
    nodes = [node("Reshape", f"{image} shape", "pixels"), node("MatMul", "pixels W", "products"), node("Add", "products b", scores)]
    return model(nodes, [(image, FLOAT, [batch, 1, 28, 28])], [(scores, FLOAT, [batch, 10])], weights)


@pytest.fixture
def folder(tmp_path):
    """A folder with mnist.onnx, of fixed shapes, and net.onnx, of an open batch."""
    (tmp_path / "mnist.onnx").write_bytes(classifier(1, "Input3", "Plus214_Output_0").SerializeToString())
    (tmp_path / "net.onnx").write_bytes(classifier("batch", "image", "scores").SerializeToString())
    return tmp_path


def compiled(folder, name: str, text: str) -> None:
    subprocess.run([COMPILER, f"{name}.onnx", "-o", name], cwd=folder, check=True)
    (folder / "main.c").write_text(text)


def test_first_program(folder):
    text, *commands = re.split(r"^(?=cc main\.c)", FIRST, flags=re.MULTILINE)
    compiled(folder, "mnist", text)
    assert len(commands) == 2
    for command in commands:
        subprocess.run(["sh", "-ec", command], cwd=folder, check=True)
        assert run(folder / "a.out") == ""
        os.remove(folder / "a.out")


def test_two_batches(folder):
    compiled(folder, "net", BATCHES)
    program = link_file(folder / "main.c", [folder / "net"], folder / "program")
    assert run(program) == "1 x 10 scores, the first 3\n8 x 10 scores, the first 3\n"


def test_cmake_project(folder):
    (folder / "CMakeLists.txt").write_text(CMAKE.replace("path/to/onnx2halide", str(ROOT)))
    (folder / "main.c").write_text(FIRST.split("cc main.c")[0])
    tools = ROOT / "build" / "venv" / "bin"
    for step in (["-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"], ["--build", "build"]):
        subprocess.run([tools / "cmake", *step], cwd=folder, check=True)
    assert run(folder / "build" / "app") == ""
