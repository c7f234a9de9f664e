"""Where things are."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPILER = pathlib.Path(os.environ.get("ONNX2HALIDE_COMPILER", ROOT / "build" / "onnx2halide"))
PROGRAMS = ROOT / "tests" / "programs"
