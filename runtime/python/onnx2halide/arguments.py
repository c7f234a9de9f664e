"""Options, messages and exit statuses of the commands that are written in Python."""

import argparse
import json
import math
import pathlib
import re
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Mapping

import onnx2halide
from onnx2halide.compiler import HELP_HINT, CompileError, UsageError
from onnx2halide.model import Model

# Exit statuses of the command line.
DONE, MODEL_AT_FAULT, USAGE, OUR_FAULT = 0, 1, 2, 3

MOST_THREADS = 256


EXIT_STATUSES = """Exit status: 0 done; 1 the model, its data or a file is at fault; 2 usage; 3 a fault of onnx2halide;
128 + N ended by signal N."""


class Parser(argparse.ArgumentParser):
    """A parser that reports errors as the compiler does."""

    def error(self, message: str):
        raise UsageError(message.removeprefix("argument "))


def parser(command: str, description: str, examples: str, chooses_schedule: bool = True) -> Parser:
    """Returns a parser with the options for compiling a model, and with those for schedules if `chooses_schedule`. `examples` has one
    command per line."""
    epilog = "Examples:\n" + "".join(f"  onnx2halide {line}\n" for line in examples.splitlines()) + f"\n{EXIT_STATUSES}"
    result = Parser(
        prog=f"onnx2halide {command}",
        description=textwrap.fill(description, 100),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",
    )
    result.add_argument("model", metavar="MODEL.onnx", type=pathlib.Path)
    result.add_argument("--dim", metavar="NAME=N", action="append", type=dim, default=[], help="number or bounds, as in batch=1..32, for an open dim, by its name or as INPUT:AXIS; may be repeated")
    result.add_argument("--target", default="host", help="Halide target; default: host")
    result.add_argument("--convolution", default="auto", choices=["auto", "direct", "winograd"], help="algorithm of convolutions; default: auto")
    result.add_argument("--threads", metavar="N", type=_threads, default=1, help="threads of a run; 0: one per core; default: 1")
    result.add_argument("--python", metavar="PYTHON", help="Python interpreter for this command; default: $ONNX2HALIDE_PYTHON, or that of the build")
    if chooses_schedule:
        result.add_argument("--schedule", default="default", help="as compile's: default, naive, auto:NAME or a file; default: default")
        result.add_argument("--pipeline", default="kernels", choices=["kernels", "whole"], help="whole: a single kernel for a small model; default: kernels")
        result.add_argument("--tuning", metavar="FILE", help="file of schedule parameters, as written by `onnx2halide tune`")
    return result


def add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", metavar="NAME=N", action="append", type=size, default=[], help="size, in the run, of a dim that stays open in the compiled model; inputs are then seeded")


def compile_model(options: argparse.Namespace) -> Model:
    progress(f"compiling {options.model.name}")
    how = {name: getattr(options, name) for name in ("schedule", "convolution", "pipeline", "tuning")}
    return onnx2halide.compile(options.model, dict(options.dim), options.target, options.threads, **how)


def run_command(command: Callable[[], int]) -> None:
    """Exits with the command's status. Reports wrong usage and faults of the model and its data in a single message."""
    warnings.showwarning = lambda message, *_: _tell(message)
    try:
        sys.exit(command())
    except UsageError as error:
        _tell(error, HELP_HINT.strip())
        sys.exit(USAGE)
    except OSError as error:
        _tell(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error)
        sys.exit(MODEL_AT_FAULT)
    except (CompileError, RuntimeError, TypeError, ValueError) as error:
        _tell(error)
        sys.exit(MODEL_AT_FAULT)
    except Exception:  # noqa: BLE001 - all others are bugs
        _tell(f"onnx2halide: internal error\n{traceback.format_exc().rstrip()}")
        sys.exit(OUR_FAULT)
    finally:
        progress("")


def progress(text: str) -> None:
    """Shows a line of progress on a terminal, in place of the last one. An empty text clears it."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _tell(*lines) -> None:
    progress("")
    print(*lines, sep="\n", file=sys.stderr)


def json_text(value) -> str:
    """The value as JSON. Numbers that JSON cannot represent, such as infinity, become null."""

    def finite(part):
        if isinstance(part, dict):
            return {key: finite(item) for key, item in part.items()}
        if isinstance(part, list | tuple):
            return [finite(item) for item in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(finite(value), indent=2, allow_nan=False)


def dim(text: str) -> tuple[str, int | str]:
    """Parses a dim: its name, and its number or the text of its bounds, which only the compiler interprets."""
    name, equals, value = text.rpartition("=")
    if not equals or not re.fullmatch(r"\d+(\.\.\d+)?", value, re.ASCII):
        raise argparse.ArgumentTypeError(f"'{text}', expected NAME=N or NAME=MIN..MAX")
    return name, int(value) if value.isdigit() else value


def size(text: str) -> tuple[str, int]:
    name, value = dim(text)
    if isinstance(value, str):
        raise argparse.ArgumentTypeError(f"'{text}', expected NAME=N")
    return name, value


def numbers(dims: Mapping[str, int | str]) -> dict[str, int]:
    """The dims that are numbers rather than bounds."""
    return {name: value for name, value in dims.items() if isinstance(value, int)}


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}', expected a number of seconds")
    return number


def tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise argparse.ArgumentTypeError(f"'{text}', expected a number")
    return number


def seed(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}', expected an integer of at least 0")
    return int(text)


def _threads(text: str) -> int:
    if not text.isdigit() or int(text) > MOST_THREADS:
        raise argparse.ArgumentTypeError(f"'{text}', expected 0 to {MOST_THREADS}")
    return int(text)
