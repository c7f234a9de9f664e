"""Bad input to the compiler: the whole message, the exit status, and nothing left in the output folder."""

import os
import re
import resource

import numpy as np
import pytest
from make_models import FLOAT, chain, model, node, with_external_weight
from onnx import TensorProto, helper, parser
from paths import ROOT

DIGITS = ROOT / "scripts" / "digits" / "digits.onnx"


def refused(onnx2halide, tmp_path, words, status, message):
    """Runs `compile`, which must end with this status and message and leave nothing behind."""
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    done = onnx2halide("compile", *words)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)
    (tmp_path / "out").is_dir() and (tmp_path / "out").rmdir()  # which fails unless it is empty
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


# ---- Files that are no models ----


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

X, Y = ("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 3])
OPEN = ("y", FLOAT, [None, None])


def raw_weight(**fields) -> list[TensorProto]:
    return [TensorProto(**{"name": "w", "data_type": FLOAT, "dims": [4]} | fields)]


def adding(weights) -> object:
    return model([node("Add", "x w", "y")], [("x", FLOAT, [4])], [("y", FLOAT, [4])], weights)


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
    # Dims that cannot be
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
    "too many arguments of a function": (
        parser.parse_model("""
            <ir_version: 10, opset_import: ["": 22, "local": 1]>
            tiny (float[2,3] x) => (float[2,3] y) { y = local.Same (x, x) }
            <domain: "local", opset_import: ["": 22]>
            Same (a) => (r) { r = Neg (a) }"""),
        "the model's functions cannot be inlined: Number of actual parameters cannot exceed number of formal parameters",
    ),
    "too large to index": (chain("Neg", shape=(1 << 16, 1 << 16)), "value 'x' has shape 65536x65536, expected at most 2147483647 elements"),
    "too large for 64 bits": (
        chain("Neg", shape=(1 << 40, 1 << 40)),
        "value 'x' has shape 1099511627776x1099511627776, expected at most 2147483647 elements",
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
    bad, message = MODELS[name]
    (tmp_path / "tiny.onnx").write_bytes(bad.SerializeToString())
    refused(onnx2halide, tmp_path, ["tiny.onnx", "-o", "out"], 1, f"tiny.onnx: {message}\n")
    inspected = onnx2halide("inspect", "tiny.onnx")
    assert (inspected.returncode, inspected.stderr) == (1, f"tiny.onnx: {message}\n")
    assert inspected.stdout.startswith("model       tiny.onnx (opset ")


def test_constant_that_a_node_refuses(onnx2halide, tmp_path):
    """What follows from constants is computed by the compiler, which tells what a run would."""
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
        ({"location": "."}, "external data file '.' is no plain file"),
        ({"location": None}, "external data file '' is no plain file"),
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


# ---- The command line ----

HELP = "Run with --help for more information.\n"
IMAGES = ("x", FLOAT, ["batch", 3, "height", "width"])


@pytest.mark.parametrize(
    "words, status, message",
    [
        (["--dim", "depth=8"], 1, "tiny.onnx: --dim depth=8: the model leaves no dim of that name open; open are: batch, height, width\n"),
        (["--dim", "height=8", "--dim", "width=7"], 1, "tiny.onnx: node 'y' (Add): shapes [batch, 3, 8, 7] and 8 cannot be broadcast together\n"),
        (["--dim", "x:4=8"], 1, "tiny.onnx: --dim x:4=8: the model leaves no dim of that name open; open are: batch, height, width\n"),
        *((["--dim", dim], 2, f"--dim: '{dim}', expected NAME=NUMBER, NAME=MIN..MAX or the same with INPUT:AXIS\n" + HELP) for dim in ("height", "height=tall", "height=-1", "height=99999999999999999999", "height=4..2", "height=1..", "height=1..2..3")),
        (["--dim", "height=1", "--dim", "height=2"], 2, "--dim: 'height' is given twice, as 1 and 2\n" + HELP),
        (["--target", "x86-64-linux-avx2,arm-64-linux"], 2, "--target: 'x86-64-linux-avx2' and 'arm-64-linux' are not for one processor\n" + HELP),
        (["--target", "z80"], 2, "--target: 'z80' is not a target that Halide knows, expected one such as host, x86-64-linux-avx2-fma-f16c, arm-64-linux or host-opencl\n" + HELP),
        *(
            (["--target", target], 2, f"--target: '{target}' is not supported, expected Linux on x86 or ARM, and of GPUs opencl or cuda\n" + HELP)
            for target in ("x86-64-windows", "wasm-32-wasmrt", "x86-64-linux-vulkan", "hexagon-32-noos")
        ),
        (["--cc", "no-such-compiler"], 2, "--cc: no-such-compiler cannot be started: No such file or directory\n" + HELP),
        (["--cc", "false"], 2, "--cc: false -dumpmachine names no machine, expected a C compiler such as gcc or clang\n" + HELP),
        (["--cc", "/"], 2, "--cc: / cannot be started: Permission denied\n" + HELP),
        (["--cc", ""], 2, "--cc: '', expected a C compiler's command\n" + HELP),
        (["--name", "my model"], 2, "--name: 'my model' cannot name C functions, expected one such as 'my_model'\n" + HELP),
        (["--name", "float"], 2, "--name: 'float' cannot name C functions, expected one such as 'float_2'\n" + HELP),
        (["--emit", "poem"], 2, "--emit: 'poem', expected one of shared_library, stmt, stmt_html, assembly, llvm_assembly, schedule\n" + HELP),
        (
            ["--emit", "stmt,schedule"],
            2,
            "--emit: schedule is what an autoscheduler finds, and none runs; the schedules are in NAME_generators.cpp\n" + HELP,
        ),
        (["--emit", "schedule", "--schedule", "auto:li2018"], 2, "--emit: schedule is C++, and li2018 writes none that compiles; the others do\n" + HELP),
        (["--schedule", "fast"], 2, "--schedule: 'fast', expected a file or one of default, naive, auto:mullapudi2016, auto:adams2019, auto:li2018\n" + HELP),
        (
            ["--schedule", "auto:adams2019", "--target", "x86-64-linux-sse41-opencl"],
            2,
            "--schedule: auto:adams2019 schedules for processors, and target x86-64-linux-opencl-sse41 has a GPU\n" + HELP,
        ),
        (["--weights", "cloud"], 2, "--weights: 'cloud', expected one of embed, file\n" + HELP),
        (["--convolution", "2"], 2, "--convolution: '2', expected one of auto, direct, winograd\n" + HELP),
        (["-j", "0"], 2, "-j: '0', expected 1 to 1024\n" + HELP),
        (["--bogus"], 2, "The following argument was not expected: --bogus\n" + HELP),
        (["other/tiny.onnx"], 2, "two models would be called 'tiny': tiny.onnx and other/tiny.onnx\n" + HELP),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_command_line(onnx2halide, tmp_path, words, status, message):
    images = model([node("Add", "x w", "y")], [IMAGES], [("y", FLOAT, [None] * 4)], {"w": np.zeros(8, np.float32)})
    (tmp_path / "tiny.onnx").write_bytes(images.SerializeToString())
    refused(onnx2halide, tmp_path, ["tiny.onnx", *words, "-o", "out"], status, message)


@pytest.mark.parametrize(
    "dims, words, message",
    [
        (["?", 3, "?", "?"], [], "/in:0:0, /in:0:2, /in:0:3"),
        (["?", 3, "?", "?"], ["--dim", "/in:0:2=4"], "/in:0:0, /in:0:3"),
        ([None, 3, "?", "?"], ["--dim", "/in:0:2=4"], "/in:0:0, /in:0:3"),
        ([None, 3, None, None], [], "/in:0:0, /in:0:2, /in:0:3"),
        ([None, 3, "h", None], ["--dim", "h=2"], "/in:0:0, /in:0:3"),
        (["n", 3, "h", "w"], ["--dim", "/in:0:2=2", "--dim", "/in:0:0=1"], "w"),
    ],
)
def test_dims_of_no_clear_name_go_by_input_and_axis(onnx2halide, tmp_path, dims, words, message):
    """Names of inputs may hold colons and slashes."""
    images = model([node("Neg", "/in:0", "y")], [("/in:0", FLOAT, dims)], [("y", FLOAT, [None] * 4)])
    (tmp_path / "tiny.onnx").write_bytes(images.SerializeToString())
    expected = f"tiny.onnx: --dim z=1: the model leaves no dim of that name open; open are: {message}\n"
    refused(onnx2halide, tmp_path, ["tiny.onnx", *words, "--dim", "z=1", "-o", "out"], 1, expected)
    # What the message says is what works.
    given = [word for key in message.split(", ") for word in ("--dim", f"{key}=5")]
    assert onnx2halide("tiny.onnx", *words, *given, "-o", "out", "--sources-only").returncode == 0


def test_declared_shapes_that_cannot_be_are_warned_of(onnx2halide, tmp_path):
    """As other runtimes do, what follows from the inputs is taken."""
    nodes = [node("Neg", "x", "a"), node("Abs", "a", "y")]
    (tmp_path / "one.onnx").write_bytes(model(nodes, [X], [("y", FLOAT, [2, 3, 1])]).SerializeToString())
    (tmp_path / "two.onnx").write_bytes(model(nodes, [X], [("y", FLOAT, [2, 4])], value_info=[("a", FLOAT, [2, 5])]).SerializeToString())
    done = onnx2halide("one.onnx", "two.onnx", "-o", "out", "--sources-only")
    assert done.returncode == 0
    assert done.stderr == (
        "one.onnx: node 'y' (Abs): output 'y' is float32 2x3, but the model declares float32 2x3x1\n"
        "two.onnx: node 'a' (Neg): output 'a' is float32 2x3, but the model declares float32 2x5; and 1 more such shapes\n"
    )


def test_dims_go_by_what_reports_call_them_too(onnx2halide, tmp_path):
    images = model([node("Neg", "in", "y")], [("in", FLOAT, ["unk__1", 3, None, "h.w"])], [("y", FLOAT, [None] * 4)])
    (tmp_path / "tiny.onnx").write_bytes(images.SerializeToString())
    shown = ["unk_1", "in_dim_2", "h_w"]
    assert f"open dims   {', '.join(sorted(shown))}\n" in onnx2halide("inspect", "tiny.onnx").stdout
    given = [word for name in shown for word in ("--dim", f"{name}=5")]
    assert "open dims" not in onnx2halide("inspect", "tiny.onnx", *given).stdout


def test_any_dims_may_stay_open_and_have_bounds(onnx2halide, tmp_path):
    inputs = [("a", FLOAT, ["n", 2]), ("b", FLOAT, ["m", 2])]
    (tmp_path / "tiny.onnx").write_bytes(model([node("Neg", "a", "c"), node("Neg", "b", "d")], inputs, [("c", *OPEN[1:]), ("d", *OPEN[1:])]).SerializeToString())
    assert onnx2halide("tiny.onnx", "--dim", "m=2..7", "-o", "out", "--sources-only").returncode == 0
    rows = (tmp_path / "out" / "tiny.c").read_text()
    assert '{"m", 1, 0, 2, 7}' in rows and '{"n", 0, 0, 1, 2147483647}' in rows


def test_dim_of_zero(onnx2halide, tmp_path):
    """It is allowed, as a past length may be empty."""
    bad = model([node("Conv", "x w", "y")], [("x", FLOAT, [1, 1, "height", 8])], [("y", FLOAT, [None] * 4)], {"w": np.zeros((1, 1, 3, 3), np.float32)})
    (tmp_path / "tiny.onnx").write_bytes(bad.SerializeToString())
    message = "tiny.onnx: node 'y' (Conv): kernel spans 3 elements, the padded input has 0 (with --dim height=0)\n"
    refused(onnx2halide, tmp_path, ["tiny.onnx", "--dim", "height=0", "-o", "out"], 1, message)


def test_usage(onnx2halide, tmp_path):
    refused(onnx2halide, tmp_path, [], 2, "MODEL is required\n" + HELP)
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    refused(onnx2halide, tmp_path, ["tiny.onnx", "-o", "tiny.onnx"], 1, "tiny.onnx: tiny.onnx cannot be made a folder: Not a directory\n")
    assert onnx2halide("ops", "--bogus").returncode == 2
    done = onnx2halide("complie", "tiny.onnx")
    message = "'complie' is neither a command nor a model; commands are compile, build, inspect, ops, run, verify, bench, tune\n" + HELP
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_size_of_the_cache_is_a_number(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    for text in ("many", "-1", "2G", "99999999999999999999"):
        done = onnx2halide("tiny.onnx", "-o", "out", env=os.environ | {"ONNX2HALIDE_CACHE_SIZE": text})
        assert (done.returncode, done.stderr) == (2, f"ONNX2HALIDE_CACHE_SIZE: '{text}', expected a number of bytes\n" + HELP)


def test_number_of_processes_from_the_environment(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    for text in ("0", "many", "1025"):
        done = onnx2halide("tiny.onnx", "-o", "out", env=os.environ | {"ONNX2HALIDE_JOBS": text})
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ONNX2HALIDE_JOBS: '{text}', expected 1 to 1024\n" + HELP)
    assert onnx2halide("tiny.onnx", "-o", "out", env=os.environ | {"ONNX2HALIDE_JOBS": "2"}).returncode == 0


def test_compiler_of_another_processor(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    here = os.uname().machine
    target, compiler = ("arm-64-linux", "aarch64-linux-gnu-gcc") if here == "x86_64" else ("x86-64-linux", "x86_64-linux-gnu-gcc")
    done = onnx2halide("tiny.onnx", "--target", target, "-o", "out")
    message = f"--cc: gcc compiles for {here}-linux-gnu, expected a compiler for target {target} such as {compiler}\n"
    assert (done.returncode, done.stderr) == (2, message + HELP)
    assert onnx2halide("tiny.onnx", "--target", target, "--sources-only", "-o", "out").returncode == 0


def test_no_folder_for_temporary_files(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    done = onnx2halide("tiny.onnx", "-o", "out", env=os.environ | {"TMPDIR": "/none"})
    assert (done.returncode, done.stderr) == (2, "TMPDIR: '/none', expected a folder: No such file or directory\n" + HELP)
    assert not (tmp_path / "out").exists()


def test_no_room_for_the_results(onnx2halide, tmp_path):
    """A limit on the size of files stands for a disk that is full: writing fails, with another reason."""
    weights = np.ones(1 << 16, np.float32)
    (tmp_path / "tiny.onnx").write_bytes(model([node("Add", "x w", "y")], [("x", FLOAT, [1 << 16])], [("y", FLOAT, [1 << 16])], {"w": weights}).SerializeToString())
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)), "restore_signals": False}
    done = onnx2halide("tiny.onnx", "-o", "out", **limits)
    assert done.returncode == 1
    assert re.fullmatch(r"tiny\.onnx: out/onnx2halide-\w+/tiny\.weights cannot be written: File too large\n", done.stderr), done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_build_of_what_was_not_compiled(onnx2halide, tmp_path):
    for folder, message in (("none", "none: cannot be read: No such file or directory\n"), (".", ".: holds no manifest (NAME.json) of a compiled model\n")):
        done = onnx2halide("build", folder)
        assert (done.returncode, done.stderr) == (1, message)
