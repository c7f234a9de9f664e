"""The C library libonnx2halide_bench: times of runs and of kernels, and what the machine can do at most."""

import ctypes
import functools
import pathlib
from dataclasses import dataclass

from onnx2halide.model import Model


class _StepTime(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("first", ctypes.c_int64), ("warm", ctypes.c_int64), ("repetitions", ctypes.c_int64)]


class _StepTimes(ctypes.Structure):
    _fields_ = [
        ("steps", ctypes.POINTER(_StepTime)),
        ("count", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("repetitions", ctypes.c_int64),
        ("since", ctypes.c_int64),
    ]


@functools.cache
def _library() -> ctypes.CDLL:
    path = pathlib.Path(__file__).resolve().parents[3] / "build" / "libonnx2halide_bench.so"
    library = ctypes.CDLL(str(path))
    library.onnx2halide_peak_flops.restype = ctypes.c_double
    return library


class RunClock:
    """Times runs of a model on one set of inputs, from C."""

    def __init__(self, model: Model, inputs):
        self._model = model
        self._call = model.prepared(inputs)

    def __call__(self, count: int) -> list[float]:
        """Seconds of each of `count` runs."""
        times = (ctypes.c_int64 * count)()
        function, session, *values = self._call
        if _library().onnx2halide_time_runs(function, session, *values, count, times) != 0:
            raise RuntimeError(self._model.error())
        return [time * 1e-9 for time in times]


class StepClock:
    """Notes what each kernel of a run takes, of the first `most` that it calls. Its `trace` is for Model(trace=...)."""

    def __init__(self, most: int = 1 << 16):
        self._steps = (_StepTime * most)()
        self._times = _StepTimes(self._steps, 0, most, 0, 0)
        function = ctypes.cast(_library().onnx2halide_trace_step, ctypes.c_void_p)
        self.trace = function.value, ctypes.addressof(self._times)

    def run(self, model: Model, inputs, repetitions: int = 0) -> list[float]:
        """Seconds of each call of one run; with `repetitions`, the least of so many executions in a row, with warm caches."""
        self._times.repetitions = repetitions
        function, session, *values = model.prepared(inputs)
        _library().onnx2halide_start_trace(ctypes.byref(self._times))
        if function(session, *values) != 0:
            raise RuntimeError(model.error())
        return [(step.warm if repetitions else step.first) * 1e-9 for step in self._steps[: self._times.count]]

    @property
    def kernels(self) -> list[str]:
        """Of the last run's calls."""
        return [step.kernel.decode() for step in self._steps[: self._times.count]]


@dataclass(frozen=True)
class Traffic:
    """Bytes a second that one core reads and writes in a working set of `bytes`."""

    level: str  # L1, L2, L3 or memory
    bytes: int  # what the level holds
    reads: float
    writes: float


@dataclass(frozen=True)
class Machine:
    """What one core can do at most, as measured."""

    flops: float  # float32 multiply-adds a second, times two
    traffic: tuple[Traffic, ...]  # from the smallest level to memory

    def least_seconds(self, flops: float, bytes_read: float, bytes_written: float, threads: int = 1) -> tuple[float, str]:
        """No kernel can take less, and what bounds it: `FMA`, or the level that holds the bytes. Caches but the last are each core's
        own; memory is shared."""
        touched = (bytes_read + bytes_written) / threads
        level = next((level for level in self.traffic if touched <= level.bytes), self.traffic[-1])
        cores = 1 if level.level == "memory" else threads
        moving = (bytes_read / level.reads + bytes_written / level.writes) / cores
        return max((flops / self.flops / threads, "FMA"), (moving, level.level))


@functools.cache
def machine() -> Machine:
    """Measures for about a second."""
    sizes = _cache_sizes()
    traffic = [_traffic(level, size, size * 3 // 4) for level, size in sizes.items()]
    traffic.append(_traffic("memory", 1 << 62, max([64 << 20, *(4 * size for size in sizes.values())])))
    return Machine(_library().onnx2halide_peak_flops(), tuple(traffic))


def _cache_sizes() -> dict[str, int]:
    """Bytes of each level of the first core's data caches, as Linux tells them; nothing elsewhere. (glibc's sysconf multiplies the third
    level of some machines.)"""
    sizes = {}
    for cache in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            sizes[f"L{level}"] = int(size.removesuffix("K")) * 1024
    return sizes


def _traffic(level: str, size: int, working_set: int) -> Traffic:
    reads, writes = ctypes.c_double(), ctypes.c_double()
    if _library().onnx2halide_peak_traffic(ctypes.c_size_t(working_set), ctypes.byref(reads), ctypes.byref(writes)) != 0:
        raise MemoryError(f"no memory for a working set of {working_set} bytes")
    return Traffic(level, size, reads.value, writes.value)
