"""Compiles the models of the suite, many with one run of the compiler."""

import json
import os
import pathlib
import shutil

import suite
from onnx2halide.compiler import CompileError, Options, Source, find_compiler, identity, libraries

MODELS_A_RUN = 100
_KEPT = 2  # number of compilers whose results are kept


class Compiled:
    """A cache of the compiler's result for each case, until the compiler changes. Any number of processes may share it."""

    def __init__(self, target: str):
        self._options = Options(target=target)
        self.folder = suite.BUILD / f"compiled-{target}-{identity(find_compiler())[:16]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        os.utime(self.folder)
        others = sorted(suite.BUILD.glob(f"compiled-{target}-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for old in others[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)

    def error(self, case: str, batch: dict[str, pathlib.Path]) -> str | None:
        """Compiles the models of a batch (folders by name). Returns why the case's model cannot be compiled, or None."""
        with suite.locked(self.folder / f"{min(batch)}.lock"):
            missing = {name: folder for name, folder in batch.items() if not self._result(name).exists()}
            if missing:
                self._compile(missing)
        return json.loads(self._result(case).read_text())

    def _compile(self, cases: dict[str, pathlib.Path]) -> None:
        sources = [Source(folder / "model.onnx", name) for name, folder in cases.items()]
        for name, result in zip(cases, libraries(sources, self._options, self.folder, os.cpu_count())):
            part = self._result(name).with_suffix(".part")
            part.write_text(json.dumps(str(result) if isinstance(result, CompileError) else None))
            part.rename(self._result(name))

    def _result(self, case: str) -> pathlib.Path:
        return self.folder / f"{case}.json"
