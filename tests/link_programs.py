"""Compiles, links and runs users' programs for tests."""

import pathlib
import subprocess

import numpy as np
import onnxruntime
from paths import PROGRAMS

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LIBRARIES = ["-lpthread", "-ldl", "-lm"]


def link(source: str, parts, to: pathlib.Path, standard="c99", options=(), cc="gcc") -> pathlib.Path:
    """Compiles a program of tests/programs and links it, in this order, with folders of compiled models and other files."""
    return link_file(PROGRAMS / source, parts, to, standard, options, cc)


def link_file(source: pathlib.Path, parts, to: pathlib.Path, standard="c99", options=(), cc="gcc") -> pathlib.Path:
    """The same for a program in any folder."""
    cpp = standard.startswith("c++")
    folders = [part for part in parts if part.is_dir()]
    archives = [archive(part) if part in folders else part for part in parts]
    language = ["-x", "c++" if cpp else "c", source, "-x", "none"]
    includes = [f"-I{folder}" for folder in folders]
    command = ["g++" if cpp else cc, f"-std={standard}", *WARNINGS, *includes, *options, *language, *archives, "-o", to, *LIBRARIES]
    subprocess.run(command, check=True)
    return to


def link_stream(folder: pathlib.Path, name: str, to: pathlib.Path, cc="gcc", options=()) -> pathlib.Path:
    """Links a program that reads the inputs of the compiled model `name` from stdin and writes its outputs to stdout."""
    return link("stream.c", [folder], to, options=[f'-DHEADER="{name}.h"', f"-DMODEL(suffix)={name}##suffix", *options], cc=cc)


def stream(command, *inputs: np.ndarray) -> tuple[str, np.ndarray]:
    """Runs such a program. Returns the target of its kernels, and the outputs as a flat array."""
    done = subprocess.run(command, input=b"".join(array.tobytes() for array in inputs), capture_output=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stderr.decode().splitlines()[-1], np.frombuffer(done.stdout, np.float32)


def archive(folder: pathlib.Path) -> pathlib.Path:
    return next(folder.glob("*.a"))


def run(*command, **options) -> str:
    """Runs a program, which must succeed, and returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def reference(model, **inputs):
    """The first output as computed by onnxruntime, as a flat array."""
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0].ravel()
