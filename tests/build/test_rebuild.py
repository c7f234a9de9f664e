"""`build DIR` after a person has edited the generators."""

import json
import re

import make_models
import numpy as np
import pytest
from link_programs import link, numbers, run

PARAMETER = re.compile(r'GeneratorParam<int> (\w+)\{"\1", (\d+)\};')


@pytest.fixture
def folder(onnx2halide, tmp_path):
    """A compiled model that the test may edit."""
    (tmp_path / "image.onnx").write_bytes(make_models.image().SerializeToString())
    assert onnx2halide("image.onnx", "-o", "image").returncode == 0
    return tmp_path / "image"


def features(folder, tmp_path) -> list[float]:
    return numbers(run(link("print_features.c", [folder], tmp_path / "program")))


def edit(folder, change):
    path = folder / "image_generators.cpp"
    text = path.read_text()
    changed = change(text)
    assert changed != text
    path.write_text(changed)


def other_numbers(text: str) -> str:
    """Halves every number above 1 of a schedule."""
    return PARAMETER.sub(lambda found: f'GeneratorParam<int> {found[1]}{{"{found[1]}", {max(1, int(found[2]) // 2)}}};', text)


def too_large_numbers(text: str) -> str:
    """Makes every number of a schedule larger than its extent."""
    return PARAMETER.sub(lambda found: f'GeneratorParam<int> {found[1]}{{"{found[1]}", 60}};', text)


@pytest.mark.parametrize("change", [other_numbers, too_large_numbers])
def test_edited_schedule(onnx2halide, folder, tmp_path, change):
    before, archive = features(folder, tmp_path), (folder / "image.a").read_bytes()
    edit(folder, change)
    done = onnx2halide("build", "image")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "image.a").read_bytes() != archive
    assert np.allclose(features(folder, tmp_path), before, rtol=1e-4, atol=1e-4)


def test_build_without_a_change_makes_the_same_files(onnx2halide, folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert onnx2halide("build", "image").returncode == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_more_scratch_memory_is_told_in_the_header(onnx2halide, folder, tmp_path):
    """A whole image that is computed before its consumer needs memory of its own."""
    assert onnx2halide("image.onnx", "-o", "image", "--convolution", "direct").returncode == 0
    before = features(folder, tmp_path)
    copy = re.search(r"(\w+_input)\.compute_at\((\w+), \w+\)([^;]*)\n *\.bound_storage\([^\n]*\)", (folder / "image_generators.cpp").read_text())
    edit(folder, lambda text: text.replace(copy[0], f"{copy[1]}.compute_root(){copy[3]}"))
    sizes = [re.search(r"IMAGE_SCRATCH_SIZE (\d+)", (folder / "image.h").read_text())[1]]
    assert onnx2halide("build", "image").returncode == 0
    sizes.append(re.search(r"IMAGE_SCRATCH_SIZE (\d+)", (folder / "image.h").read_text())[1])
    assert int(sizes[1]) > int(sizes[0])
    assert np.allclose(features(folder, tmp_path), before, rtol=1e-4, atol=1e-4)


def test_syntax_error_names_kernel_and_line(onnx2halide, folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".cpp"}
    edit(folder, lambda text: text.replace("    void schedule() {\n", "    void schedule() {\n        oops;\n", 1))
    text = (folder / "image_generators.cpp").read_text()
    kernel = re.search(r"class (\w+) ", text)[1]
    line = text[: text.index("oops")].count("\n") + 1
    done = onnx2halide("build", "image")
    assert done.returncode == 1
    assert done.stderr.startswith(f"image_generators.cpp: kernel '{kernel}': its generator does not compile:\n")
    assert f"image_generators.cpp:{line}:9: error: use of undeclared identifier 'oops'" in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".cpp"} == before


def test_syntax_error_in_the_host_program_names_its_line(onnx2halide, folder):
    path = folder / "image.c"
    path.write_text(path.read_text() + "oops oops;\n")
    line = path.read_text().count("\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = onnx2halide("build", "image")
    assert done.returncode == 1
    assert done.stderr.startswith(f"image: image.c does not compile:\nimage/image.c:{line}:1: "), done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("suffix", [".c", ".h", "_generators.cpp", ".weights"])
def test_missing_file(onnx2halide, folder, suffix):
    (folder / f"image{suffix}").unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = onnx2halide("build", "image")
    assert (done.returncode, done.stderr) == (1, f"image/image{suffix} cannot be read: No such file or directory\n")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_manifest_without_a_field(onnx2halide, folder):
    manifest = json.loads((folder / "image.json").read_text())
    del manifest["target"]
    (folder / "image.json").write_text(json.dumps(manifest))
    done = onnx2halide("build", "image")
    assert done.returncode == 1
    assert done.stderr.startswith("image: is not a complete manifest: ")


def test_schedule_that_halide_refuses_names_the_kernel(onnx2halide, folder):
    edit(folder, lambda text: text.replace(".reorder(c,", ".reorder(c, c,", 1))
    done = onnx2halide("build", "image")
    assert done.returncode == 1
    assert re.match(r"image_generators\.cpp: kernel '\w+': its generator fails:\n", done.stderr), done.stderr


def test_class_that_is_gone(onnx2halide, folder):
    kernel = re.search(r"class (\w+) ", (folder / "image_generators.cpp").read_text())[1]
    edit(folder, lambda text: re.sub(r"class .*?HALIDE_REGISTER_GENERATOR\(\w+, \w+\)\n", "", text, count=1, flags=re.DOTALL))
    done = onnx2halide("build", "image")
    assert (done.returncode, done.stderr) == (1, f"image_generators.cpp: class {kernel} is missing\n")
