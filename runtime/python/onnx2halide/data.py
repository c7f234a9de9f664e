"""Inputs and expected outputs: data sets that ship with a model, seeded samples, and single files."""

import pathlib
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from onnx2halide.elements import dtype_of, is_integer, stored
from onnx2halide.values import KINDS, OPTIONAL, SEQUENCE, TENSOR, BoxPort, Port

_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".webp"}


@dataclass
class DataSet:
    """The inputs of one run and, if they are known, its outputs."""

    name: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray] = field(default_factory=dict)


def data_sets(place: pathlib.Path, inputs: list[Port], outputs: list[Port]) -> list[DataSet]:
    """The data sets at `place`: a folder of test_data_set_N folders with input_I.pb and output_I.pb, as in ONNX's backend suite; one such
    folder; an .npz file of arrays by name; or a folder with io.npz."""
    if place.is_file():
        return [_from_npz(place, inputs, outputs)]
    if (place / "input_0.pb").exists() or (place / "output_0.pb").exists():
        return [_from_protos(place, inputs, outputs)]
    sets = [_from_protos(folder, inputs, outputs) for folder in sorted(place.glob("test_data_set_*"))]
    return sets or [_from_npz(file, inputs, outputs) for file in place.glob("io.npz")]


def sample(inputs: list[Port | BoxPort], seed: int = 0, open_dim: int = 2) -> dict[str, np.ndarray]:
    """Seeded inputs. Floats are normally distributed; integers are 0 or 1, which are valid indices and masks in any model; strings are one of
    two words. Open dims are `open_dim`, or their minimum if that is larger. Raises TypeError for an input that is not a tensor."""
    rng = np.random.default_rng(seed)
    return {port.name: _sample(rng, port, open_dim) for port in inputs}


def usual_inputs(place: pathlib.Path, model, sized: list[Port] | None = None) -> dict[str, np.ndarray]:
    """Inputs for timing a Model, in its order: a sample of `sized` inputs if they are given; else the first inputs that ship in the folder
    `place`, or a sample. Open dims in samples are 1, or their minimum."""
    if sized is not None:
        return sample(with_sizes(model.inputs, sized), open_dim=1)
    names = [port.name for port in model.inputs]
    shipped = [data.inputs for data in data_sets(place, model.inputs, model.outputs) if set(data.inputs) == set(names)]
    return {name: shipped[0][name] for name in names} if shipped else sample(model.inputs, open_dim=1)


def with_sizes(ports: list[Port | BoxPort], sized: list[Port]) -> list[Port | BoxPort]:
    """The inputs of a compiled model, with the shapes of these."""
    shapes = {port.name: port.shape for port in sized}
    return [replace(port, shape=shapes[port.name]) for port in ports]


def _sizes(port: Port, open_dim: int) -> tuple[int, ...]:
    least = port.least or (open_dim,) * len(port.shape)
    return tuple(max(open_dim, bound) if size is None else size for size, bound in zip(port.shape, least))


def _sample(rng: np.random.Generator, port: Port | BoxPort, open_dim: int) -> np.ndarray:
    if port.kind != TENSOR:
        raise TypeError(f"input '{port.name}' is of kind {KINDS[port.kind]}, and samples are only tensors")
    shape = _sizes(port, open_dim)
    if port.dtype.hasobject:
        return rng.choice(np.array(["yes", "no"], object), shape)
    if is_integer(port.dtype):
        return rng.integers(0, 2, shape).astype(port.dtype)
    return rng.normal(size=shape).astype(port.dtype)


def declared_inputs(model: bytes, dims: Mapping[str, int]) -> list[Port]:
    """The inputs that a model file declares, with numbers for open dims. Raises ValueError if it is not a model, and TypeError if an input is
    not a tensor."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        graph = onnx.ModelProto.FromString(model).graph
    except DecodeError as error:
        raise ValueError("is not an ONNX model") from error
    weights = {tensor.name for tensor in graph.initializer}
    return [_declared(value, dims) for value in graph.input if value.name not in weights]


def sized_inputs(model: bytes, dims: Mapping[str, int], sizes: Mapping[str, int]) -> list[Port]:
    """The declared inputs, with numbers for open dims and sizes for others of them. Raises ValueError for a size of a dim that is not open."""
    all_sizes = dict(dims) | sizes
    declared = declared_inputs(model, all_sizes)
    for name in sizes:
        if declared == declared_inputs(model, {other: all_sizes[other] for other in all_sizes if other != name}):
            raise ValueError(f"--size {name}={sizes[name]}: the model leaves no dim of that name open")
    return declared


def _declared(value, dims: Mapping[str, int]) -> Port:
    if not value.type.HasField("tensor_type"):
        raise TypeError(f"input '{value.name}' is not a tensor, and files contain only tensors")
    tensor = value.type.tensor_type
    is_open = lambda dim: not dim.HasField("dim_value") or dim.dim_value < 0
    shape = (_number(value.name, axis, dim.dim_param, dims) if is_open(dim) else dim.dim_value for axis, dim in enumerate(tensor.shape.dim))
    return Port(value.name, dtype_of(tensor.elem_type), tuple(shape))


def identifier(text: str) -> str:
    """Turns a text into a C identifier, by the compiler's rule (ops/names.h)."""
    name = re.sub("[^A-Za-z0-9]+", "_", text).strip("_") or "unnamed"
    return f"v{name}" if name[0].isdigit() else name


def _number(name: str, axis: int, dim: str, dims: Mapping[str, int]) -> int | None:
    """The number given for an open dim: by its name, by input and axis, or by the identifier that reports and headers use for it."""
    hint = dim if dim not in ("", "?") else f"{name}_dim_{axis}"
    keys = (dim, f"{name}:{axis}", identifier(hint))
    return next((dims[key] for key in keys if key in dims), None)


def load(file: pathlib.Path, port: Port, pixels: tuple[float, float] = (0, 1), resize: bool = False) -> np.ndarray:
    """Reads an input from a file: .npy, .npz (the array with the input's name, or the only one), .pb (a TensorProto), or a picture for an
    image input, in which black and white become the two numbers of `pixels`. A picture of another size is scaled with `resize`, and refused
    without."""
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return read_numpy(file)
    if suffix == ".npz":
        arrays = read_numpy(file)
        if port.name not in arrays and len(arrays.files) != 1:
            raise ValueError(f"{file} has no array '{port.name}', only {', '.join(arrays.files)}")
        return arrays[port.name if port.name in arrays else arrays.files[0]]
    if suffix == ".pb":
        return _read_proto(file)
    if suffix in _IMAGES:
        return _read_image(file, port, pixels, resize)
    raise ValueError(f"{file}: expected .npy, .npz, .pb or an image")


def _read_image(file: pathlib.Path, port: Port, pixels: tuple[float, float], resize: bool) -> np.ndarray:
    from PIL import Image

    channels_first = len(port.shape) == 4 and port.shape[1] in (1, 3)  # ONNX's layout, so it is tried first
    if not channels_first and not (len(port.shape) == 4 and port.shape[3] in (1, 3)):
        raise ValueError(f"{file}: input '{port.name}' of shape {list(port.shape)} is not an image of 1 or 3 channels")
    channels, height, width = (port.shape[axis] for axis in ((1, 2, 3) if channels_first else (3, 1, 2)))
    image = Image.open(file)
    if image.mode.startswith("I"):  # 16 bits, which Pillow's own conversion clips
        image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    image = image.convert("L" if channels == 1 else "RGB")
    wanted = (width or image.width, height or image.height)
    if image.size != wanted and not resize:
        size = f"{image.width}x{image.height}"
        raise ValueError(f"{file}: has {size} pixels, input '{port.name}' takes {wanted[0]}x{wanted[1]}; --resize scales it")
    image = image.resize(wanted)
    array = np.asarray(image).reshape(1, image.height, image.width, channels)
    if channels_first:
        array = array.transpose(0, 3, 1, 2)
    if port.dtype.kind in "iu":
        return array.astype(port.dtype)
    low, high = pixels
    return (low + array * ((high - low) / 255)).astype(port.dtype)


def _read_proto(file: pathlib.Path, kind: int = TENSOR):
    import onnx
    from google.protobuf.message import DecodeError
    from onnx import numpy_helper

    proto, content = {
        SEQUENCE: (onnx.SequenceProto, numpy_helper.to_list),
        OPTIONAL: (onnx.OptionalProto, numpy_helper.to_optional),
    }.get(kind, (onnx.TensorProto, numpy_helper.to_array))
    try:
        return content(proto.FromString(file.read_bytes()))
    except (DecodeError, TypeError, ValueError):
        raise ValueError(f"{file}: is not a {proto.__name__}") from None


def read_numpy(file: pathlib.Path):
    """The array of an .npy file, or those of an .npz file by name. Raises ValueError if it is damaged."""
    try:
        return np.load(file)
    except (EOFError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"{file}: is not a file of numbers that numpy wrote, or is truncated") from None


def _from_protos(folder: pathlib.Path, inputs: list[Port], outputs: list[Port]) -> DataSet:
    def read(ports, kind):
        files = {port: folder / f"{kind}_{i}.pb" for i, port in enumerate(ports)}
        return {port.name: _as_port(_read_proto(file, port.kind), port) for port, file in files.items() if file.exists()}

    return DataSet(folder.name, read(inputs, "input"), read(outputs, "output"))


def _from_npz(file: pathlib.Path, inputs: list[Port], outputs: list[Port]) -> DataSet:
    arrays = read_numpy(file)

    def read(ports):
        return {port.name: _as_port(arrays[port.name], port) for port in ports if port.name in arrays}

    return DataSet(file.name, read(inputs), read(outputs))


def _as_port(array: np.ndarray, port: Port) -> np.ndarray:
    """Converts an array to the port's type, since some models ship float32 data for float16 ports."""
    if port.kind != TENSOR:
        return array
    array = stored(array, port.dtype)
    return array.astype(port.dtype) if array.dtype.kind == "f" and port.dtype.kind in "fV" else array
