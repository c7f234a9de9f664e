"""ONNX's backend suite as files: a folder for each case, with model.onnx and test_data_set_N."""

import fcntl
import json
import pathlib
import shutil
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "conformance"
_WHEEL = pathlib.Path(onnx.__file__).parent
_SHIPPED = ("simple", "pytorch-converted", "pytorch-operator")


def cases() -> dict[str, pathlib.Path]:
    """The folder of each case, by name. The first call writes the cases that the onnx package generates in memory."""
    made = BUILD / f"onnx-{onnx.__version__}"
    if not made.exists():
        with locked(BUILD / "lock"):
            if not made.exists():
                _write_cases(made)
    folders = [folder for kind in _SHIPPED for folder in (_WHEEL / "backend" / "test" / "data" / kind).iterdir() if folder.is_dir()]
    return {folder.name: folder for folder in sorted([*made.iterdir(), *folders], key=lambda folder: folder.name)}


def tolerances(folder: pathlib.Path) -> dict[str, float]:
    """The rtol and atol of a case, by default those of the suite."""
    file = folder / "data.json"
    own = json.loads(file.read_text()) if file.exists() else {}
    return {"rtol": own.get("rtol", 1e-3), "atol": own.get("atol", 1e-7)}


def data_sets(folder: pathlib.Path) -> list[tuple[list, list]]:
    """The inputs and expected outputs of each data set."""
    graph = onnx.load(folder / "model.onnx").graph
    sets = sorted(folder.glob("test_data_set_*"))
    return [(_read(place, "input", graph.input), _read(place, "output", graph.output)) for place in sets]


class locked:
    """Holds a lock file, which excludes other processes."""

    def __init__(self, path: pathlib.Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "w")

    def __enter__(self):
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self._file.close()


def _write_cases(folder: pathlib.Path) -> None:
    from onnx.backend.test.loader import load_model_tests

    part = pathlib.Path(tempfile.mkdtemp(dir=BUILD))
    with np.errstate(all="ignore"):
        node_cases = load_model_tests(kind="node")
    for case in node_cases:
        _write_case(part / case.name, case.model, case.data_sets, case.rtol, case.atol)
    for case in load_model_tests(kind="real"):
        _write_real_case(part / case.name, _WHEEL.parent / case.url, case.rtol, case.atol)
    part.rename(folder)


def _write_case(folder: pathlib.Path, model: onnx.ModelProto, sets, rtol: float, atol: float) -> None:
    folder.mkdir()
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}))
    for i, (inputs, outputs) in enumerate(sets):
        place = folder / f"test_data_set_{i}"
        place.mkdir()
        for kind, values, ports in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
            for j, (value, port) in enumerate(zip(values, ports)):
                (place / f"{kind}_{j}.pb").write_bytes(_proto(value, port.type).SerializeToString())


def _write_real_case(folder: pathlib.Path, light: pathlib.Path, rtol: float, atol: float) -> None:
    """The suite feeds these models a ramp."""
    model = onnx.load(light)
    weights = {tensor.name for tensor in model.graph.initializer}
    shapes = [[dim.dim_value for dim in port.type.tensor_type.shape.dim] for port in model.graph.input if port.name not in weights]
    ramps = [(np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32) for shape in shapes]
    outputs = [onnx.TensorProto.FromString(light.with_name(f"{light.stem}_output_{i}.pb").read_bytes()) for i in range(len(model.graph.output))]
    # In these old models weights are inputs, too; the suite has data only for the first.
    _write_case(folder, model, [(ramps, outputs)], rtol, atol)


def _proto(value, type: onnx.TypeProto):
    if isinstance(value, onnx.TensorProto):
        return value
    if type.HasField("sequence_type"):
        return numpy_helper.from_list(value, dtype=None if value else onnx.SequenceProto.TENSOR)
    if type.HasField("optional_type"):
        return numpy_helper.from_optional(value, dtype=onnx.OptionalProto.TENSOR if value is None else None)
    return numpy_helper.from_array(np.asarray(value))


def _read(place: pathlib.Path, kind: str, ports) -> list:
    files = [place / f"{kind}_{i}.pb" for i in range(len(list(place.glob(f"{kind}_*.pb"))))]
    return [_value(file.read_bytes(), port.type) for file, port in zip(files, ports)]


def _value(content: bytes, type: onnx.TypeProto):
    if type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if type.HasField("optional_type"):
        optional = onnx.OptionalProto.FromString(content)
        # An absent optional value still has an element type.
        is_there = any(field.name.endswith("_value") for field, _ in optional.ListFields())
        return numpy_helper.to_optional(optional) if is_there else None
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))
