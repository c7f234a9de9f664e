"""onnx2halide run: compiles a model and runs it on files."""

import argparse
import json
import pathlib
import re

import numpy as np

from onnx2halide import arguments
from onnx2halide.compiler import UsageError
from onnx2halide.data import declared_inputs, load, read_numpy
from onnx2halide.elements import storable
from onnx2halide.model import Port


def main() -> int:
    options = _parse()
    # The inputs are checked first, because compiling may take long.
    inputs = _inputs(_ports(options), options)
    model = arguments.compile_model(options)
    arguments.progress(f"running {options.model.name}")
    outputs = model.run_by_name(inputs)
    arguments.progress("")
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
    files = _file_stems(list(outputs))
    for name, value in outputs.items():
        file = options.output and options.output / files[name]
        if not isinstance(value, np.ndarray):
            _show_box(name, value, file)
            continue
        print(f"{name}: {value.dtype} {'x'.join(map(str, value.shape))}")
        if file:
            np.save(f"{file}.npy", storable(value))
        else:
            print(np.array2string(value, threshold=20, max_line_width=120))
    return arguments.DONE


def _file_stems(names: list[str]) -> dict[str, str]:
    """A distinct file stem for each output."""
    stems = {}
    for name in names:
        stem = wanted = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:200]
        number = 2
        while stem in stems.values():
            stem, number = f"{wanted}_{number}", number + 1
        stems[name] = stem
    return stems


def _show_box(name: str, value: list | dict | None, file: pathlib.Path | None) -> None:
    """Prints a sequence, a map or an absent value, or writes it as JSON, with arrays as lists."""
    size = f" of {len(value)}" if value is not None else ""
    print(f"{name}: {'sequence' if isinstance(value, list) else 'map' if isinstance(value, dict) else 'nothing'}{size}")
    if file:
        pathlib.Path(f"{file}.json").write_text(json.dumps(value, default=np.ndarray.tolist) + "\n")
    else:
        for item in value[:20] if isinstance(value, list) else [value]:
            print(item)


def _parse() -> argparse.Namespace:
    parser = arguments.parser("run", "Compiles a model and runs it on files. Without -o it prints the outputs.", (
        "run mnist.onnx --input digit.png\n"
        "run yunet.onnx --dim height=320 --dim width=320 --input input=image.npy -o out"))  # fmt: skip
    parser.add_argument("--input", metavar="NAME=FILE", action="append", default=[], help=(
        "an input from .npy, .npz, .pb or an image; NAME= may be omitted if the model has one input, or for an .npz of all inputs"))  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", type=pathlib.Path, help="folder for the outputs, as .npy files, or .json for sequences and maps")
    parser.add_argument("--pixels", metavar="LOW,HIGH", type=_pair, default=(0, 1), help="numbers for an image's black and white; default: 0,1")
    parser.add_argument("--resize", action="store_true", help="scale images to the size of their input")
    return parser.parse_args()


def _pair(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}', expected two numbers such as 0,255") from None
    return low, high


def _ports(options: argparse.Namespace) -> list[Port]:
    try:
        return declared_inputs(options.model.read_bytes(), arguments.numbers(dict(options.dim)))
    except ValueError:
        return arguments.compile_model(options).inputs  # the compiler's message is better


def _inputs(ports: list[Port], options: argparse.Namespace) -> dict[str, np.ndarray]:
    names = ", ".join(port.name for port in ports)
    inputs = {}
    for text in options.input:
        # Both names and files may contain '='.
        port = next((port for port in ports if text.startswith(port.name + "=")), None)
        if port is None and len(ports) == 1 and (pathlib.Path(text).exists() or "=" not in text):
            port, file = ports[0], text
        elif port:
            file = text[len(port.name) + 1 :]
        elif text.endswith(".npz"):
            inputs |= dict(read_numpy(pathlib.Path(text)))
            continue
        else:
            raise UsageError(f"--input {text}: expected NAME=FILE, with one of the inputs {names}")
        if port.name in inputs:
            raise UsageError(f"--input {text}: '{port.name}' is given twice")
        inputs[port.name] = load(pathlib.Path(file), port, options.pixels, options.resize)
    if missing := [port.name for port in ports if port.name not in inputs]:
        raise UsageError(f"--input {missing[0]}=FILE is missing; the inputs are {names}")
    for port in ports:
        port.array(inputs[port.name])
    return {port.name: inputs[port.name] for port in ports}
