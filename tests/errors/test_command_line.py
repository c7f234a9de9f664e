"""Faults of the command line, the environment or the disk: the whole message, the exit status, and nothing left in the output folder."""

import os
import re
import resource
import shutil

import numpy as np
import onnx
import pytest
from make_models import FLOAT, chain, model, node
from refusals import OPEN, X, refused

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
        (["--target", ""], 2, "--target: '', expected a target\n" + HELP),
        (
            ["--target", "x86-64-linux-c_plus_plus_name_mangling"],
            2,
            "--target: 'x86-64-linux-c_plus_plus_name_mangling' is not supported, expected kernels with C names, not c_plus_plus_name_mangling\n" + HELP,
        ),
        (["--cc", "no-such-compiler"], 2, "--cc: no-such-compiler cannot be started: No such file or directory\n" + HELP),
        (["--cc", "false"], 2, "--cc: false -dumpmachine names no machine, expected a C compiler such as gcc or clang\n" + HELP),
        (["--cc", "/"], 2, "--cc: / cannot be started: Permission denied\n" + HELP),
        (["--cc", ""], 2, "--cc: '', expected a C compiler's command\n" + HELP),
        (["--name", ""], 2, "--name: '', expected a name\n" + HELP),
        (["--until", ""], 2, "--until: '', expected a name\n" + HELP),
        (["--name", "my model"], 2, "--name: 'my model' cannot name C functions, expected one such as 'my_model'\n" + HELP),
        (["--name", "float"], 2, "--name: 'float' cannot name C functions, expected one such as 'model_float'\n" + HELP),
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
    """Names of inputs may contain colons and slashes."""
    images = model([node("Neg", "/in:0", "y")], [("/in:0", FLOAT, dims)], [("y", FLOAT, [None] * 4)])
    (tmp_path / "tiny.onnx").write_bytes(images.SerializeToString())
    expected = f"tiny.onnx: --dim z=1: the model leaves no dim of that name open; open are: {message}\n"
    refused(onnx2halide, tmp_path, ["tiny.onnx", *words, "--dim", "z=1", "-o", "out"], 1, expected)
    # What the message suggests works.
    given = [word for key in message.split(", ") for word in ("--dim", f"{key}=5")]
    assert onnx2halide("tiny.onnx", *words, *given, "-o", "out", "--sources-only").returncode == 0


def test_declared_shapes_that_cannot_be_are_warned_of(onnx2halide, tmp_path):
    """As in other runtimes, the shapes that follow from the inputs take precedence."""
    nodes = [node("Neg", "x", "a"), node("Abs", "a", "y")]
    (tmp_path / "one.onnx").write_bytes(model(nodes, [X], [("y", FLOAT, [2, 3, 1])]).SerializeToString())
    (tmp_path / "two.onnx").write_bytes(model(nodes, [X], [("y", FLOAT, [2, 4])], value_info=[("a", FLOAT, [2, 5])]).SerializeToString())
    done = onnx2halide("one.onnx", "two.onnx", "-o", "out", "--sources-only")
    assert done.returncode == 0
    assert done.stderr == (
        "one.onnx: node 'y' (Abs): output 'y' is float32 2x3, but the model declares float32 2x3x1\n"
        "two.onnx: node 'a' (Neg): output 'a' is float32 2x3, but the model declares float32 2x5; and 1 more such shapes\n"
    )


def test_branches_that_do_not_fit_are_warned_of(onnx2halide, tmp_path):
    text = """<ir_version: 10, opset_import: ["" : 20]> g (float[2,3] x, bool k) => (float[n] y) {
        z = If (k) <then_branch = a () => (u) { u = Identity (x) }, else_branch = b () => (v) { last = Constant <value_ints = [2]> () v = Unsqueeze (x, last) }>
        axes = Constant <value_ints = [0, 2]> () y = ReduceSum <keepdims = 0> (z, axes)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "tiny.onnx")
    done = onnx2halide("tiny.onnx", "-o", "out", "--sources-only")
    assert (done.returncode, done.stderr) == (
        0,
        "tiny.onnx: node 'z' (If): then_branch fails at run time: its results have another rank and do not fit what follows: "
        "node 'y' (ReduceSum): axis is 2, expected one in [-2, 1]\n",
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


def test_bounds_of_dims_of_one_name_all_count(onnx2halide, tmp_path):
    inputs = [("a", FLOAT, ["n", 3]), ("b", FLOAT, ["n", 3])]
    (tmp_path / "tiny.onnx").write_bytes(model([node("Add", "a b", "y")], inputs, [("y", *OPEN[1:])]).SerializeToString())
    for dims, bounds in ((["a:0=2..8", "b:0=1..4"], "2, 4"), (["n=2..8", "b:0=1..4"], "2, 4"), (["b:0=1..4"], "1, 4")):
        words = [word for dim in dims for word in ("--dim", dim)]
        assert onnx2halide("tiny.onnx", *words, "-o", "out", "--sources-only", "--overwrite").returncode == 0
        rows = (tmp_path / "out" / "tiny.c").read_text()
        assert f'{{"n", 0, 0, {bounds}}}' in rows
    assert "open dims" not in onnx2halide("inspect", "tiny.onnx", "--dim", "a:0=1..4", "--dim", "b:0=4..8").stdout
    shutil.rmtree(tmp_path / "out")
    message = "tiny.onnx: --dim b:0=8..9: other bounds restrict the dim 'n' to 1..4\n"
    refused(onnx2halide, tmp_path, ["tiny.onnx", "--dim", "a:0=1..4", "--dim", "b:0=8..9", "-o", "out"], 1, message)


def test_dim_of_zero(onnx2halide, tmp_path):
    """0 is allowed, since a past may be empty."""
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
    """A limit on the size of files simulates a full disk: writing fails, with a different reason."""
    weights = np.ones(1 << 16, np.float32)
    (tmp_path / "tiny.onnx").write_bytes(model([node("Add", "x w", "y")], [("x", FLOAT, [1 << 16])], [("y", FLOAT, [1 << 16])], {"w": weights}).SerializeToString())
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)), "restore_signals": False}
    done = onnx2halide("tiny.onnx", "-o", "out", **limits)
    assert done.returncode == 1
    assert re.fullmatch(r"tiny\.onnx: out/onnx2halide-\w+/tiny\.weights cannot be written: File too large\n", done.stderr), done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_build_of_what_was_not_compiled(onnx2halide, tmp_path):
    for folder, message in (("none", "none: cannot be read: No such file or directory\n"), (".", ".: contains no manifest (NAME.json) of a compiled model\n")):
        done = onnx2halide("build", folder)
        assert (done.returncode, done.stderr) == (1, message)
