"""onnx2halide from Python: compiles ONNX models ahead of time and runs them.

    import onnx2halide
    model = onnx2halide.compile("mnist.onnx", dims={"batch": 1}, threads=2)
    outputs = model.run([image])

`onnx2halide.backend` implements ONNX's backend interface.
"""

from onnx2halide.api import compile, compile_many
from onnx2halide.compiler import CompileError, UsageError
from onnx2halide.model import Model, Port

__all__ = ["CompileError", "Model", "Port", "UsageError", "backend", "compile", "compile_many"]


def __getattr__(name):
    # Only this module needs the onnx package at import.
    if name == "backend":
        import importlib

        return importlib.import_module("onnx2halide.backend")
    raise AttributeError(f"module 'onnx2halide' has no attribute '{name}'")
