"""How tests make users' programs from compiled models."""

import pathlib
import subprocess

import onnxruntime
from paths import PROGRAMS

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LIBRARIES = ["-lpthread", "-ldl", "-lm"]


def link(source: str, parts, to: pathlib.Path, standard="c99", options=()) -> pathlib.Path:
    """Compiles a program of tests/programs and links it, in this order, with folders of compiled models and other files."""
    return link_file(PROGRAMS / source, parts, to, standard, options)


def link_file(source: pathlib.Path, parts, to: pathlib.Path, standard="c99", options=()) -> pathlib.Path:
    """The same for a program of any folder."""
    cpp = standard.startswith("c++")
    folders = [part for part in parts if part.is_dir()]
    archives = [archive(part) if part in folders else part for part in parts]
    language = ["-x", "c++" if cpp else "c", source, "-x", "none"]
    includes = [f"-I{folder}" for folder in folders]
    command = ["g++" if cpp else "gcc", f"-std={standard}", *WARNINGS, *includes, *options, *language, *archives, "-o", to, *LIBRARIES]
    subprocess.run(command, check=True)
    return to


def archive(folder: pathlib.Path) -> pathlib.Path:
    return next(folder.glob("*.a"))


def run(*command, **options) -> str:
    """What a program prints; it must end well."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def reference(model, **inputs):
    """The first output as onnxruntime computes it, in one row."""
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0].ravel()
