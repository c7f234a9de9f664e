"""Options and fixtures of tests that run the compiler."""

import subprocess

import pytest
from paths import COMPILER


def pytest_addoption(parser):
    parser.addoption("--target", default="host", help="what the suite is compiled for, as the compiler's --target; default: host")


@pytest.fixture
def onnx2halide(tmp_path):
    """Runs the compiler in the test's folder."""

    def run(*words, **options) -> subprocess.CompletedProcess:
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300} | options
        return subprocess.run([COMPILER, *map(str, words)], **options)

    return run
