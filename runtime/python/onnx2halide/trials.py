"""Variants of a compiled model's kernels, with other schedule parameters: made by running the generators again, substituted for the model's
own kernels, compared with them and timed within a run. No C++ is compiled."""

import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

import numpy as np

from onnx2halide.__main__ import SIGNALS
from onnx2halide.clocks import RunClock, StepClock
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.compiler import Options, compile_into
from onnx2halide.data import usual_inputs
from onnx2halide.elements import BFLOAT16, dtype_of
from onnx2halide.model import Model

# Enough unless the loops of a schedule unroll into very much code.
GENERATION_SECONDS = 10
# Variants take turns of about TURN_SECONDS, as many as fit into TURNS_SECONDS. One that is HOPELESS times slower than the first is dropped
# from later turns.
TURN_SECONDS, MOST_RUNS = 0.01, 20
LEAST_TURNS, MOST_TURNS, TURNS_SECONDS = 3, 8, 2
HOPELESS = 1.1

Params = dict[str, int]  # values by role, which is the schedule's name of a parameter


@dataclass
class Kernel:
    """One generator class of the model."""

    name: str
    key: str  # of its entry in tuning files
    program: pathlib.Path  # the generator program
    registered: str  # the class's name in that program
    target: str
    inputs: int  # number of buffers
    symbols: int
    outputs: int  # number of buffers
    names: dict[str, str]  # names of the parameters in the class, by role
    value: Params  # with which the model is compiled
    own: Params  # chosen by the schedule
    nodes: list[str] = field(default_factory=list)  # of the first step that calls it
    steps: list[int] = field(default_factory=list)  # that call it


@dataclass(frozen=True)
class Variant:
    """A loaded kernel with certain parameters."""

    params: Params
    object: bytes
    address: int


class Trials:
    """A model whose kernels can be replaced. A context manager, which removes its files."""

    def __init__(self, path: pathlib.Path, options: Options, threads: int):
        self._folder = tempfile.TemporaryDirectory(prefix="onnx2halide-")
        self._place = pathlib.Path(self._folder.name)
        trials = self._place / "trials"
        trials.mkdir()
        manifest = compile_into(self._place, path, options, ["--trials", trials])
        found = json.loads((trials / "trials.json").read_text())
        self.target = found["target"]
        self.kernels = [_kernel(json_kernel, trials, manifest["steps"]) for json_kernel in found["kernels"]]
        self._numbers = itertools.count()
        self._variants: dict[str, list[Variant]] = {kernel.name: [] for kernel in self.kernels}
        self._clock = StepClock()
        self._library = trials / f"{manifest['name']}.so"
        self._model = Model(self._library, threads, trace=self._clock.trace)
        self._inputs = usual_inputs(path.parent, self._model)
        self._pointers = ctypes.CDLL(str(self._library))
        for kernel in self.kernels:
            self.use(kernel, self._load(kernel, kernel.value, trials / f"{kernel.name}.o"))
        self._run_seconds = min(RunClock(self._model, self._inputs)(3))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def variants(self, kernel: Kernel, choices: list[Params], until: float) -> list[Variant]:
        """The kernel with each of these parameters, in this order, without those whose generator fails or takes too long, and without those
        that are identical to an earlier variant."""
        folders = [self._place / str(next(self._numbers)) for _ in choices]
        for folder in folders:
            folder.mkdir()
        generate = [_generator_command(kernel, params, folder) for params, folder in zip(choices, folders)]
        made = _run_together(generate, min(until, time.monotonic() + GENERATION_SECONDS))
        objects = [folder / f"{kernel.registered}.o" for folder in folders]
        return [variant for params, object, is_made in zip(choices, objects, made) if is_made and (variant := self._new(kernel, params, object))]

    def compiled(self, kernel: Kernel) -> Variant:
        """The variant with which the model is compiled."""
        return self._variants[kernel.name][0]

    def use(self, kernel: Kernel, variant: Variant) -> None:
        """Makes later runs of the model call this variant."""
        self._point(kernel, variant.address)

    def fault(self, kernel: Kernel, variant: Variant, reference: Variant) -> str | None:
        """How the results of the variant differ from those of the reference in a run of the model; None if they do not."""
        comparison = _Comparison(kernel, variant, reference)
        self._point(kernel, ctypes.cast(comparison.function, ctypes.c_void_p).value)
        with _signals_wait():
            self._model.run(self._inputs)
        self.use(kernel, reference)
        if comparison.exception:
            raise comparison.exception
        return comparison.fault

    def kernel_seconds(self) -> dict[str, float]:
        """Seconds of each kernel within a run, in all steps that call it: the minimum of several runs."""
        runs = [self._clock.run(self._model, self._inputs) for _ in range(MOST_TURNS)]
        return {kernel.name: min(self._taken(kernel, run) for run in runs) for kernel in self.kernels}

    def _taken(self, kernel: Kernel, run: list[float]) -> float:
        """Seconds of a kernel in a run: of those of its steps that have chosen it."""
        called = self._clock.kernels
        return sum(run[step] for step in kernel.steps if called[step] == kernel.name)

    def seconds(self, kernel: Kernel, variants: list[Variant]) -> list[float]:
        """Seconds of each variant within a run: the minimum of several, in turns. Those that are much slower than the first are dropped."""
        runs = self._runs_of_turn()
        least = [float("inf")] * len(variants)
        for turn in range(self._turns(len(variants))):
            for i, variant in enumerate(variants):
                if turn > 0 and least[i] > HOPELESS * least[0]:
                    continue
                self.use(kernel, variant)
                times = [self._clock.run(self._model, self._inputs) for _ in range(runs)]
                least[i] = min([least[i], *(self._taken(kernel, run) for run in times)])
        return least

    def run_seconds(self, choices: list[list[tuple[Kernel, Variant]]]) -> list[float]:
        """Seconds of a run with each choice of variants: the minimum of several, in turns."""
        least = [float("inf")] * len(choices)
        for _ in range(self._turns(len(choices))):
            for i, choice in enumerate(choices):
                for kernel, variant in choice:
                    self.use(kernel, variant)
                least[i] = min([least[i], *RunClock(self._model, self._inputs)(1 + self._runs_of_turn())])
        return least

    def _runs_of_turn(self) -> int:
        return max(1, min(MOST_RUNS, round(TURN_SECONDS / max(self._run_seconds, 1e-7))))

    def _turns(self, contestants: int) -> int:
        return max(LEAST_TURNS, min(MOST_TURNS, int(TURNS_SECONDS / (contestants * self._runs_of_turn() * self._run_seconds))))

    def _point(self, kernel: Kernel, address: int) -> None:
        ctypes.c_void_p.in_dll(self._pointers, f"{kernel.name}_kernel_pointer").value = address

    def _new(self, kernel: Kernel, params: Params, object: pathlib.Path) -> Variant | None:
        content = object.read_bytes()
        return None if any(variant.object == content for variant in self._variants[kernel.name]) else self._load(kernel, params, object)

    def _load(self, kernel: Kernel, params: Params, object: pathlib.Path) -> Variant:
        library = self._place / f"{next(self._numbers)}.so"
        # The model's library contains the functions that kernels call.
        subprocess.run(["gcc", "-shared", "-o", library, object, self._library], check=True)
        address = ctypes.cast(ctypes.CDLL(str(library))[f"{kernel.name}_kernel"], ctypes.c_void_p).value
        variant = Variant(params, object.read_bytes(), address)
        self._variants[kernel.name].append(variant)
        return variant


def _kernel(found: dict, folder: pathlib.Path, steps: list[dict]) -> Kernel:
    params = found["params"]
    names, value, own = ({param["role"]: param[what] for param in params} for what in ("name", "value", "own"))
    calls = [index for index, step in enumerate(steps) if found["name"] in step["kernels"]]
    plain = {key: found[key] for key in ("name", "key", "registered", "target", "inputs", "symbols", "outputs")}
    return Kernel(program=folder / found["program"], names=names, value=value, own=own, nodes=steps[calls[0]]["nodes"], steps=calls, **plain)


# ---- Generators ----


def _generator_command(kernel: Kernel, params: Params, folder: pathlib.Path) -> list:
    """See generator_main.cpp."""
    values = "".join(f",{kernel.names[role]}={value}" for role, value in params.items())
    return [kernel.program, folder, kernel.target, "object", "", "", f"{kernel.registered}:{kernel.name}{values}"]


def _run_together(commands: list[list], until: float) -> list[bool]:
    """Runs commands, one per core at a time. Returns whether each succeeds in time. Those that still run at the end, or when an exception
    interrupts, are killed."""
    succeeded, cores = [], os.cpu_count() or 1
    for start in range(0, len(commands), cores):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "process_group": 0}
        processes = [subprocess.Popen(command, **quiet) for command in commands[start : start + cores]]
        try:
            for process in processes:
                succeeded.append(_ends_well(process, until))
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    return succeeded


def _ends_well(process: subprocess.Popen, until: float) -> bool:
    try:
        return process.wait(max(0, until - time.monotonic())) == 0
    except subprocess.TimeoutExpired:
        return False


# ---- Comparison of kernels ----


class _Dimension(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("min", "extent", "stride", "flags")]


class _Buffer(ctypes.Structure):
    """halide_buffer_t"""

    _fields_ = [
        ("device", ctypes.c_uint64),
        ("device_interface", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("dimensions", ctypes.c_int32),
        ("dim", ctypes.POINTER(_Dimension)),
        ("padding", ctypes.c_void_p),
    ]

    def array(self) -> np.ndarray:
        """A view of its elements. The rows of a part of another tensor are apart."""
        dtype = dtype_of(BFLOAT16) if self.code == 4 else np.dtype(f"{'iuf'[self.code]}{self.bits // 8}")
        dims = [self.dim[i] for i in reversed(range(self.dimensions))]
        shape = [dim.extent for dim in dims]
        length = 1 + sum((dim.extent - 1) * dim.stride for dim in dims) if all(shape) else 0
        memory = (ctypes.c_uint8 * (length * dtype.itemsize)).from_address(self.host or 0)
        return np.ndarray(shape, dtype, memory, strides=[dim.stride * dtype.itemsize for dim in dims])


@contextlib.contextmanager
def _signals_wait():
    """Defers signal handlers: an exception that one raises in a function called from C would be lost."""
    came = []
    handlers = {number: signal.getsignal(number) for number in SIGNALS if callable(signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda *call: came.append(call))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)


class _Comparison:
    """A kernel that runs both a variant and the reference on the same data, and returns the results of the reference."""

    def __init__(self, kernel: Kernel, variant: Variant, reference: Variant):
        inputs, outputs = ([ctypes.POINTER(_Buffer)] * count for count in (kernel.inputs, kernel.outputs))
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *inputs, *[ctypes.c_int32] * kernel.symbols, *outputs)
        self._reference, self._variant = prototype(reference.address), prototype(variant.address)
        self._outputs = kernel.outputs
        self.function = prototype(self._call)
        self.fault: str | None = None  # the first one
        self.exception: Exception | None = None  # raised later, since it cannot propagate through C

    def _call(self, *arguments) -> int:
        try:
            return self._compare(arguments)
        except Exception as error:
            self.exception = error
            return 0

    def _compare(self, arguments) -> int:
        outputs = [pointer.contents.array() for pointer in arguments[-self._outputs :]]
        before = [output.copy() for output in outputs]  # kernels may work in place
        if self._variant(*arguments) != 0:
            self.fault = self.fault or "fails"
        found = [output.copy() for output in outputs]
        _fill(outputs, before)
        status = self._reference(*arguments)
        self.fault = self.fault or next(filter(None, map(_difference, found, outputs)), None)
        return status


def _fill(arrays: list[np.ndarray], contents: list[np.ndarray]) -> None:
    for array, content in zip(arrays, contents):
        array[...] = content


def _difference(got: np.ndarray, expected: np.ndarray) -> str:
    found = difference(got, expected)
    return found.text() if found.exceeds(default_tolerance(got.dtype), default_floor(got.dtype, [])) else ""
