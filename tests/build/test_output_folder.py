"""What `compile` and `build` leave in a folder that holds a compiled model."""

import fcntl
import json
import os
import re
import subprocess
import time

import make_models
import numpy as np
import pytest
from onnx2halide.model import Model
from paths import COMPILER, ROOT

VERSION = re.search(r"VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text().split("project(")[1])[1]
FORMAT = re.search(r"manifest_format = (\d+)", (ROOT / "compiler" / "driver" / "manifest.h").read_text())[1]


@pytest.fixture
def folder(onnx2halide, tmp_path):
    """A folder into which a model was compiled; compiling it again is quick."""
    (tmp_path / "tiny.onnx").write_bytes(make_models.chain("Neg").SerializeToString())
    assert onnx2halide("tiny.onnx", "-o", "out").returncode == 0
    return tmp_path / "out"


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kernel(folder) -> str:
    return json.loads((folder / "tiny.json").read_text())["kernels"][0]["name"]


def refused(onnx2halide, folder, files):
    before = contents(folder)
    done = onnx2halide("tiny.onnx", "-o", "out")
    message = f"tiny.onnx: would overwrite what it did not emit in out: {files}; name another folder with -o, or give --overwrite\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["-dash", "100%sure", 'quo"te\\', "two\nlines", "größe und $HOME", "{}@NAME@"])
def test_any_name_of_a_folder(onnx2halide, tmp_path, name):
    """No tool mistakes the names for an option, a pattern or code."""
    (tmp_path / "layer.onnx").write_bytes(make_models.layer().SerializeToString())
    words = ["compile", "layer.onnx", "-o", name, "--emit", "shared_library"]
    for command in (words, ["build", f"./{name}"]):
        done = onnx2halide(*command)
        assert (done.returncode, done.stderr) == (0, "")
        assert Model(tmp_path / name / "layer.so").run([np.zeros((4, 3), np.float32)])[0].shape == (4, 5)


# ---- Sources that a person has edited ----


def test_what_was_not_edited_is_overwritten(onnx2halide, folder):
    before = contents(folder)
    assert onnx2halide("tiny.onnx", "-o", "out").returncode == 0
    assert contents(folder) == before


def test_edited_sources_are_kept(onnx2halide, folder):
    emitted = contents(folder)
    for name in ("tiny.c", "tiny_generators.cpp"):
        with open(folder / name, "a") as file:
            file.write("// mine\n")
    refused(onnx2halide, folder, "tiny_generators.cpp, tiny.c")
    assert onnx2halide("build", "out").returncode == 0
    refused(onnx2halide, folder, "tiny_generators.cpp, tiny.c")

    assert onnx2halide("tiny.onnx", "-o", "out", "--overwrite").returncode == 0
    assert contents(folder) == emitted


def test_header_that_build_changes_is_not_edited(onnx2halide, folder):
    assert onnx2halide("tiny.onnx", "-o", "out", "--sources-only").returncode == 0
    source = (folder / "tiny_generators.cpp").read_bytes()
    assert onnx2halide("build", "out").returncode == 0
    assert (folder / "tiny_generators.cpp").read_bytes() == source
    assert onnx2halide("tiny.onnx", "-o", "out").returncode == 0


def test_files_of_other_origin_are_kept(onnx2halide, tmp_path, folder):
    for file in folder.iterdir():
        file.unlink()
    (folder / "tiny.c").write_text("int main(void) { return 0; }\n")
    (folder / "tiny.json").write_text("{}\n")
    refused(onnx2halide, folder, "tiny.c, tiny.json")


def test_what_is_built_replaces_no_files_of_other_origin(onnx2halide, tmp_path, folder):
    """Such as the model's own external data."""
    before = contents(folder)
    for file in folder.iterdir():
        file.unlink()
    others = [f"tiny{suffix}" for suffix in (".weights", ".a", ".pc")]
    for file in others:
        (folder / file).write_text("mine")
    refused(onnx2halide, folder, ", ".join(others))
    assert onnx2halide("tiny.onnx", "-o", "out", "--overwrite").returncode == 0
    assert contents(folder) == before

    (folder / "tiny.so").write_text("mine")
    assert onnx2halide("tiny.onnx", "-o", "out").returncode == 0
    done = onnx2halide("tiny.onnx", "-o", "out", "--emit", "shared_library")
    assert (done.returncode, "tiny.so" in done.stderr, (folder / "tiny.so").read_text()) == (1, True, "mine")


def test_emitted_files_without_a_manifest_are_overwritten(onnx2halide, folder):
    """A compiler that was killed while it moved its files leaves such a folder."""
    before = contents(folder)
    (folder / "tiny.json").unlink()
    assert onnx2halide("tiny.onnx", "-o", "out").returncode == 0
    assert contents(folder) == before


def test_one_compiler_at_a_time_moves_its_files(tmp_path):
    """Otherwise a library of one could get the header of another."""
    (tmp_path / "tiny.onnx").write_bytes(make_models.chain("Neg").SerializeToString())
    out = tmp_path / "out"
    out.mkdir()
    folder = os.open(out, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as another compiler holds it
    process = subprocess.Popen([COMPILER, "tiny.onnx", "-o", "out"], cwd=tmp_path)
    while not list(out.glob("*/tiny.json")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    assert process.poll() is None and not (out / "tiny.a").exists()
    os.close(folder)
    assert process.wait(timeout=60) == 0
    assert {"tiny.a", "tiny.h", "tiny.json"} <= set(os.listdir(out))


# ---- Folders of other compilers ----


@pytest.mark.parametrize(
    "changes, writer",
    [({"format": 0}, f"{VERSION} in format 0"), ({"format": None}, f"{VERSION} in format 0"), ({"compiler": "0.0.1"}, f"0.0.1 in format {FORMAT}")],
    ids=["an older format", "no format", "an older version"],
)
def test_build_refuses_folders_of_other_compilers(onnx2halide, folder, changes, writer):
    manifest = json.loads((folder / "tiny.json").read_text()) | changes
    (folder / "tiny.json").write_text(json.dumps({key: value for key, value in manifest.items() if value is not None}))
    before = contents(folder)
    done = onnx2halide("build", "out")
    message = f"out/tiny.json: was written by onnx2halide {writer}, this is {VERSION} with format {FORMAT}; compile the model again\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert contents(folder) == before


# ---- Further results ----

SUFFIXES = {"stmt": ".stmt", "stmt_html": ".stmt.html", "assembly": ".s", "llvm_assembly": ".ll"}  # Halide's


def further(folder) -> set[str]:
    return {name for name in contents(folder) if name.startswith("tiny_") and name != "tiny_generators.cpp" or name == "tiny.so"}


@pytest.mark.parametrize("command", [["tiny.onnx", "-o", "out"], ["build", "out"]], ids=["compile", "build"])
def test_further_results_are_named_as_halide_names_them(onnx2halide, folder, command):
    done = onnx2halide(*command, "--emit", ",".join([*SUFFIXES, "shared_library"]))
    assert (done.returncode, done.stderr) == (0, "")
    name = kernel(folder)
    assert further(folder) == {"tiny.so"} | {f"tiny_{name}{suffix}" for suffix in SUFFIXES.values()}
    assert f"{name}_kernel" in (folder / f"tiny_{name}.stmt").read_text()
    assert (folder / f"tiny_{name}.stmt.html").read_text().startswith("<!DOCTYPE html>")
    assert f"{name}_kernel:" in (folder / f"tiny_{name}.s").read_text()
    assert "target triple" in (folder / f"tiny_{name}.ll").read_text()


def test_compile_removes_what_it_left_before_and_leaves_no_more(onnx2halide, folder):
    (folder / "mine.txt").write_text("of no concern")
    assert onnx2halide("tiny.onnx", "-o", "out", "--emit", "stmt,shared_library").returncode == 0
    assert len(further(folder)) == 2
    assert onnx2halide("tiny.onnx", "-o", "out").returncode == 0
    assert further(folder) == set()
    assert onnx2halide("tiny.onnx", "-o", "out", "--sources-only").returncode == 0
    assert contents(folder).keys() == {"tiny.c", "tiny.h", "tiny.json", "tiny.weights", "tiny_generators.cpp", "mine.txt"}


def test_build_makes_further_results_anew(onnx2halide, folder):
    assert onnx2halide("tiny.onnx", "-o", "out", "--emit", "stmt").returncode == 0
    statement = folder / f"tiny_{kernel(folder)}.stmt"
    before = statement.read_text()
    path = folder / "tiny_generators.cpp"
    edited = re.sub(r"\.fuse\((\w+), (\w+), (\w+)\);", r".fuse(\1, \2, \3).unroll(\3, 2);", path.read_text())
    assert edited != path.read_text()
    path.write_text(edited)
    assert onnx2halide("build", "out").returncode == 0
    assert statement.read_text() != before
    assert further(folder) == {statement.name}
    assert onnx2halide("build", "out", "--emit", "assembly").returncode == 0
    assert further(folder) == {f"tiny_{kernel(folder)}.s"}


# ---- The folder that the compiler was started in ----


def test_folder_that_was_removed(tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(make_models.layer().SerializeToString())
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$1/tiny.onnx" -o "$1/out"'
    done = subprocess.run(
        ["sh", "-c", script, COMPILER, tmp_path],
        cwd=tmp_path,
        env=os.environ | {"ONNX2HALIDE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "tiny.a").exists()
