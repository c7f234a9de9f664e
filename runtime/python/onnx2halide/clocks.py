"""Wraps the C library libonnx2halide_bench, which times runs and kernels and measures the machine's limits."""

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
    """Times each kernel call of a run, up to `most` calls. Pass its `trace` to Model(trace=...)."""

    def __init__(self, most: int = 1 << 16):
        self._steps = (_StepTime * most)()
        self._times = _StepTimes(self._steps, 0, most, 0, 0)
        function = ctypes.cast(_library().onnx2halide_trace_step, ctypes.c_void_p)
        self.trace = function.value, ctypes.addressof(self._times)

    def run(self, model: Model, inputs, repetitions: int = 0) -> list[float]:
        """Seconds of each call in one run; with `repetitions`, the minimum of that many consecutive executions, with warm caches."""
        self._times.repetitions = repetitions
        function, session, *values = model.prepared(inputs)
        _library().onnx2halide_start_trace(ctypes.byref(self._times))
        if function(session, *values) != 0:
            raise RuntimeError(model.error())
        return [(step.warm if repetitions else step.first) * 1e-9 for step in self._steps[: self._times.count]]

    @property
    def kernels(self) -> list[str]:
        """The kernels that the last run called."""
        return [step.kernel.decode() for step in self._steps[: self._times.count]]


@dataclass(frozen=True)
class Traffic:
    """Bytes per second that one core reads and writes in a working set that fits into a part of a level of the memory hierarchy."""

    level: str  # L1, L2, L3 or memory
    bytes: int  # size of the part
    reads: float
    writes: float


@dataclass(frozen=True)
class Machine:
    """The measured limits of one core."""

    flops: float  # float32 multiply-adds per second, times two
    traffic: tuple[Traffic, ...]  # from the smallest part of the first level to memory

    def least_seconds(self, flops: float, bytes_read: float, bytes_written: float, threads: int = 1) -> tuple[float, str]:
        """A lower bound on a kernel's time, and what limits it: `FMA`, or the level of memory that holds the bytes. Each core has caches of
        its own; memory is shared."""
        touched = (bytes_read + bytes_written) / threads
        level = next((level for level in self.traffic if touched <= level.bytes), self.traffic[-1])
        cores = 1 if level.level == "memory" else threads
        moving = (bytes_read / level.reads + bytes_written / level.writes) / cores
        return max((flops / self.flops / threads, "FMA"), (moving, level.level))


@functools.cache
def machine() -> Machine:
    """Measures for about a second."""
    sizes = _cache_sizes()
    traffic = []
    below = 0
    for level, size in sizes.items():
        traffic += [_traffic(level, part, part * 3 // 4) for part in _parts(size, below)]
        below = size
    traffic.append(_traffic("memory", 1 << 62, max([64 << 20, *(4 * size for size in sizes.values())])))
    return Machine(_library().onnx2halide_peak_flops(), tuple(traffic))


def _cache_sizes() -> dict[str, int]:
    """The size of each level of the first core's data caches, from Linux's sysfs; empty elsewhere. (On some machines glibc's sysconf
    reports a multiple of the third level.)"""
    sizes = {}
    for cache in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            sizes[f"L{level}"] = int(size.removesuffix("K")) * 1024
    return sizes


def _parts(size: int, below: int) -> list[int]:
    """A level's size, after its half, quarter and so on, of which the level below holds no more than a third. Other programs may fill much
    of a shared level, which small working sets then use at its full rate, and large ones not."""
    parts = [size]
    while below > 0 and parts[0] >= 8 * below:
        parts.insert(0, parts[0] // 2)
    return parts


def _traffic(level: str, size: int, working_set: int) -> Traffic:
    reads, writes = ctypes.c_double(), ctypes.c_double()
    if _library().onnx2halide_peak_traffic(ctypes.c_size_t(working_set), ctypes.byref(reads), ctypes.byref(writes)) != 0:
        raise MemoryError(f"no memory for a working set of {working_set} bytes")
    return Traffic(level, size, reads.value, writes.value)
