"""Compiled models: shared libraries behind the C API, with numpy arrays for tensors."""

import ctypes
import pathlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnx2halide.elements import dtype_of, is_packed, pack, stored, unpack


@dataclass(frozen=True)
class Port:
    """What a model says of one of its inputs or outputs."""

    name: str
    dtype: np.dtype
    shape: tuple[int | None, ...]  # None where the model leaves a dim open

    def array(self, value) -> np.ndarray:
        """The value as an array that this port takes, row-major. Plain Python numbers and lists take its dtype; arrays must have it,
        or hold plain bytes of its size, as numpy's files do for types that are not numpy's own.
        Raises TypeError or ValueError where it does not fit."""
        try:
            array = np.asarray(value, dtype=None if hasattr(value, "dtype") else self.dtype, order="C")
        except (TypeError, ValueError) as error:
            raise type(error)(f"input {self.name!r} cannot be made an array of {self.dtype}: {error}") from None
        array = array if array.dtype == self.dtype else stored(array, self.dtype)
        if array.dtype != self.dtype:
            raise TypeError(f"input {self.name!r} has elements of type {array.dtype}, expected {self.dtype}")
        if array.shape != self.shape and not self._takes(array.shape):
            raise ValueError(f"input {self.name!r} has shape {list(array.shape)}, expected {list(self.shape)}")
        return array

    def _takes(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.shape) and all(own is None or own == size for own, size in zip(self.shape, shape))


# The codes and structs of onnx2halide_types.h.

BAD_ARGUMENT = 1


class _CPort(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class _CValue(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("items", ctypes.c_void_p),
        ("count", ctypes.c_int64),
    ]


class _COptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("threads", ctypes.c_int),
        ("arena", ctypes.c_void_p),
        ("arena_size", ctypes.c_size_t),
        ("weights", ctypes.c_char_p),
        ("trace", ctypes.c_void_p),
        ("trace_context", ctypes.c_void_p),
    ]


class Model:
    """A compiled model and one session of it. Several threads may call it; they take turns."""

    def __init__(self, library, threads: int = 1, with_all_values: "Callable[[], Model] | None" = None, trace: tuple[int, int] = (0, 0), name: str | None = None):
        """Loads NAME.so (or KEY.NAME.so). `threads` is how many a run may use, 0 for one a core. `with_all_values` makes the same model
        with every value of its graph as an output. `trace` is the address of a C function that is called after each kernel, and of its
        context (see onnx2halide_types.h). `name` is what messages call the model; by default the library's name."""
        path = pathlib.Path(library).resolve()
        self._prefix = path.stem.rpartition(".")[2]  # of its C functions
        self.name = name or self._prefix
        self.threads = threads
        self._library = ctypes.CDLL(str(path))
        self._session = self._create(threads, trace)
        self._run_values = self._function("run_values", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_CValue), ctypes.POINTER(_CValue))
        self._error = self._function("error", ctypes.c_char_p, ctypes.c_void_p)
        self._finalizer = weakref.finalize(self, self._function("destroy", None, ctypes.c_void_p), self._session)
        self.inputs, self._input_types = self._ports("inputs")
        self.outputs, self._output_types = self._ports("outputs")
        # Filled anew by each run; made once, because a small model runs for less time than making them takes.
        self._input_values, self._output_values = (_CValue * len(self.inputs))(), (_CValue * len(self.outputs))()
        self._shapes = [None] * len(self.inputs)  # for which the input values stand
        self._lock = threading.Lock()
        self._with_all_values = with_all_values

    def __repr__(self):
        inputs, outputs = (", ".join(f"{port.name}: {port.dtype}{list(port.shape)}" for port in ports) for ports in (self.inputs, self.outputs))
        return f"<onnx2halide.Model {self.name} ({inputs}) -> ({outputs})>"

    def run(self, inputs: Sequence | Mapping = (), all_outputs: bool = False):
        """Runs the model on arrays, in the order of `inputs` or by name, and returns its outputs as a list of arrays that are the caller's.
        With `all_outputs`, a dict of every value that its nodes make, in the graph's order; for this the model is compiled once more.
        Raises ValueError or TypeError for inputs that do not fit, RuntimeError where the run fails."""
        if all_outputs:
            return self._companion.run_by_name(inputs)
        arrays = self._arrays(inputs)
        with self._lock:
            return self._run(arrays)

    def run_by_name(self, inputs: Sequence | Mapping = ()) -> dict[str, np.ndarray]:
        """The outputs of a run by name."""
        return {port.name: array for port, array in zip(self.outputs, self.run(inputs))}

    @property
    def _companion(self) -> "Model":
        if not hasattr(self, "_all_values"):
            if self._with_all_values is None:
                raise RuntimeError(f"{self.name}: all outputs can be had only of a model that onnx2halide.compile has made")
            self._all_values = self._with_all_values()
        return self._all_values

    def prepared(self, inputs: Sequence | Mapping = ()) -> tuple:
        """NAME_run_values and its arguments for these inputs: what a clock calls. It is good until the model's next run."""
        self._held = self._bind(self._arrays(inputs))
        return self._run_values, self._session, self._input_values, self._output_values

    def error(self) -> str:
        """Why the last run failed."""
        return self._error(self._session).decode(errors="replace")

    def _run(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        results = self._bind(arrays)[1]
        code = self._run_values(self._session, self._input_values, self._output_values)
        if code != 0:
            raise (ValueError if code == BAD_ARGUMENT else RuntimeError)(self.error())
        values = zip(self._output_values, results, self.outputs)
        return [_array(value, memory, port.dtype) for value, memory, port in values]

    def _bind(self, arrays: list[np.ndarray]) -> tuple[list, list]:
        """Fills the values of a run. Returns the arrays whose memory they point at; None for outputs that the session makes."""
        memories = [pack(array) if is_packed(array.dtype) else array for array in arrays]
        for i, (array, memory) in enumerate(zip(arrays, memories)):
            value = self._input_values[i]
            if array.shape != self._shapes[i]:
                dims = (ctypes.c_int64 * array.ndim)(*array.shape)
                value.type, value.rank, value.dims, value.size = self._input_types[i], array.ndim, dims, memory.nbytes
                self._shapes[i] = array.shape
            value.data = memory.ctypes.data
        # Outputs of known shape are written to where the caller finds them; of others the session makes one that is copied.
        results = [None if None in port.shape or is_packed(port.dtype) else np.empty(port.shape, port.dtype) for port in self.outputs]
        for value, array in zip(self._output_values, results):
            value.data, value.size = (None, 0) if array is None else (array.ctypes.data, array.nbytes)
        return memories, results

    def _arrays(self, inputs: Sequence | Mapping) -> list[np.ndarray]:
        """An array of the right dtype, row-major, for each input of the model."""
        if isinstance(inputs, Mapping):
            names = [port.name for port in self.inputs]
            if unknown := [name for name in inputs if name not in names]:
                raise ValueError(f"{self.name}: no input is called {unknown[0]!r}; expected {', '.join(map(repr, names))}")
            if missing := [name for name in names if name not in inputs]:
                raise ValueError(f"{self.name}: input {missing[0]!r} is missing")
            inputs = [inputs[name] for name in names]
        elif isinstance(inputs, np.ndarray) or not isinstance(inputs, Sequence):
            raise TypeError(f"{self.name}: inputs are a list or a dict of arrays, not {type(inputs).__name__}")
        if len(inputs) != len(self.inputs):
            raise ValueError(f"{self.name}: {len(inputs)} inputs are given, expected {len(self.inputs)}")
        try:
            return [port.array(value) for value, port in zip(inputs, self.inputs)]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: {error}") from None

    def _create(self, threads: int, trace: tuple[int, int]) -> ctypes.c_void_p:
        session = ctypes.c_void_p()
        options = _COptions(size=ctypes.sizeof(_COptions), threads=threads, trace=trace[0], trace_context=trace[1])
        create = self._function("create", ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_COptions))
        if create(ctypes.byref(session), ctypes.byref(options)) != 0:
            raise RuntimeError(self._function("error", ctypes.c_char_p, ctypes.c_void_p)(None).decode(errors="replace"))
        return session

    def _function(self, name: str, result, *arguments):
        function = self._library[f"{self._prefix}_{name}"]
        function.restype, function.argtypes = result, arguments
        return function

    def _ports(self, table: str) -> tuple[list[Port], list[int]]:
        """The rows of a table, which ends with one that has no name, and ONNX's codes of their types."""
        rows = ctypes.cast(self._library[f"{self._prefix}_{table}"], ctypes.POINTER(_CPort))
        ports, types = [], []
        while (row := rows[len(ports)]).name is not None:
            shape = tuple(None if row.dims[i] < 0 else row.dims[i] for i in range(row.rank))
            ports.append(Port(row.name.decode(), dtype_of(row.type), shape))
            types.append(row.type)
        return ports, types


def _array(value: _CValue, memory: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    """An output: the caller's memory, or a copy of the session's."""
    if memory is not None:
        return memory
    shape = tuple(value.dims[: value.rank])
    array = np.empty(value.size, np.uint8)
    ctypes.memmove(array.ctypes.data, value.data, array.nbytes)
    return unpack(array, dtype, shape) if is_packed(dtype) else array.view(dtype).reshape(shape)
