"""Writes benchmark models: NAME.onnx, and with --inputs NAME.npz, a sample input."""

import argparse
import pathlib

import numpy as np
import onnx

from bench_models import MODELS


def write(name: str, folder: pathlib.Path, seed: int, inputs: bool) -> None:
    network = MODELS[name]()
    file = folder / f"{name}.onnx"
    onnx.save(network.model(seed), file)
    if inputs:
        np.savez(file.with_suffix(".npz"), **network.inputs(seed))
    print(f"{file}   {file.stat().st_size / 1e6:.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench_models", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("-o", dest="folder", type=pathlib.Path, default=pathlib.Path(), help="folder for the models; default: the working folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", action="store_true", help="also write a sample input for each")
    parser.add_argument("--list", action="store_true", help="print the names and exit")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in MODELS]:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if arguments.list:
        print("\n".join(MODELS))
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or MODELS:
        write(name, arguments.folder, arguments.seed, arguments.inputs)


if __name__ == "__main__":
    main()
