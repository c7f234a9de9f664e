"""Our types and shapes against those of ONNX's own shape inference, on every model of the backend suite and of the model folder."""

import json
import pathlib
import subprocess
import sys

import onnx
import pytest
from paths import COMPILER, REAL_MODELS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import suite  # noqa: E402
import unsupported  # noqa: E402

# Our names of ONNX's element types.
ELEMENTS = {
    onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64", onnx.TensorProto.FLOAT16: "float16", onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.BOOL: "bool", onnx.TensorProto.FLOAT4E2M1: "float4e2m1", **{getattr(onnx.TensorProto, f"{kind}{bits}"): f"{kind}{bits}".lower() for kind in ("INT", "UINT") for bits in (2, 4, 8, 16, 32, 64)},
    **{getattr(onnx.TensorProto, f"FLOAT8{kind}"): f"float8{kind}".lower() for kind in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ", "E8M0")},
}


def onnx_types(path: pathlib.Path) -> dict[str, tuple[str, list]]:
    """Element type and shape (None: unknown) of every value that ONNX's inference finds."""
    model = onnx.load(path)
    declared = {output.name: onnx.ValueInfoProto.FromString(output.SerializeToString()) for output in model.graph.output}
    # What a file declares about outputs with open dims may be wrong without consequences elsewhere, so it only counts if inference finds nothing.
    for output in model.graph.output:
        dims = output.type.tensor_type.shape.dim if output.type.HasField("tensor_type") else []
        if any(not dim.HasField("dim_value") for dim in dims):
            output.type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for output in model.graph.output:
        dims = declared[output.name].type.tensor_type.shape.dim
        is_telling = any(dim.HasField("dim_value") for dim in dims)
        if output.type.HasField("tensor_type") and not output.type.tensor_type.HasField("shape") and is_telling:
            output.CopyFrom(declared[output.name])
    types = {}
    for info in [*model.graph.value_info, *model.graph.output]:
        tensor = info.type.tensor_type
        if info.type.HasField("tensor_type") and tensor.HasField("shape") and tensor.elem_type in ELEMENTS:
            types[info.name] = ELEMENTS[tensor.elem_type], [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    return types


def our_types(paths: list[pathlib.Path]) -> list[dict]:
    """The output of `inspect` for each model that it supports."""
    result = subprocess.run([COMPILER, "inspect", "--json", *paths], capture_output=True, text=True)
    assert result.returncode in (0, 1), result.stderr
    text = result.stdout
    lines = [json.loads(text)] if len(paths) == 1 and text else [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if "error" not in line]


def disagreements(ours: dict, theirs: dict[str, tuple[str, list]]) -> tuple[list[str], int]:
    """The differences, and the number of values that both have types for."""
    different, compared = [], 0
    for node in ours["nodes"]:
        for value in node["outputs"]:
            if value["name"] not in theirs:
                continue
            element, shape = theirs[value["name"]]
            compared += 1
            same = element == value["element"] and len(shape) == len(value["shape"])
            same = same and all(b is None or isinstance(a, str) or a == b for a, b in zip(value["shape"], shape))
            if not same:
                different.append(f"{ours['file']}: {value['name']} is {value['element']} {value['shape']}, ONNX says {element} {shape}")
    return different, compared


def test_backend_suite(tmp_path):
    # Links with different names, as `inspect` reports the file's name only.
    paths = []
    for name, folder in suite.cases().items():
        link = tmp_path / f"{name}.onnx"
        link.symlink_to(folder / "model.onnx")
        paths.append(link)
    different, inferred = [], set()
    for i in range(0, len(paths), 256):
        for ours in our_types(paths[i : i + 256]):
            different += disagreements(ours, onnx_types(tmp_path / ours["file"]))[0]
            inferred.add(pathlib.Path(ours["file"]).stem)
    assert different == []
    assert suite.cases().keys() - inferred <= unsupported.listed().keys()


ABSENT = pytest.param(None, id="none", marks=pytest.mark.skip(reason=f"no models in {REAL_MODELS}"))


@pytest.mark.parametrize("path", sorted(REAL_MODELS.glob("*/model.onnx")) or [ABSENT], ids=lambda path: path.parent.name)
def test_models(path):
    (types,) = our_types([path])
    different, compared = disagreements(types, onnx_types(path))
    assert different == [] and compared > 0
