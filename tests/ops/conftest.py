"""Compiles the models of many parametrised tests in one run of the compiler, which takes far less time than one by one."""

import fcntl
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from onnx2halide.compiler import Options, Source, libraries

MODELS_A_RUN = 32


def models_of(item) -> list:
    """Those parameters of a test whose `model()` is what it compiles, and whose `options`, if there are any, are the compiler's
    Options."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [value for value in parameters if callable(getattr(value, "model", None))]


@dataclass(eq=False)
class Batch:
    """What one run of the compiler compiles: parameters with their models, and the options that they share."""

    options: Options
    values: list

    def compile(self) -> None:
        """Errors are left for the test itself to report."""
        models = []
        for value in self.values:
            try:
                models.append(value.model())
            except Exception:  # noqa: S112, BLE001, the test that asks for it fails
                continue
        libraries([Source(model) for model in models], self.options, jobs=os.cpu_count())


@pytest.fixture(scope="session")
def model_batches(request) -> dict[str, list[Batch]]:
    """The batches of each test's models, by the test's id. Every worker divides the models in the same way."""
    last, result = {}, {}
    for item in request.session.items:
        for value in models_of(item):
            options = Options(**getattr(value, "options", {}))
            batch = last.get(options)
            if batch is None or len(batch.values) == MODELS_A_RUN:
                batch = last[options] = Batch(options, [])
            batch.values.append(value)
            result.setdefault(item.nodeid, []).append(batch)
    return result


@pytest.fixture(scope="session")
def compiled_batches() -> set[Batch]:
    return set()


@pytest.fixture(autouse=True)
def compiled_together(request, model_batches, compiled_batches) -> None:
    """Fills the cache that the test's own call of the compiler reads."""
    for batch in model_batches.get(request.node.nodeid, []):
        if batch in compiled_batches:
            continue
        compiled_batches.add(batch)
        # Another worker that needs the same batch at the same time waits.
        with open(Path(tempfile.gettempdir()) / "onnx2halide-test-batches.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            batch.compile()
