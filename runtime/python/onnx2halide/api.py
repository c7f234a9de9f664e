"""Compiling models to Model objects."""

import dataclasses
import functools
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
    dims      numbers, or bounds such as "1..32", for dims that the model leaves open, by name or as "INPUT:AXIS"
    target    a Halide target
    threads   how many threads a run may use; 0: one a core
    schedule  "default", "naive", one of Halide's autoschedulers ("auto:mullapudi2016", "auto:adams2019", "auto:li2018"), or a file of
              schedules as the compiler's --schedule takes it
    convolution  how convolutions compute: "auto", "direct", or "winograd", whose transforms round more
    pipeline  "kernels", or "whole" for one kernel that is the whole model, which must be small and of fixed shapes
    tuning    a file of parameters of schedules, as `onnx2halide tune` writes it
    until     the name of a node or value: the model ends there, and what it makes is the output
    name      of the model in messages; by default its file's or graph's
    cache     a folder for compiled models; by default in the user's cache folder

    A model that was compiled before with the same options comes from the cache. Raises CompileError with the compiler's message. Warns
    of kernels that an autoscheduler fails on."""
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
    """Compiles models together, which takes less time than one by one, on up to `jobs` processes (by default one a core). With
    `return_exceptions`, a model that cannot be compiled or loaded leaves its exception in the list; else the first of these is raised."""
    sources = [Source(model) for model in models]
    options = _options(dims, target, schedule, convolution, pipeline)
    loaded = []
    for source, result in zip(sources, libraries(sources, options, cache, jobs)):
        try:
            loaded.append(_load(source, result, options, threads, cache))
        except (CompileError, RuntimeError) as error:
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
    """The same model with every value of its graph as an output."""
    exposed = dataclasses.replace(options, all_values=True)
    result = libraries([source], exposed, cache)[0]
    if isinstance(result, CompileError):
        raise result
    return Model(result, threads, name=source.name)
