"""Models of parametrised tests are compiled many with one run of the compiler, which takes far less time than one by one."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest
from onnx2halide.compiler import Options, Source, libraries

MODELS_A_RUN = 32


def parameter_with_model(item):
    """The parameter of a test that says, as `model()`, what the test compiles; None where there is none."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((value for value in parameters if callable(getattr(value, "model", None))), None)


@pytest.fixture(scope="session")
def model_batches(request) -> dict[str, list]:
    """By the test's id, the parameters whose models are compiled with its own. Every worker of the run cuts them alike."""
    selected = [(item.nodeid, value) for item in request.session.items if (value := parameter_with_model(item))]
    result = {}
    for start in range(0, len(selected), MODELS_A_RUN):
        batch = selected[start : start + MODELS_A_RUN]
        values = [value for _, value in batch]
        result |= {nodeid: values for nodeid, _ in batch}
    return result


@pytest.fixture(scope="session")
def compiled_batches() -> set[int]:
    return set()


@pytest.fixture(autouse=True)
def compiled_together(request, model_batches, compiled_batches) -> None:
    """Fills the cache that the test's own call of the compiler looks into. What cannot be compiled is the test's own to tell."""
    batch = model_batches.get(request.node.nodeid, [])
    if not batch or id(batch) in compiled_batches:
        return
    compiled_batches.add(id(batch))
    models = []
    for value in batch:
        try:
            models.append(value.model())
        except Exception:  # noqa: S112, BLE001, the test that asks for it fails
            continue
    # The other worker, which wants the same batch at the same time, waits.
    with open(Path(tempfile.gettempdir()) / "onnx2halide-test-batches.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        libraries([Source(model) for model in models], Options(), jobs=os.cpu_count())
