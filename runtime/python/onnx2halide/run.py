"""onnx2halide run: compiles a model and runs it on files."""

import argparse
import pathlib
import re

import numpy as np

from onnx2halide import arguments
from onnx2halide.data import load
from onnx2halide.model import Model


def main() -> int:
    options = _parse()
    model = arguments.compile_model(options)
    outputs = model.run_by_name(_inputs(model, options.input, options.pixels))
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
    for name, array in outputs.items():
        print(f"{name}: {array.dtype} {'x'.join(map(str, array.shape))}")
        if options.output:
            np.save(options.output / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.npy", array)
        else:
            print(np.array2string(array, threshold=20, max_line_width=120))
    return arguments.DONE


def _parse() -> argparse.Namespace:
    parser = arguments.parser("run", "Compiles a model and runs it on files. Without -o it prints the outputs.")
    parser.add_argument("--input", metavar="NAME=FILE", action="append", default=[], help=(
        "an input from .npy, .npz, .pb or an image; NAME= may be left out where the model has one input, or for an .npz of all inputs"))  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", type=pathlib.Path, help="folder for the outputs, a .npy each")
    parser.add_argument("--pixels", metavar="LOW,HIGH", type=_pair, default=(0, 1), help="numbers for an image's black and white; default: 0,1")
    return parser.parse_args()


def _pair(text: str) -> tuple[float, float]:
    low, high = text.split(",")
    return float(low), float(high)


def _inputs(model: Model, texts: list[str], pixels: tuple[float, float]) -> dict[str, np.ndarray]:
    inputs = {}
    for text in texts:
        # Both names and files may hold '='.
        port = next((port for port in model.inputs if text.startswith(port.name + "=")), None)
        if port:
            inputs[port.name] = load(pathlib.Path(text[len(port.name) + 1 :]), port, pixels)
        elif len(model.inputs) == 1:
            inputs[model.inputs[0].name] = load(pathlib.Path(text), model.inputs[0], pixels)
        elif text.endswith(".npz"):
            inputs |= dict(np.load(text))
        else:
            raise ValueError(f"--input {text}: expected NAME=FILE, with one of the inputs {', '.join(port.name for port in model.inputs)}")
    return inputs


if __name__ == "__main__":
    arguments.run_command(main)
