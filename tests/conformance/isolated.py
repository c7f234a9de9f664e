"""Runs cases in a separate process, so that a kernel that crashes fails only its own case."""

import multiprocessing
import pathlib
import signal

SECONDS_A_CASE = 120


class IsolatedRunner:
    """A process that runs one case after another. If a case kills it or takes too long, a new process takes over."""

    def __init__(self):
        self._process = None

    def run(self, folder: pathlib.Path, cache: pathlib.Path, target: str) -> str | None:
        """Why the case fails, or None."""
        if self._process is None:
            self._start()
        self._pipe.send((folder, cache, target))
        try:
            if self._pipe.poll(SECONDS_A_CASE):
                return self._pipe.recv()
            why = f"takes longer than {SECONDS_A_CASE} s"
        except EOFError:
            self._process.join()
            why = f"the run ends with {_ending(self._process.exitcode)}"
        self.stop()
        return why

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"status {code}"


def _serve(pipe) -> None:
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(_run_case(*case))


def _assert_similar(expected, got, **tolerances) -> None:
    """Compares tensors as the suite does, and sequences item by item: the suite's own comparison mistakes a tensor in a sequence for a list
    of tensors."""
    from onnx.backend.test.runner import Runner

    if expected is None or isinstance(expected, list):
        assert type(got) is type(expected), f"the result is of type {type(got).__name__}, expected {type(expected).__name__}"
    if not isinstance(expected, list):
        return None if expected is None else Runner.assert_similar_outputs([expected], [got], **tolerances)
    assert len(got) == len(expected), f"there are {len(got)} values, expected {len(expected)}"
    for expected_item, item in zip(expected, got):
        _assert_similar(expected_item, item, **tolerances)


def _run_case(folder: pathlib.Path, cache: pathlib.Path, target: str) -> str | None:
    import onnx2halide.backend
    import suite

    try:
        prepared = onnx2halide.backend.prepare(folder / "model.onnx", "CPU", cache=cache, name=folder.name, target=target)
        for inputs, expected in suite.data_sets(folder):
            _assert_similar(expected, list(prepared.run(inputs)), **suite.tolerances(folder))
    except Exception as error:  # any error is the result of this case
        return f"{type(error).__name__}: {error}"
    return None
