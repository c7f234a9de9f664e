"""Models of parametrised tests, made on demand, so that conftest.py may compile many of them together."""

import functools
from collections.abc import Callable

import onnx
import onnx2halide


class Recipe:
    """A function that makes a model, always the same one, with its arguments and the compiler's Options."""

    def __init__(self, make: Callable[..., onnx.ModelProto], *arguments, options: dict | None = None, **named):
        self.model = functools.partial(make, *arguments, **named)
        self.options = options or {}

    def compile(self) -> onnx2halide.Model:
        return onnx2halide.compile(self.model(), **self.options)

    def __str__(self):
        words = [_word(value) for value in self.model.args]
        words += [f"{name}={_word(value)}" for name, value in (self.model.keywords | self.options).items()]
        return "-".join(words)


def _word(value) -> str:
    return getattr(value, "__name__", None) or str(value)
