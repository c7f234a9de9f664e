"""`--schedule auto:NAME`: kernels that Halide's autoschedulers schedule, kernels on which they fail, and schedules in files."""

import re

import make_models
import numpy as np
import onnx
import onnx2halide as package
import pytest
from link_programs import link, numbers, run
from make_models import FLOAT, model, node

AUTOSCHEDULERS = ["mullapudi2016", "adams2019", "li2018"]


@pytest.fixture
def compile_image(onnx2halide, tmp_path):
    """Compiles a small network and returns its folder."""
    (tmp_path / "image.onnx").write_bytes(make_models.image().SerializeToString())

    def compile(schedule: str, *words):
        folder = tmp_path / schedule.replace(":", "_").replace(".", "_")
        done = onnx2halide("image.onnx", "-o", folder, "--schedule", schedule, *words)
        assert done.returncode == 0, done.stderr
        return folder

    return compile


def features(folder, tmp_path) -> list[float]:
    return numbers(run(link("print_features.c", [folder], tmp_path / "program")))


@pytest.mark.parametrize("name", AUTOSCHEDULERS)
def test_results_stay(compile_image, tmp_path, name):
    own = compile_image("default")
    scheduled = compile_image(f"auto:{name}")
    assert (scheduled / "image.a").read_bytes() != (own / "image.a").read_bytes()
    assert np.allclose(features(scheduled, tmp_path), features(own, tmp_path), rtol=1e-4, atol=1e-4)
    # Neither takes the other's objects from the cache.
    assert (compile_image("default") / "image.a").read_bytes() == (own / "image.a").read_bytes()


@pytest.mark.parametrize("name", AUTOSCHEDULERS)
def test_build_schedules_in_the_same_way(onnx2halide, compile_image, name):
    folder = compile_image(f"auto:{name}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert onnx2halide("build", folder).returncode == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "fault, why",
    [
        ('std::__throw_runtime_error("no\\n  idea");', "no idea"),  # generators themselves are compiled without exceptions
        ("Expr() + 1;", "Error: operator+ of undefined Expr"),
        ("abort();", "Aborted"),
        ("raise(SIGXCPU);", "CPU time limit exceeded"),
    ],
)
def test_kernel_that_an_autoscheduler_fails_on_keeps_its_own_schedule(onnx2halide, compile_image, tmp_path, fault, why):
    folder = compile_image("auto:mullapudi2016")
    expected = features(folder, tmp_path)
    path = folder / "image_generators.cpp"
    text = path.read_text().replace('#include "onnx2halide_generators.h"\n', '#include "onnx2halide_generators.h"\n#include <csignal>\n')
    path.write_text(text.replace("if (using_autoscheduler()) {\n", "if (using_autoscheduler()) {\n" + fault, 1))
    kernel = re.search(r"class (\w+) ", text)[1]
    warning = f"image_generators.cpp: kernel '{kernel}' keeps its own schedule, mullapudi2016 fails: {why}\n"
    for _ in range(2):  # the second time from the cache
        done = onnx2halide("build", folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", warning)
    assert np.allclose(features(folder, tmp_path), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.* keeps its own schedule")
@pytest.mark.parametrize("name", AUTOSCHEDULERS)
def test_shapes_that_are_hard_to_schedule(tmp_path, name):
    """No dims, one element, fewer than a vector holds, an open batch."""
    scalar = model([node("ReduceSum", "x", "y", keepdims=0)], [("x", FLOAT, [5])], [("y", FLOAT, [])])
    images = np.random.default_rng(0).normal(size=(2, 3, 6, 6)).astype(np.float32)
    pool = model([node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2])], [("x", FLOAT, ["n", 3, 6, 6])], [("y", FLOAT, ["n", 3, 3, 3])])
    rows = np.arange(5, dtype=np.float32)
    compiled = package.compile_many([scalar, make_models.chain("Neg", shape=()), pool], schedule=f"auto:{name}", cache=tmp_path)
    assert compiled[0].run([rows])[0] == 10
    assert compiled[1].run([np.float32(3)])[0] == -3
    assert np.array_equal(compiled[2].run([images])[0], images.reshape(2, 3, 3, 2, 3, 2).max(axis=(3, 5)))


@pytest.mark.parametrize("schedule", [*(f"auto:{name}" for name in AUTOSCHEDULERS), "mine.cpp"])
def test_schedules_may_compute_elements_twice(tmp_path, schedule):
    """As vectors at the end of a row do that are shifted inwards: a kernel must not overwrite its input."""
    (tmp_path / "mine.cpp").write_text("void q_Mul::schedule() {\n    q.vectorize(x, 8);\n}\n")
    schedule = tmp_path / schedule if schedule == "mine.cpp" else schedule
    nodes = [node("TopK", "x k", "p i", axis=0), node("Mul", "p c", "q"), node("CumSum", "q a", "y")]
    constants = {"k": np.array([21]), "c": np.float32(3), "a": np.array(0)}
    proto = model(nodes, [("x", FLOAT, [21])], [("y", FLOAT, [21])], constants)
    compiled = package.compile(proto, schedule=str(schedule), cache=tmp_path)
    assert np.array_equal(compiled.run([np.ones(21, np.float32)])[0], np.arange(3, 64, 3))


def test_python_passes_warnings_on(tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    real = package.compiler.find_compiler()
    compiler.write_text(f"#!/bin/sh\n{real} \"$@\"\necho \"$2: kernel 'y' is odd\" >&2\necho \"$2: and slow\" >&2\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("ONNX2HALIDE_COMPILER", str(compiler))
    with pytest.warns(UserWarning) as told:
        package.compile(make_models.chain("Neg"), name="small", cache=tmp_path / "cache")
    assert [str(warning.message) for warning in told] == ["small.onnx: kernel 'y' is odd\nsmall.onnx: and slow"]


@pytest.mark.parametrize("name", ["mullapudi2016", "adams2019"])
def test_emitted_schedules_can_be_edited_and_applied(onnx2halide, compile_image, tmp_path, name):
    """Schedules that an autoscheduler found give the same statements when they are read from a file."""
    folder = compile_image(f"auto:{name}", "--emit", "schedule,stmt")
    schedules = (folder / "image_schedules.cpp").read_text()
    (tmp_path / "mine.cpp").write_text(schedules)
    applied = compile_image("mine.cpp", "--emit", "stmt")
    kernels = re.findall(r"void (\w+)::schedule\(\) {\n", schedules)
    assert kernels
    found = loops(folder, kernels)
    assert loops(applied, kernels) == found
    assert np.allclose(features(applied, tmp_path), features(folder, tmp_path), rtol=1e-4, atol=1e-4)

    (tmp_path / "mine.cpp").write_text(schedules.replace(".parallel(", ".serial("))
    edited = compile_image("mine.cpp", "--emit", "stmt")
    assert "parallel" in found and "parallel" not in loops(edited, kernels)
    assert np.allclose(features(edited, tmp_path), features(folder, tmp_path), rtol=1e-4, atol=1e-4)


def loops(folder, kernels) -> str:
    """The heads of all loops of the kernels, without the numbers of variables."""
    heads = (re.findall(r"(?:for|halide_do_par_for) ?\(.*\n", (folder / f"image_{kernel}.stmt").read_text()) for kernel in kernels)
    return re.sub(r"\$\d+|(?<=\bt)\d+", "", "".join("".join(lines) for lines in heads))


def test_kernels_that_the_file_does_not_name_keep_their_schedule(onnx2halide, compile_image, tmp_path):
    own = classes(compile_image("default"))
    kernel = re.search(r"class (\w+) ", own[0])[1]
    (tmp_path / "mine.cpp").write_text(f"// a comment\n\nvoid {kernel}::schedule() {{\n    if (true) {{\n    }}\n\n}}\n")
    given = classes(compile_image("mine.cpp"))
    assert given[0] != own[0] and given[1:] == own[1:]
    assert "            return;\n        }\n        // From mine.cpp.\n        if (true) {\n        }\n\n    }\n" in given[0]


def test_file_may_end_lines_as_windows_does(compile_image, tmp_path):
    kernel = re.search(r"class (\w+) ", classes(compile_image("default"))[0])[1]
    text = f"void {kernel}::schedule() {{\n    if (true) {{\n    }}\n\n}}\n"
    (tmp_path / "mine.cpp").write_text(text)
    plain = classes(compile_image("mine.cpp"))
    (tmp_path / "mine.cpp").write_bytes(text.replace("\n", "\r\n").encode())
    assert classes(compile_image("mine.cpp")) == plain


def classes(folder) -> list[str]:
    """What is emitted after the banner, split at the ends of classes."""
    return (folder / "image_generators.cpp").read_text().split("#include", 1)[1].split("HALIDE_REGISTER_GENERATOR")


@pytest.mark.parametrize(
    "text, message",
    [
        ("void odd::schedule() {\n}\n", "mine.cpp: there is no kernel 'odd', expected one of a_Neg, b_Softmax"),
        ("void a_Neg::schedule() {\n}\nint i;\n", "mine.cpp:3: 'int i;', expected void KERNEL::schedule() {"),
        ("void a_Neg::schedule() {\n}\nvoid a_Neg::schedule() {\n}\n", "mine.cpp:3: kernel 'a_Neg' is scheduled twice"),
        ("void a_Neg::schedule() {\n    }\n", "mine.cpp: the last function is not closed by a line with only }"),
    ],
)
def test_file_that_is_no_schedule(onnx2halide, tmp_path, text, message):
    (tmp_path / "small.onnx").write_bytes(two_kernels().SerializeToString())
    (tmp_path / "mine.cpp").write_text(text)
    done = onnx2halide("small.onnx", "--schedule", "mine.cpp", "-o", "out")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"small.onnx: {message}\n")
    assert not (tmp_path / "out").exists()


def test_file_of_schedules_is_not_lost(onnx2halide, tmp_path):
    (tmp_path / "small.onnx").write_bytes(two_kernels().SerializeToString())
    assert onnx2halide("small.onnx", "--schedule", "auto:mullapudi2016", "--emit", "schedule", "-o", "out").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    done = onnx2halide("small.onnx", "--schedule", "out/small_schedules.cpp", "-o", "out", "--overwrite")
    message = "small.onnx: would remove out/small_schedules.cpp, which --schedule reads; copy it, or name another folder with -o\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_file_of_schedules_is_for_one_model(onnx2halide, tmp_path):
    (tmp_path / "mine.cpp").write_text("")
    for name in ("one", "two"):
        (tmp_path / f"{name}.onnx").write_bytes(two_kernels().SerializeToString())
    done = onnx2halide("compile", "one.onnx", "two.onnx", "--schedule", "mine.cpp", "-o", "out")
    assert done.returncode == 2
    assert done.stderr == "--schedule: mine.cpp is for one model, and there are 2\nRun with --help for more information.\n"


def test_python_sees_that_a_file_of_schedules_changed(tmp_path):
    schedule = tmp_path / "mine.cpp"
    schedule.write_text("")
    package.compile(two_kernels(), schedule=str(schedule), cache=tmp_path / "cache")
    schedule.write_text("int i;\n")
    with pytest.raises(package.CompileError, match="mine.cpp:1: 'int i;', expected void KERNEL::schedule"):
        package.compile(two_kernels(), schedule=str(schedule), cache=tmp_path / "cache")


def two_kernels() -> onnx.ModelProto:
    return model([node("Neg", "x", "a"), node("Softmax", "a", "b")], [("x", FLOAT, [4, 8])], [("a", FLOAT, [4, 8]), ("b", FLOAT, [4, 8])])
