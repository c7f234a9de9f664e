"""Compiled models: wraps the C interface of shared libraries, with numpy arrays for tensors."""

import ctypes
import pathlib
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from onnx2halide.elements import is_packed
from onnx2halide.values import KINDS, TENSOR, BoxPort, CPort, CValue, Port, content_of, fill, memory_of, read_port


# From onnx2halide_types.h.

BAD_ARGUMENT = 1

_LARGE = 1 << 17  # bytes of an array that malloc maps for itself


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
    """A compiled model and one session of it. Threads may share it; their runs are serialised."""

    def __init__(self, library, threads: int = 1, with_all_values: "Callable[[], Model] | None" = None, trace: tuple[int, int] = (0, 0), name: str | None = None):
        """Loads NAME.so (or KEY.NAME.so). `threads` is the number of threads of a run; 0: one per core. `with_all_values` returns the same
        model with every value of its graph as an output. `trace` contains the addresses of a C function that is called after each kernel
        and of its context (see onnx2halide_types.h). `name` is the model's name in messages; default: the library's."""
        path = pathlib.Path(library).resolve()
        self._prefix = path.stem.rpartition(".")[2]  # of the names of its C functions
        self.name = name or self._prefix
        self.threads = threads
        self._library = ctypes.CDLL(str(path))
        self._session = self._create(threads, trace)
        self._run_values = self._function("run_values", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(CValue), ctypes.POINTER(CValue))
        self._error = self._function("error", ctypes.c_char_p, ctypes.c_void_p)
        self._finalizer = weakref.finalize(self, self._function("destroy", None, ctypes.c_void_p), self._session)
        self.inputs, self.outputs = self._ports("inputs"), self._ports("outputs")
        # Created once, because that takes longer than a small model takes to run.
        self._input_values, self._output_values = (CValue * len(self.inputs))(), (CValue * len(self.outputs))()
        self._shapes = [None] * len(self.inputs)  # those for which the input values are set up
        self._are_given = [_is_given(port) for port in self.outputs]
        self._last_arrays: list[np.ndarray | None] = [None] * len(self.outputs)  # large ones
        self._lock = threading.Lock()
        self._with_all_values = with_all_values

    def __repr__(self):
        inputs, outputs = (", ".join(map(_port_text, ports)) for ports in (self.inputs, self.outputs))
        return f"<onnx2halide.Model {self.name} ({inputs}) -> ({outputs})>"

    def __reduce__(self):
        # A copy would share the session, which ends with the original.
        raise TypeError(f"{self.name}: a model cannot be copied or pickled; compile it again, which takes it from the cache")

    def run(self, inputs: Sequence | Mapping = (), all_outputs: bool = False):
        """Runs the model on arrays, in the order of its inputs or by name. Returns the outputs as a list of arrays, which belong to the
        caller; with `all_outputs`, a dict of all values that nodes compute, in the graph's order, for which the model is compiled again.
        Raises ValueError or TypeError for inputs that do not fit, and RuntimeError if the run fails."""
        if all_outputs:
            return self._companion.run_by_name(inputs)
        arrays = self._arrays(inputs)
        with self._lock:
            return self._run(arrays)

    def run_by_name(self, inputs: Sequence | Mapping = ()) -> dict[str, np.ndarray]:
        """Runs the model and returns its outputs by name."""
        return {port.name: array for port, array in zip(self.outputs, self.run(inputs))}

    @property
    def _companion(self) -> "Model":
        if not hasattr(self, "_all_values"):
            if self._with_all_values is None:
                raise RuntimeError(f"{self.name}: all_outputs needs a model from onnx2halide.compile")
            self._all_values = self._with_all_values()
        return self._all_values

    def prepared(self, inputs: Sequence | Mapping = ()) -> tuple:
        """NAME_run_values and its arguments for these inputs, for a clock to call. Valid until the model's next run."""
        self._held = self._bind(self._arrays(inputs))
        return self._run_values, self._session, self._input_values, self._output_values

    def error(self) -> str:
        """The message of the last run that failed."""
        return self._error(self._session).decode(errors="replace")

    def _run(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        held, results = self._bind(arrays)  # `held` keeps alive what the values point at
        code = self._run_values(self._session, self._input_values, self._output_values)
        if code != 0:
            raise (ValueError if code == BAD_ARGUMENT else RuntimeError)(self.error())
        values = enumerate(zip(self._output_values, results, self.outputs))
        return [content_of(value, port, partial(self._empty, i)) if array is None else array for i, (value, array, port) in values]

    def _bind(self, arrays: list) -> tuple[list, list]:
        """Sets the values of a run. Returns the objects that inputs point at, and the array of each output, or None if the session provides
        it."""
        held = []
        for i, (array, port) in enumerate(zip(arrays, self.inputs)):
            value = self._input_values[i]
            if port.kind != TENSOR:
                fill(value, port, array, held)
                continue
            memory = memory_of(array, held)
            if array.shape != self._shapes[i]:
                dims = (ctypes.c_int64 * array.ndim)(*array.shape)
                value.type, value.rank, value.dims, value.size = port.code, array.ndim, dims, memory.nbytes
                self._shapes[i] = array.shape
            value.data = memory.ctypes.data
            held.append(memory)
        # Outputs of fixed shape are written straight into the caller's arrays; others are copied from the session's memory.
        ports = enumerate(zip(self.outputs, self._are_given))
        results = [self._empty(i, port.shape, port.dtype) if is_given else None for i, (port, is_given) in ports]
        for value, array in zip(self._output_values, results):
            value.data, value.size = (None, 0) if array is None else (array.ctypes.data, array.nbytes)
        return held, results

    def _empty(self, i: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array for output `i`: that of the last run if nothing else refers to it any more. The pages of a new one would have to be
        mapped, which can take longer than computing what they hold."""
        array = self._last_arrays[i]
        if array is not None and array.shape == shape and sys.getrefcount(array) == 3:  # the list's, `array` and the function's own
            return array
        array = np.empty(shape, dtype)
        self._last_arrays[i] = array if array.nbytes >= _LARGE else None
        return array

    def _arrays(self, inputs: Sequence | Mapping) -> list[np.ndarray]:
        """Returns a row-major array of the right dtype for each input of the model."""
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
            return [
                value if self._is_as_before(value, port, shape) else port.array(value)
                for value, port, shape in zip(inputs, self.inputs, self._shapes)
            ]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: {error}") from None

    @staticmethod
    def _is_as_before(value, port: Port | BoxPort, shape: tuple[int, ...] | None) -> bool:
        """Whether an input is an array of the same kind as in the last run: checking it again takes longer than a small model runs."""
        return type(value) is np.ndarray and value.shape == shape and value.dtype == port.dtype and value.flags.c_contiguous and not port.dtype.hasobject

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

    def _ports(self, table: str) -> list[Port | BoxPort]:
        """Reads a table of ports, which ends with a row without a name."""
        rows = ctypes.cast(self._library[f"{self._prefix}_{table}"], ctypes.POINTER(CPort))
        ports = []
        while (row := rows[len(ports)]).name is not None:
            ports.append(read_port(row))
        return ports


def _port_text(port: Port | BoxPort) -> str:
    return f"{port.name}: {port.dtype}{list(port.shape)}" if port.kind == TENSOR else f"{port.name}: {KINDS[port.kind]}"


def _is_given(port: Port | BoxPort) -> bool:
    """Whether a run can write an output straight into an array of the caller's."""
    return port.kind == TENSOR and not port.dtype.hasobject and None not in port.shape and not is_packed(port.dtype)
