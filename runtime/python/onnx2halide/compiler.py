"""Finds the compiler, runs it, and keeps the shared libraries that it makes."""

import functools
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import warnings
from dataclasses import dataclass

USAGE = 2  # the compiler's exit status for wrong options
HELP_HINT = "Run with --help for more information.\n"

_runtime = pathlib.Path(__file__).resolve().parents[2]


class CompileError(Exception):
    """A model cannot be compiled; the message is the compiler's."""


class UsageError(CompileError):
    """An option is wrong, whatever the model."""


@dataclass(frozen=True)
class Options:
    """The options of the compiler on which a library depends."""

    dims: tuple[tuple[str, int | str], ...] = ()  # numbers, or bounds as --dim takes them
    target: str = "host"
    schedule: str = "default"
    until: str | None = None
    all_values: bool = False
    convolution: str = "auto"
    pipeline: str = "kernels"
    tuning: str | None = None  # a file

    def flags(self) -> list[str]:
        flags = ["--target", self.target, "--schedule", self.schedule]
        for name, size in self.dims:
            flags += ["--dim", f"{name}={size}"]
        if self.convolution != "auto":
            flags += ["--convolution", self.convolution]
        if self.pipeline != "kernels":
            flags += ["--pipeline", self.pipeline]
        if self.tuning is not None:
            flags += ["--tuning", self.tuning]
        if self.until is not None:
            flags += ["--until", self.until]
        return flags + ["--all-values"] * self.all_values


class Source:
    """A model's bytes, its name, and its path if it has one."""

    def __init__(self, model, name: str | None = None):
        """`model` is a path, bytes or a ModelProto."""
        self.path = None
        if isinstance(model, (str, os.PathLike)):
            self.bytes = pathlib.Path(model).read_bytes()
            self.path = pathlib.Path(model).resolve()
            name = name or self.path.stem
        elif isinstance(model, (bytes, bytearray, memoryview)):
            self.bytes = bytes(model)
        elif hasattr(model, "SerializeToString") and hasattr(model, "graph"):
            self.bytes = model.SerializeToString(deterministic=True)
            name = name or model.graph.name
        else:
            raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")
        self.name = _file_stem(name or "model")

    @functools.cached_property
    def external_files(self) -> list[pathlib.Path]:
        """The files beside the model that contain its weights."""
        if self.path is None:
            return []
        # The bytes are scanned rather than parsed: parsing holds a second copy of all weights, fails on files that are for the compiler to
        # refuse, and needs a walk over the tensors of branches, functions and attributes. A chance match names no file that exists and
        # does no harm. An entry of external_data is a message whose field 1 is the key "location" and whose field 2 is the file's
        # name, after one or two bytes of length.
        places = re.finditer(rb"\n\x08location\x12([\x80-\xff]?[\x00-\x7f])", self.bytes)
        names = set()
        for place in places:
            length = sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(place.group(1)))
            names.add(self.bytes[place.end() : place.end() + length])
        return [self.path.parent / os.fsdecode(name) for name in sorted(names)]


def libraries(sources: list[Source], options: Options, cache=None, jobs: int | None = None):
    """The shared library of each model: its path (`KEY.NAME.so`), or a CompileError. Those missing in the cache folder are compiled
    together. Any number of processes may share the cache. By default it is in the user's cache folder, from which the compiler evicts
    what was least recently used."""
    cache = pathlib.Path(cache) if cache else _cache_folder() / "models"
    compiler = find_compiler()
    keys = [_key(source, options, compiler) for source in sources]
    results = {key: _cached(cache, key) for key in keys}
    missing = {key: source for key, source in zip(keys, sources) if results[key] is None}
    in_place = {key: source for key, source in missing.items() if source.external_files}
    together = {key: source for key, source in missing.items() if key not in in_place}
    batches = [[item] for item in in_place.items()] + ([list(together.items())] if together else [])
    for batch in batches:
        results |= _build(compiler, batch, options, cache, jobs)
    return [results[key] for key in keys]


def find_compiler() -> pathlib.Path:
    """$ONNX2HALIDE_COMPILER, else the build of the checkout that this package belongs to, else the one on the PATH."""
    if named := os.environ.get("ONNX2HALIDE_COMPILER"):
        return pathlib.Path(named)
    built = _runtime.parent / "build" / "onnx2halide"
    if built.exists():
        return built
    if installed := shutil.which("onnx2halide"):
        return pathlib.Path(installed)
    raise FileNotFoundError(f"the compiler is not at {built}, nor on the path; set $ONNX2HALIDE_COMPILER")


def identity(compiler: pathlib.Path) -> str:
    """A hash of the compiler, of what goes into every library (the program around generators, runtime and templates), and of this
    processor, which `host` stands for."""
    templates = _runtime.parent / "templates"
    files = [compiler, *compiler.parent.glob("libonnx2halide_generator_main.a"), *sorted([*_runtime.glob("*.[ch]"), *_runtime.glob("*.cc"), *templates.glob("*.*")])]
    return _identity(tuple((file, file.stat().st_mtime_ns) for file in files))


@functools.lru_cache
def _identity(files) -> str:
    digest = hashlib.sha256()
    for file, _ in files:
        digest.update(file.read_bytes())
    digest.update(_processor().encode())
    return digest.hexdigest()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
    except OSError:
        return platform.machine()


def _file_stem(text: str) -> str:
    """Turns a text into the stem of a file name, from which the compiler derives the names of C functions."""
    return re.sub(r"[^A-Za-z0-9_]", "_", text)[:100]


def _cache_folder() -> pathlib.Path:
    """The folder that the compiler uses, by the same rule."""
    if own := os.environ.get("ONNX2HALIDE_CACHE"):
        return pathlib.Path(own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return pathlib.Path(xdg) / "onnx2halide"
    if home := os.environ.get("HOME"):
        return pathlib.Path(home) / ".cache" / "onnx2halide"
    return pathlib.Path(tempfile.gettempdir()) / f"onnx2halide-{os.getuid()}"


def _key(source: Source, options: Options, compiler: pathlib.Path) -> str:
    digest = hashlib.sha256()
    for part in (identity(compiler), source.name, *options.flags()):
        digest.update(part.encode() + b"\0")
    for file in (options.schedule, options.tuning):
        if file and pathlib.Path(file).is_file():
            digest.update(pathlib.Path(file).read_bytes() + b"\0")
    for file in source.external_files:
        state = file.stat() if file.exists() else None
        digest.update(f"{file} {state and (state.st_size, state.st_mtime_ns)}\0".encode())
    digest.update(source.bytes)
    return digest.hexdigest()


def _cached(cache: pathlib.Path, key: str) -> pathlib.Path | None:
    for library in (cache / key[:2]).glob(f"{key}.*.so"):
        try:
            os.utime(library)
        except FileNotFoundError:  # another process has just removed it
            return None
        return library
    return None


def _store(library: pathlib.Path, cache: pathlib.Path, key: str) -> pathlib.Path:
    folder = cache / key[:2]
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{key}.{library.name}"
    part = folder / f"{key}.{os.getpid()}.part"
    shutil.copyfile(library, part)
    os.replace(part, place)
    return place


def _build(compiler, batch: list[tuple[str, Source]], options: Options, cache: pathlib.Path, jobs: int | None) -> dict:
    """Compiles the models of a batch with one run of the compiler. Returns for each key the library in the cache, or a CompileError."""
    with tempfile.TemporaryDirectory(prefix="onnx2halide-") as temporary:
        folder = pathlib.Path(temporary)
        models = _model_files(folder / "models", [source for _, source in batch])
        command = [compiler, "compile", *models, "-o", folder / "out", "--emit", "shared_library", *options.flags()]
        if jobs:
            command += ["-j", str(jobs)]
        status, printed = run_compiler(command, folder)
        if status == USAGE:
            error = UsageError(printed.removesuffix(HELP_HINT).strip())
            return {key: error for key, _ in batch}
        made = _libraries_in(folder / "out")
        messages = _messages(printed, models)
        results = {}
        for (key, _), model in zip(batch, models):
            if model.name in made:
                results[key] = _store(made[model.name], cache, key)
                if model.name in messages:
                    warnings.warn(messages[model.name])
            elif model.name in messages:
                results[key] = CompileError(messages[model.name])
    unexplained = [item for item in batch if item[0] not in results]
    if len(batch) == 1 and unexplained:
        return {unexplained[0][0]: _crash(models[0], status, printed)}
    # One model has crashed the compiler: find it by bisection.
    for half in (unexplained[: len(unexplained) // 2], unexplained[len(unexplained) // 2 :]) if len(unexplained) > 1 else (unexplained,):
        if half:
            results |= _build(compiler, half, options, cache, jobs)
    return results


def _crash(model: pathlib.Path, status: int, printed: str) -> CompileError:
    return CompileError(f"{model.name}: the compiler ended with status {status}\n{printed}".strip())


def run_compiler(command: list, folder: pathlib.Path) -> tuple[int, str]:
    """Runs the compiler with its temporary files in `folder`. Returns its exit status and its stderr. If an exception interrupts it, such as
    one from a signal handler, the compiler and its children are terminated first."""
    environment = os.environ | {"TMPDIR": str(folder), "ONNX2HALIDE_CACHE": str(_cache_folder())}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **streams, text=True, errors="replace", env=environment, process_group=0) as process:
        try:
            _, printed = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    return process.returncode, printed


def compile_into(folder: pathlib.Path, model: pathlib.Path, options: Options, further: list) -> dict:
    """Compiles a model into a folder, with `further` arguments, and returns the manifest. Passes on the compiler's warnings."""
    status, printed = run_compiler([find_compiler(), "compile", model, "-o", folder, *options.flags(), *further], folder)
    if status == USAGE:
        raise UsageError(printed.removesuffix(HELP_HINT).strip())
    if status < 0 or (status != 0 and not printed.strip()):
        raise _crash(model, status, printed)
    if status != 0:
        raise CompileError(printed.strip())
    if printed:
        warnings.warn(printed.strip())
    return json.loads(next(folder.glob("*.json")).read_text())


def _model_files(folder: pathlib.Path, sources: list[Source]) -> list[pathlib.Path]:
    """A file for each model, with distinct names. A single model that has a file is compiled where it is, beside its external data."""
    if len(sources) == 1 and sources[0].path:
        return [sources[0].path]
    folder.mkdir()
    files = []
    for source in sources:
        name, count = source.name, 1
        while (file := folder / f"{name}.onnx").exists():
            count += 1
            name = f"{source.name}_{count}"
        file.write_bytes(source.bytes)
        files.append(file)
    return files


def _libraries_in(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The libraries that the compiler has made, by model file; the manifests contain the names that it chose."""
    manifests = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return {manifest["model"]: folder / f"{manifest['name']}.so" for manifest in manifests}


def _messages(text: str, models: list[pathlib.Path]) -> dict[str, str]:
    """The compiler's messages, of one or more lines each, by model file. A message starts with the path of its file, which is replaced by the
    file's name, since it may be temporary. Several messages about one file are joined."""
    messages, current = {}, None
    for line in text.splitlines():
        model = next((model for model in models if line.startswith(f"{model}: ")), None)
        if model:
            current = model.name
            line = current + line.removeprefix(str(model))
        if current:
            messages[current] = f"{messages[current]}\n{line}" if current in messages else line
    return messages
