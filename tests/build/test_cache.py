"""Runs of the compiler that share a cache, are killed, or are repeated."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import make_models
import numpy as np
import pytest
from paths import COMPILER



@pytest.fixture
def model(tmp_path):
    (tmp_path / "layer.onnx").write_bytes(make_models.layer().SerializeToString())
    return tmp_path / "layer.onnx"


def start(folder: pathlib.Path, cache: pathlib.Path, **options) -> subprocess.Popen:
    """Compiles ../layer.onnx in a folder, always with the same command line."""
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"ONNX2HALIDE_CACHE": str(cache), "TMPDIR": str(folder)} | options
    command = [COMPILER, "../layer.onnx", "-o", "out", "--emit", "shared_library"]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")


def results(folder: pathlib.Path) -> dict[str, bytes]:
    """Everything in the output folder, by name."""
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir() if path.is_file()}


def entries(cache: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in cache.rglob("*") if path.is_file() and not path.name.startswith(".")}


def test_every_way_makes_identical_bytes(model, tmp_path):
    """From an empty cache, from a full one, and by two compilers that fill one cache together."""
    finish(start(tmp_path / "first", tmp_path / "cache"))
    first = results(tmp_path / "first")
    assert {pathlib.Path(name).suffix for name in first} == {".a", ".c", ".cpp", ".h", ".json", ".pc", ".so", ".weights"}
    finish(start(tmp_path / "second", tmp_path / "cache"))
    assert results(tmp_path / "second") == first

    together = [start(tmp_path / name, tmp_path / "shared") for name in ("third", "fourth")]
    for process in together:
        finish(process)
    assert results(tmp_path / "third") == results(tmp_path / "fourth") == first
    assert entries(tmp_path / "shared").keys() == entries(tmp_path / "cache").keys()


def test_killed_build_leaves_nothing_that_is_trusted(model, tmp_path):
    finish(start(tmp_path / "whole", tmp_path / "cache"))
    expected, whole = results(tmp_path / "whole"), entries(tmp_path / "cache")
    began = time.monotonic()
    finish(start(tmp_path / "timed", tmp_path / "timed_cache"))
    duration = time.monotonic() - began
    for part in (0.1, 0.3, 0.5, 0.7, 0.9):
        folder, cache = tmp_path / f"killed_{part}", tmp_path / f"cache_{part}"
        process = start(folder, cache)
        time.sleep(part * duration)
        os.killpg(process.pid, signal.SIGKILL)  # the process group that this test started
        process.wait()
        process.stderr.close()
        # What lies in the cache is whole, and the same as without the kill.
        for name, content in entries(cache).items():
            assert whole[name] == content
        finish(start(folder, cache))
        assert results(folder) == expected


def test_half_written_entries_are_not_read(model, tmp_path):
    """A killed compiler may leave part of any file in the cache, under a temporary name."""
    finish(start(tmp_path / "first", tmp_path / "cache"))
    cut = tmp_path / "cut"
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            place = cut / path.relative_to(tmp_path / "cache")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.with_name(f".{path.name}.1.0").write_bytes(path.read_bytes()[:100])
    finish(start(tmp_path / "second", cut))
    assert results(tmp_path / "second") == results(tmp_path / "first")


def test_size_of_the_cache_is_bounded(model, tmp_path):
    limit = 20_000
    finish(start(tmp_path / "first", tmp_path / "cache"))
    size = sum(map(len, entries(tmp_path / "cache").values()))
    assert size > limit  # or there is nothing to trim
    shutil.rmtree(tmp_path / "cache")
    finish(start(tmp_path / "second", tmp_path / "cache", ONNX2HALIDE_CACHE_SIZE=str(limit)))
    assert results(tmp_path / "second") == results(tmp_path / "first")


def test_cached_host_programs_start_no_compiler(model, tmp_path):
    """The C compiler then only links, and embeds the weights."""
    log, logging_gcc = tmp_path / "log", tmp_path / "logging-gcc"
    logging_gcc.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec gcc "$@"\n')
    logging_gcc.chmod(0o755)

    def compiled() -> list[str]:
        log.write_text("")
        command = [COMPILER, model, "-o", tmp_path / "out", "--cc", logging_gcc]
        subprocess.run(command, check=True, env=os.environ | {"ONNX2HALIDE_CACHE": str(tmp_path / "cache")})
        return [source for call in log.read_text().splitlines() if "-std=c11" in call for source in call.split() if source.endswith(".c")]

    assert len([source for source in compiled() if source.endswith("layer.c")]) == 1
    assert compiled() == []


def test_usual_constants_are_folded_without_building_kernels(tmp_path):
    """The compiler's own build has made those kernels; what remains are the model's and two host programs."""
    nodes = [make_models.node("Conv", "picture W B", "sum", pads=[1, 1, 1, 1]), make_models.node("Relu", "sum", "y")]
    weights = {"W": np.arange(128 * 128 * 9, dtype=np.float32).reshape(128, 128, 3, 3), "B": np.arange(128, dtype=np.float32)}
    shape = [1, 128, 56, 56]
    model = make_models.model(nodes, [("picture", make_models.FLOAT, shape)], [("y", make_models.FLOAT, shape)], weights)
    (tmp_path / "layer.onnx").write_bytes(model.SerializeToString())
    command = [COMPILER, tmp_path / "layer.onnx", "-o", tmp_path / "out"]
    subprocess.run(command, check=True, env=os.environ | {"ONNX2HALIDE_CACHE": str(tmp_path / "cache")})
    kernels = json.loads((tmp_path / "out" / "layer.json").read_text())["kernels"]
    assert len(entries(tmp_path / "cache")) == len(kernels) + 2
