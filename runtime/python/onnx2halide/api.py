"""Compiles models to Model objects."""

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Mapping

from onnx2halide.compiler import CompileError, Options, Source, libraries
from onnx2halide.model import Model


def compile(
    model,
    dims: Mapping[str, int | str] | None = None,
    target: str = "host",
    threads: int = 1,
    *,
    schedule: str = "default",
    convolution: str = "auto",
    pipeline: str = "kernels",
    tuning: str | None = None,
    until: str | None = None,
    name: str | None = None,
    cache=None,
) -> Model:
    """Compiles a model and loads it.

    model     a path, bytes or a ModelProto
    dims      numbers, or bounds such as "1..32", for open dims, by name or as "INPUT:AXIS"
    target    a Halide target
    threads   the number of threads of a run; 0: one per core
    schedule  "default", "naive", one of Halide's autoschedulers ("auto:mullapudi2016", "auto:adams2019", "auto:li2018"), or a file of
              schedules as the compiler's --schedule takes it
    convolution  the algorithm of convolutions: "auto", "direct", or "winograd", whose transforms round more
    pipeline  "kernels", or "whole" for a single kernel, if the model is small and of fixed shapes
    tuning    a file of schedule parameters, as written by `onnx2halide tune`
    until     the name of a node or value at which the model ends; it becomes the output
    name      the model's name in messages; default: that of its file or graph
    cache     a folder for compiled models; default: one in the user's cache folder

    A model that was compiled before with the same options is taken from the cache. Raises CompileError with the compiler's message. Warns
    about kernels for which an autoscheduler fails."""
    source = Source(model, name)
    options = _options(dims, target, schedule, convolution, pipeline, until, tuning)
    result = libraries([source], options, cache)[0]
    return _load(source, result, options, threads, cache)


def compile_many(
    models: Iterable,
    dims: Mapping[str, int | str] | None = None,
    target: str = "host",
    threads: int = 1,
    *,
    schedule: str = "default",
    convolution: str = "auto",
    pipeline: str = "kernels",
    cache=None,
    jobs: int | None = None,
    return_exceptions: bool = False,
) -> list:
    """Compiles models together, which is faster than one by one, with up to `jobs` processes (default: one per core). If a model cannot be
    compiled or loaded, its exception takes its place in the list with `return_exceptions`, and is raised without."""
    sources = []
    for model in models:
        try:
            sources.append(Source(model))
        except (OSError, TypeError) as error:
            if not return_exceptions:
                raise
            sources.append(error)
    options = _options(dims, target, schedule, convolution, pipeline)
    results = iter(libraries([source for source in sources if isinstance(source, Source)], options, cache, jobs))
    loaded = []
    for source in sources:
        if not isinstance(source, Source):
            loaded.append(source)
            continue
        try:
            loaded.append(_load(source, next(results), options, threads, cache))
        except (CompileError, OSError, RuntimeError) as error:
            if not return_exceptions:
                raise
            loaded.append(error)
    return loaded


def _options(dims, target, schedule, convolution, pipeline, until=None, tuning=None) -> Options:
    return Options(tuple(sorted((dims or {}).items())), target, schedule, until, convolution=convolution, pipeline=pipeline, tuning=tuning)


def _load(source: Source, result, options: Options, threads: int, cache) -> Model:
    if isinstance(result, CompileError):
        raise result
    return Model(result, threads, functools.partial(_load_all_values, source, options, threads, cache), name=source.name)


def _load_all_values(source: Source, options: Options, threads: int, cache) -> Model:
    """Loads the same model with every value of its graph as an output."""
    # A schedule file is for the kernels of the model as it is; other kernels compute all its values.
    schedule = "default" if pathlib.Path(options.schedule).is_file() else options.schedule
    exposed = dataclasses.replace(options, all_values=True, schedule=schedule)
    result = libraries([source], exposed, cache)[0]
    if isinstance(result, CompileError):
        raise result
    return Model(result, threads, name=source.name)
