"""Where things are."""

import os
import pathlib

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPILER = pathlib.Path(os.environ.get("ONNX2HALIDE_COMPILER", ROOT / "build" / "onnx2halide"))
# The real models of ONNX's backend suite.
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# Other real models, which are no part of the project; tests skip what is not there.
REAL_MODELS = pathlib.Path(os.environ.get("ONNX2HALIDE_MODELS", ROOT.parent / "shared" / "models"))
PROGRAMS = ROOT / "tests" / "programs"
