"""Invalid models: the whole message, the exit status, and nothing left in the output folder."""

import numpy as np
import pytest
from make_models import FLOAT, chain, model, node, with_external_weight
from onnx import TensorProto, helper, parser
from paths import ROOT
from refusals import OPEN, X, Y, refused, refused_model

DIGITS = ROOT / "scripts" / "digits" / "digits.onnx"


# ---- Files that are not models ----


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is not an ONNX model, or is truncated"),
        (b"# not a model\n" * 20, "is not an ONNX model, or is truncated"),
        (np.random.default_rng(0).bytes(5000), "is not an ONNX model, or is truncated"),
        (DIGITS.read_bytes()[: DIGITS.stat().st_size // 2], "is not an ONNX model, or is truncated"),
        (DIGITS.read_bytes()[:-1], "is not an ONNX model, or is truncated"),
        (TensorProto(name="t", data_type=1, dims=[1], float_data=[1]).SerializeToString(), "is not an ONNX model, or is truncated"),
    ],
    ids=["empty", "text", "random", "half", "one byte short", "a tensor"],
)
def test_no_model(onnx2halide, tmp_path, content, message):
    (tmp_path / "tiny.onnx").write_bytes(content)
    refused(onnx2halide, tmp_path, ["tiny.onnx", "-o", "out"], 1, f"tiny.onnx: {message}\n")


def test_folder_and_missing_file(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").mkdir()
    refused(onnx2halide, tmp_path, ["tiny.onnx", "-o", "out"], 1, "tiny.onnx: is a folder, expected an ONNX model\n")
    refused(onnx2halide, tmp_path, ["none.onnx", "-o", "out"], 1, "none.onnx: cannot be read: No such file or directory\n")
    refused(onnx2halide, tmp_path, ["tiny.onnx/x.onnx", "-o", "out"], 1, "tiny.onnx/x.onnx: cannot be read: No such file or directory\n")


# ---- Models that cannot be compiled ----

def raw_weight(**fields) -> list[TensorProto]:
    return [TensorProto(**{"name": "w", "data_type": FLOAT, "dims": [4]} | fields)]


def adding(weights) -> object:
    return model([node("Add", "x w", "y")], [("x", FLOAT, [4])], [("y", FLOAT, [4])], weights)


BRANCHES = "then_branch = t () => (float[2,3] a) { a = Neg (x) }, else_branch = e () => (float[2,3] b) { b = Abs (x) }"


def loop(operands="int64 n, bool c", goes="Identity (going)") -> object:
    return parser.parse_model(f"""<ir_version: 10, opset_import: ["": 22]> tiny (float[2,3] x, {operands}) => (float[2,3] y) {{
        y = Loop (n, c, x) <body = one (int64 i, bool going, float[2,3] u) => (goes, float[2,3] v) {{ goes = {goes} v = Neg (u) }}> }}""")


MODELS = {
    # What ONNX's checker rejects
    "cycle": (
        model([node("Add", "x b", "a"), node("Neg", "a", "b")], [X], [("b", FLOAT, [2, 3])]),
        "rejected by ONNX's checker: Nodes in a graph must be topologically sorted, however input 'b' of node: name: a OpType: Add is not output of any previous nodes",
    ),
    "name twice": (
        model([node("Neg", "x", "y"), node("Abs", "x", "y")], [X], [Y]),
        "rejected by ONNX's checker: Graph must be in single static assignment (SSA) form, however 'y' has been used as output names multiple times",
    ),
    "unknown attribute": (
        model([node("Neg", "x", "y", name="negate", foo=1)], [X], [Y]),
        "rejected by ONNX's checker: Unrecognized attribute: foo for operator Neg (Bad node spec for node. Name: negate OpType: Neg)",
    ),
    "too many inputs": (
        model([node("Neg", "x x", "y")], [X], [Y]),
        "rejected by ONNX's checker: Node(y) with schema(::Neg:13) has input size 2 not in range [min=1, max=1] (Bad node spec for node. Name: y OpType: Neg)",
    ),
    "weights too short": (
        adding(raw_weight(raw_data=b"\0" * 10)),
        "rejected by ONNX's checker: TensorProto (tensor name: w) raw_data size (10 bytes) is too small for the declared shape and type (16 bytes required)",
    ),
    "weights too long": (adding(raw_weight(raw_data=b"\0" * 20)), "initialiser 'w' has 20 bytes, expected 16"),
    "weights of a negative size": (adding(raw_weight(dims=[-4], float_data=[1])), "rejected by ONNX's checker: Negative dimension value (tensor name: w)"),
    "future opset": (model([node("Neg", "x", "y")], [X], [Y], opset=999), "uses opset 999 of ai.onnx, expected at most 28"),
    # Operators and types
    "one unsupported operator": (model([node("ImageDecoder", "x", "y")], [("x", FLOAT, [2, 2])], [("y", FLOAT, [])]), "unsupported operators in 1 of 1 nodes:\n  ImageDecoder (version 20): node 'y'"),
    "several unsupported operators": (
        model(
            [node("Neg", "x", "a"), node("ImageDecoder", "a", "b"), node("Fancy", "b", "c", domain="com.example", name="/layer/fancy"), node("ImageDecoder", "c", "y")],
            [("x", FLOAT, [2, 2])],
            [("y", FLOAT, [])],
        ),
        "unsupported operators in 3 of 4 nodes:\n"
        "  ImageDecoder (version 20): 2 nodes, first 'b'\n"
        "  com.example.Fancy (version 1): node '/layer/fancy'",
    ),
    "operators of one machine": (
        model([node("ReorderInput", "x", "a", domain="com.microsoft.nchwc"), node("ReorderOutput", "a", "y", domain="com.microsoft.nchwc")], [("x", FLOAT, [1, 16, 2, 2])], [("y", FLOAT, [])]),
        "unsupported operators in 2 of 2 nodes:\n"
        "  com.microsoft.nchwc.ReorderInput (version 1): node 'a'\n"
        "  com.microsoft.nchwc.ReorderOutput (version 1): node 'y'\n"
        "com.microsoft.nchwc lays tensors out for the machine on which onnxruntime optimised the model: save it with ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL",
    ),
    "complex numbers": (chain("Identity", type=TensorProto.COMPLEX64), "value 'x' has type complex64, which is not supported"),
    "strings": (
        model([node("NonZero", "x", "y")], [("x", TensorProto.STRING, [3])], [("y", TensorProto.INT64, [1, "n"])]),
        "node 'y' (NonZero): input 0 has type string, which is not supported",
    ),
    "a string constant": (
        model([node("NonZero", "s", "y")], [], [("y", TensorProto.INT64, [1, "n"])], [helper.make_tensor("s", TensorProto.STRING, [1], [b"text"])]),
        "node 'y' (NonZero): input 0 has type string, which is not supported",
    ),
    "a type that ONNX lacks": (adding(raw_weight(data_type=77, raw_data=b"\0" * 16)), "initialiser 'w' has element type 77, which ONNX does not define"),
    "types that differ": (
        model([node("Add", "x z", "y")], [X, ("z", TensorProto.INT32, [2, 3])], [Y]),
        "node 'y' (Add): input 1 has type int32, expected float32 as input 0",
    ),
    # Impossible dims
    "declared type": (
        model([node("Neg", "x", "y")], [X], [("y", TensorProto.DOUBLE, [2, 3])]),
        "node 'y' (Neg): output 'y' is float32 2x3, but the model declares float64 2x3",
    ),
    "reshape": (
        model([node("Reshape", "x shape", "y")], [X], [OPEN], {"shape": np.array([4, 2])}),
        "node 'y' (Reshape): input of shape 2x3 cannot be reshaped to 4x2",
    ),
    "reshape with -1": (
        model([node("Reshape", "x shape", "y")], [X], [OPEN], {"shape": np.array([4, -1])}),
        "node 'y' (Reshape): input of shape 2x3 cannot be reshaped to 4x-1",
    ),
    "broadcast": (model([node("Add", "x z", "y")], [X, ("z", FLOAT, [4])], [OPEN]), "node 'y' (Add): shapes 2x3 and 4 cannot be broadcast together"),
    "several at once": (
        model([node("Add", "x z", "a"), node("Neg", "a", "b"), node("Softmax", "x", "c", axis=5)], [X, ("z", FLOAT, [4])], [("b", *OPEN[1:]), ("c", *OPEN[1:])]),
        "2 nodes cannot be compiled:\n"
        "  node 'a' (Add): shapes 2x3 and 4 cannot be broadcast together\n"
        "  node 'c' (Softmax): axis is 5, expected one in [-2, 1]",
    ),
    "argument of a function left out": (
        parser.parse_model("""
            <ir_version: 10, opset_import: ["": 22, "local": 1]>
            tiny (float[2,3] x) => (float[2,3] y) { y = local.Sum (x) }
            <domain: "local", opset_import: ["": 22]>
            Sum (a, b) => (r) { r = Add (a, b) }"""),
        "node 'y' (Add): input 1 is missing",
    ),
    "condition that is a number": (
        parser.parse_model(f"""<ir_version: 10, opset_import: ["": 22]> tiny (float[2,3] x, float c) => (float[2,3] y) {{ y = If (c) <{BRANCHES}> }}"""),
        "node 'y' (If): cond is float32, expected bool",
    ),
    "branch of too few outputs": (
        parser.parse_model(f"""<ir_version: 10, opset_import: ["": 22]> tiny (float[2,3] x) => (float[2,3] y, float[2,3] z) <bool c = {{1}}> {{ y, z = If (c) <{BRANCHES}> }}"""),
        "node 'y' (If): a branch has 1 outputs, expected 2",
    ),
    "count of another type": (loop("int32 n, bool c"), "node 'y' (Loop): M is int32, expected int64"),
    "condition of another type": (loop("int64 n, uint8 c"), "node 'y' (Loop): cond is uint8, expected bool"),
    "next condition of another type": (loop(goes="ReduceMax <keepdims = 0> (u)"), "node 'y' (Loop): the body's cond is float32, expected bool"),
    "several next conditions": (loop(goes="Greater (u, x)"), "node 'y' (Loop): the body's cond has shape 2x3, expected one element"),
    "missing factor": (
        model([helper.make_node("Einsum", ["x", "", "x"], ["y"], name="y", equation="ij,jk,kl->il")], [X], [OPEN]),
        "node 'y' (Einsum): input 1 is missing",
    ),
    "index twice in a result": (
        model([helper.make_node("Einsum", ["x"], ["y"], name="y", equation="ij->ijj")], [X], [OPEN]),
        "node 'y' (Einsum): the result has index 'j' twice",
    ),
    "result without ellipsis": (
        model([helper.make_node("Einsum", ["x"], ["y"], name="y", equation="...i->i")], [X], [OPEN]),
        "node 'y' (Einsum): equation has an ellipsis of 1 axes that the result has not",
    ),
    "too many arguments of a function": (
        parser.parse_model("""
            <ir_version: 10, opset_import: ["": 22, "local": 1]>
            tiny (float[2,3] x) => (float[2,3] y) { y = local.Same (x, x) }
            <domain: "local", opset_import: ["": 22]>
            Same (a) => (r) { r = Neg (a) }"""),
        "the model's functions cannot be inlined: Number of actual parameters cannot exceed number of formal parameters",
    ),
    "too many axes": (chain("Neg", shape=(1,) * 17), "value 'x' has 17 axes, expected at most 16"),
    "too large to index": (chain("Neg", shape=(1 << 16, 1 << 16)), "value 'x' has shape 65536x65536, expected at most 2147483647 elements"),
    "too large for 64 bits": (
        chain("Neg", shape=(1 << 40, 1 << 40)),
        "value 'x' has shape 1099511627776x1099511627776, expected at most 2147483647 elements",
    ),
    "reshape to negative extents": (
        model([node("Reshape", "x shape", "y")], [X], [OPEN], {"shape": np.array([-2, -3])}),
        "node 'y' (Reshape): value 'y' has shape -2x-3, expected extents of 0 or more",
    ),
    "parts of negative length": (
        model([node("Split", "x parts", "y z", axis=1)], [X], [OPEN, ("z", *OPEN[1:])], {"parts": np.array([-1, 4])}),
        "node 'y' (Split): value 'y' has shape 2x-1, expected extents of 0 or more",
    ),
    "repeated a negative number of times": (
        model([node("Tile", "x counts", "y")], [X], [OPEN], {"counts": np.array([1, -1])}),
        "node 'y' (Tile): value 'y' has shape 2x-3, expected extents of 0 or more",
    ),
    "an endless range": (
        model([node("Range", "start limit delta", "y")], [], [("y", FLOAT, [None])], {"start": np.float32(0), "limit": np.float32(np.inf), "delta": np.float32(1)}),
        "node 'y' (Range): the number of elements is inf, expected at most 2147483647",
    ),
    "a window longer than any tensor": (
        model([node("MaxPool", "x", "y", kernel_shape=[2**62], dilations=[8])], [("x", FLOAT, [1, 1, 4])], [("y", FLOAT, [None, None, None])]),
        "node 'y' (MaxPool): kernel_shape has the value 4611686018427387904, expected 1 to 2147483647",
    ),
    "operand of no elements": (
        model([node("Range", "start limit delta", "y")], [], [("y", FLOAT, [None])], {name: np.zeros(0 if name == "delta" else (), np.float32) for name in ("start", "limit", "delta")}),
        "node 'y' (Range): input 2 ('delta') has 0 elements, expected 1",
    ),
    "declared rank where the shape comes at run time": (
        model([node("CenterCropPad", "x shape", "y", axes=[1])], [X, ("shape", TensorProto.INT64, [1])], [("y", FLOAT, [4])]),
        "node 'y' (CenterCropPad): output 'y' is declared with rank 1, expected 2",
    ),
    "shape of unknown rank": (
        model([node("Reshape", "x shape", "y")], [X, ("shape", TensorProto.INT64, ["n"])], [OPEN]),
        "node 'y' (Reshape): input 1 ('shape') must be known before run time",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_model(onnx2halide, tmp_path, name):
    refused_model(onnx2halide, tmp_path, *MODELS[name])


def test_constant_that_a_node_refuses(onnx2halide, tmp_path):
    """The compiler computes what follows from constants, and reports the errors of a run."""
    constants = {"w": np.ones(2, np.float32), "i": np.array([[5]]), "u": np.ones(1, np.float32), "t": np.ones(2, np.float32)}
    bad = model([node("Add", "w t", "s"), node("ScatterND", "s i u", "z"), node("Add", "x z", "y")], [("x", FLOAT, [2])], [("y", FLOAT, [2])], constants)
    (tmp_path / "tiny.onnx").write_bytes(bad.SerializeToString())
    refused(onnx2halide, tmp_path, ["tiny.onnx", "-o", "out"], 1, "tiny.onnx: constants: node 'z' (ScatterND): an index of input 1 is 5, expected one in [-2, 1]\n")


def test_bad_model_stops_no_other(onnx2halide, tmp_path):
    (tmp_path / "good.onnx").write_bytes(chain("Neg").SerializeToString())
    (tmp_path / "bad.onnx").write_bytes(b"")
    done = onnx2halide("compile", "bad.onnx", "good.onnx", "-o", "out")
    assert (done.returncode, done.stderr) == (1, "bad.onnx: is not an ONNX model, or is truncated\n")
    assert {path.name.split(".")[0].split("_")[0] for path in (tmp_path / "out").iterdir()} == {"good"}


# ---- External data ----


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"location": "none.bin"}, "external data file 'none.bin' does not exist"),
        ({"location": "short.bin"}, "external data file 'short.bin' has 10 bytes, expected 16 at 0"),
        ({"location": "whole.bin", "offset": 8}, "external data file 'whole.bin' has 16 bytes, expected 16 at 8"),
        ({"location": "whole.bin", "length": 8}, "has 8 bytes, expected 16"),
        ({"location": "whole.bin", "length": "many"}, "external data's length is 'many', expected a number"),
        ({"location": "../outside.bin"}, "external data file '../outside.bin' is outside of the model's folder"),
        ({"location": "sub/../../outside.bin"}, "external data file 'sub/../../outside.bin' is outside of the model's folder"),
        ({"location": "/etc/passwd"}, "external data file '/etc/passwd' is outside of the model's folder"),
        ({"location": "link.bin"}, "external data file 'link.bin' is a link, expected a plain file"),
        ({"location": "."}, "external data file '.' is not a plain file"),
        ({"location": None}, "external data file '' is not a plain file"),
    ],
    ids=lambda value: str(value.get("location")) if isinstance(value, dict) else "",
)
def test_external_data(onnx2halide, tmp_path, fields, message):
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(b"\0" * 16)
    (folder / "short.bin").write_bytes(b"\0" * 10)
    (folder / "whole.bin").write_bytes(b"\0" * 16)
    (folder / "link.bin").symlink_to(folder / "whole.bin")
    (folder / "tiny.onnx").write_bytes(with_external_weight(**fields).SerializeToString())
    separator = " " if message.startswith("has ") else ": "
    refused(onnx2halide, tmp_path, ["models/tiny.onnx", "-o", "out"], 1, f"models/tiny.onnx: initialiser 'w'{separator}{message}\n")
