"""What the commands `onnx2halide run` and `onnx2halide verify` share."""

import argparse
import pathlib
import sys
from collections.abc import Callable

import onnx2halide
from onnx2halide.model import Model

DONE, MODEL_AT_FAULT = 0, 1  # exit statuses of the command line


def parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser with the options for compiling a model."""
    result = argparse.ArgumentParser(prog=f"onnx2halide {command}", description=description, conflict_handler="resolve")
    result.add_argument("model", metavar="MODEL.onnx", type=pathlib.Path)
    result.add_argument("--dim", metavar="NAME=N", action="append", type=_dim, default=[], help="number for a dim that the model leaves open")
    result.add_argument("--target", default="host", help="Halide target; default: host")
    result.add_argument("--schedule", default="default", help="default, or naive")
    result.add_argument("--threads", type=int, default=1, help="threads of a run; 0: one a core; default: 1")
    result.add_argument("--python", metavar="PYTHON", help="the Python for this; default: $ONNX2HALIDE_PYTHON, or that of the build")
    return result


def compile_model(options: argparse.Namespace) -> Model:
    return onnx2halide.compile(options.model, dict(options.dim), options.target, options.threads, schedule=options.schedule)


def run_command(command: Callable[[], int]) -> None:
    """Leaves with the command's exit status; faults of the model and its data end in one message."""
    try:
        sys.exit(command())
    except (onnx2halide.CompileError, OSError, RuntimeError, TypeError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(MODEL_AT_FAULT)


def _dim(text: str) -> tuple[str, int]:
    name, equals, number = text.rpartition("=")
    if not equals or not number.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}', expected NAME=N")
    return name, int(number)
