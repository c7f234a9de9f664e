"""Where the compiler, the models and the programs are that tests use."""

import os
import pathlib

import onnx
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPILER = pathlib.Path(os.environ.get("ONNX2HALIDE_COMPILER", ROOT / "build" / "onnx2halide"))
# The real models of ONNX's backend suite.
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# Other real models, as NAME/model.onnx, which are not part of the project. Tests that read one skip where it is absent.
REAL_MODELS = pathlib.Path(os.environ.get("ONNX2HALIDE_MODELS", ROOT.parent / "shared" / "models"))
PROGRAMS = ROOT / "tests" / "programs"


def real_model(name: str) -> pathlib.Path:
    """The model's file. Skips the test if the file is absent."""
    file = REAL_MODELS / name / "model.onnx"
    if not file.exists():
        pytest.skip(f"no {file}; ONNX2HALIDE_MODELS names the folder of real models")
    return file
