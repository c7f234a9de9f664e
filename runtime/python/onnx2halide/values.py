"""Values of the C interface and their counterparts in Python: arrays for tensors, with dtype object for strings; lists for sequences; dicts
for maps; for an optional value its content, or None."""

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onnx2halide.elements import dtype_of, is_packed, pack, stored, unpack

# From onnx2halide_types.h.

TENSOR, SEQUENCE, MAP, OPTIONAL = range(4)
KINDS = ("tensor", "sequence", "map", "optional")
_TEXT = np.dtype([("text", np.uintp), ("length", np.uintp)])


class CPort(ctypes.Structure):
    pass


CPort._fields_ = [
    ("name", ctypes.c_char_p),
    ("type", ctypes.c_int32),
    ("rank", ctypes.c_int32),
    ("dims", ctypes.POINTER(ctypes.c_int64)),
    ("kind", ctypes.c_int32),
    ("item", ctypes.POINTER(CPort)),
    ("least", ctypes.POINTER(ctypes.c_int64)),
]


class CValue(ctypes.Structure):
    pass


CValue._fields_ = [
    ("kind", ctypes.c_int32),
    ("type", ctypes.c_int32),
    ("rank", ctypes.c_int64),
    ("dims", ctypes.POINTER(ctypes.c_int64)),
    ("data", ctypes.c_void_p),
    ("size", ctypes.c_size_t),
    ("items", ctypes.POINTER(CValue)),
    ("count", ctypes.c_int64),
    ("lent", ctypes.c_void_p),
]
# The same struct, for reading many of them, and the indices of its fields data, size and items.
_VALUE = struct.Struct("iiqPPNPqP0q")
_DATA, _SIZE, _ITEMS = range(4, 7)


@dataclass(frozen=True)
class Port:
    """The declaration of an input or output that is a tensor."""

    name: str
    dtype: np.dtype
    shape: tuple[int | None, ...] | None  # None for an open dim, and for the shape of an item of any rank
    code: int = 0  # ONNX's code of the element type
    least: tuple[int, ...] = ()  # the minimum of each dim, for an input with open dims

    kind = TENSOR

    def array(self, value) -> np.ndarray:
        """Converts a value to a row-major array for this port. Python numbers and lists take its dtype; arrays must have it, or contain
        plain bytes of its size, as numpy's files do for types that numpy lacks.
        Raises TypeError or ValueError if the value does not fit."""
        if self.dtype.hasobject:
            array = self._strings(value)
        else:
            array = self._numbers(value)
        if self.shape is not None and array.shape != self.shape and not self._takes(array.shape):
            raise ValueError(f"input {self.name!r} has shape {list(array.shape)}, expected {list(self.shape)}")
        return array

    def _numbers(self, value) -> np.ndarray:
        try:
            array = np.asarray(value, dtype=None if hasattr(value, "dtype") else self.dtype, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            kind = ValueError if isinstance(error, OverflowError) else type(error)
            raise kind(f"input {self.name!r} cannot be made an array of {self.dtype}: {error}") from None
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        array = array if array.dtype == self.dtype else stored(array, self.dtype)
        if array.dtype != self.dtype:
            raise TypeError(f"input {self.name!r} has elements of type {array.dtype}, expected {self.dtype}")
        return array

    def _strings(self, value) -> np.ndarray:
        array = np.asarray(value, order="C")
        if array.dtype.kind not in "OSU" and array.size > 0:
            raise TypeError(f"input {self.name!r} has elements of type {array.dtype}, expected strings")
        array = array.astype(object)
        types = dict.fromkeys(map(type, array.ravel().tolist()))  # one or two, in order of occurrence
        if wrong := [kind.__name__ for kind in types if not issubclass(kind, str | bytes)]:
            raise TypeError(f"input {self.name!r} has an element of type {wrong[0]}, expected str or bytes")
        return array

    def _takes(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.shape) and all(own is None or own == size for own, size in zip(self.shape, shape))


@dataclass(frozen=True)
class BoxPort:
    """The declaration of an input or output that is a sequence, a map or an optional value."""

    name: str
    kind: int
    item: "Port | BoxPort"  # for a map: the values
    key: Port | None = None

    dtype = np.dtype(object)
    shape = ()
    least = ()

    def array(self, value):
        """Converts all tensors in a value to arrays. Raises TypeError or ValueError if the value does not fit."""
        if self.kind == OPTIONAL:
            return None if value is None else self.item.array(value)
        if self.kind == SEQUENCE:
            if not isinstance(value, list | tuple):
                raise TypeError(f"input {self.name!r} is of type {type(value).__name__}, expected a list")
            return [self.item.array(item) for item in value]
        if not isinstance(value, dict):
            raise TypeError(f"input {self.name!r} is of type {type(value).__name__}, expected a dict")
        return self.key.array(list(value.keys())), self.item.array(list(value.values()))


def read_port(row: CPort, name: str = "") -> Port | BoxPort:
    """Reads a row of a model's table of ports. Items have the name of the whole."""
    name = row.name.decode() if row.name is not None else name
    if row.kind == TENSOR:
        shape = None if row.rank < 0 else tuple(None if row.dims[i] < 0 else row.dims[i] for i in range(row.rank))
        least = tuple(row.least[: row.rank]) if row.least else ()
        return Port(name, dtype_of(row.type), shape, row.type, least)
    key = Port(name, dtype_of(row.type), (None,), row.type) if row.kind == MAP else None
    return BoxPort(name, row.kind, read_port(row.item.contents, name), key)


def fill(value: CValue, port: Port | BoxPort, content, held: list) -> None:
    """Sets a C value to `content`, which port.array() has returned. Adds the objects that it points at to `held`."""
    if port.kind == TENSOR:
        memory = memory_of(content, held)
        dims = (ctypes.c_int64 * content.ndim)(*content.shape)
        value.kind, value.type, value.rank, value.dims = TENSOR, port.code, content.ndim, dims
        value.data, value.size = memory.ctypes.data, memory.nbytes
        held.append((memory, dims))
        return
    if port.kind == OPTIONAL:
        contents = [] if content is None else [(port.item, content)]
    elif port.kind == MAP:
        contents = [(port.key, content[0]), (port.item, content[1])]
    else:
        contents = [(port.item, item) for item in content]
    items = (CValue * max(1, len(contents)))()
    for item, (item_port, item_content) in zip(items, contents):
        fill(item, item_port, item_content, held)
    value.kind, value.items, value.count = port.kind, items, len(contents)
    held.append(items)


def memory_of(array: np.ndarray, held: list) -> np.ndarray:
    """The elements of an array in the form of the C interface."""
    if not array.dtype.hasobject:
        return pack(array) if is_packed(array.dtype) else array
    joined, counts = _joined(array.ravel().tolist())
    characters = np.frombuffer(joined + b"\0", np.uint8)
    lengths = np.array(counts, np.uintp)
    memory = np.empty(array.size, _TEXT)
    memory["length"] = lengths
    memory["text"] = characters.ctypes.data + np.cumsum(lengths) - lengths
    held.append(characters)
    return memory


def _joined(texts: list) -> tuple[bytes, list[int]]:
    """Concatenates texts in UTF-8. Returns the bytes and the length of each text."""
    if all(isinstance(text, str) for text in texts):
        lengths = [len(text) if text.isascii() else len(text.encode(errors="surrogateescape")) for text in texts]
        return "".join(texts).encode(errors="surrogateescape"), lengths
    encoded = [text if isinstance(text, bytes) else text.encode(errors="surrogateescape") for text in texts]
    return b"".join(encoded), list(map(len, encoded))


def content_of(value: CValue, port: Port | BoxPort, empty: Callable = np.empty):
    """Converts a value that a run has made to Python objects with memory of their own. `empty` makes the array of a tensor of numbers."""
    if port.kind == TENSOR:
        return array_of(value, port.dtype, empty)
    if port.kind == OPTIONAL:
        return content_of(value.items[0], port.item) if value.count else None
    if port.kind == MAP:
        return dict(zip(array_of(value.items[0], port.key.dtype).tolist(), array_of(value.items[1], port.item.dtype).tolist()))
    if port.item.kind == MAP and not is_packed(port.item.item.dtype):
        return [_map_of(item[_ITEMS], port.item) for item in _values_at(value.items, value.count)]
    return [content_of(value.items[i], port.item) for i in range(value.count)]


def array_of(value: CValue, dtype: np.dtype, empty: Callable = np.empty) -> np.ndarray:
    """Copies a tensor of the session; `empty` makes the array if its elements are stored as numpy stores them."""
    shape = tuple(value.dims[: value.rank]) if value.rank else ()
    is_as_stored = not dtype.hasobject and not is_packed(dtype)
    memory = empty(shape, dtype) if is_as_stored else np.empty(value.size, np.uint8)
    if memory.nbytes != value.size:
        raise RuntimeError(f"a tensor of shape {list(shape)} and type {dtype} has {value.size} bytes, expected {memory.nbytes}")
    if value.size:
        ctypes.memmove(memory.ctypes.data, value.data, value.size)
    if is_as_stored:
        return memory
    if dtype.hasobject:
        texts = np.empty(value.size // _TEXT.itemsize, object)
        texts[:] = _texts_of(memory.view(_TEXT))
        return texts.reshape(shape)
    return unpack(memory, dtype, shape)


def _texts_of(memory: np.ndarray) -> list[str]:
    """Reads the texts at these addresses. Equal addresses, as of labels, are read once."""
    places = memory.tolist()
    texts = {place: ctypes.string_at(*place).decode(errors="surrogateescape") for place in set(places)}
    return [texts[place] for place in places]


def _values_at(place, count: int):
    """The fields of consecutive values at an address."""
    return _VALUE.iter_unpack(ctypes.string_at(place, count * _VALUE.size))


def _map_of(items: int, port: BoxPort) -> dict:
    """Reads a map without an object of ctypes for each of its parts: a model may return one map per row, for which that would take longer
    than the model itself."""
    keys, contents = _values_at(items, 2)
    return dict(zip(_elements_of(keys, port.key.dtype), _elements_of(contents, port.item.dtype)))


def _elements_of(tensor: tuple, dtype: np.dtype) -> list:
    memory = np.frombuffer(ctypes.string_at(tensor[_DATA], tensor[_SIZE]), _TEXT if dtype.hasobject else dtype)
    return _texts_of(memory) if dtype.hasobject else memory.tolist()
