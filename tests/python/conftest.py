"""Fixtures of the package's tests."""

import subprocess

import onnx
import pytest
from small_models import dense, difference_of_two

from onnx2halide.compiler import find_compiler


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keeps the compiled models of these tests in a folder of their own; kernels still come from the user's cache."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def command(tmp_path):
    """Runs a command in a folder that contains layer.onnx and difference.onnx."""
    onnx.save(dense(), tmp_path / "layer.onnx")
    onnx.save(difference_of_two(), tmp_path / "difference.onnx")

    def run(*words) -> subprocess.CompletedProcess:
        return subprocess.run([find_compiler(), *words], cwd=tmp_path, capture_output=True, text=True)

    return run
