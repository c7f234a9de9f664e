"""The CMake function in users' projects."""

import pathlib
import subprocess
import sys

import make_models
import numpy as np
import pytest
from link_programs import numbers, reference, run
from paths import ROOT

TOOLS = pathlib.Path(sys.prefix) / "bin"

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(onnx2halide REQUIRED PATHS {package} NO_DEFAULT_PATH)
{models}
add_executable(app main.c)
target_link_libraries(app PRIVATE {libraries})
"""

MAIN = """\
#include <stdio.h>
{includes}

int main(void) {{
    static float x[12], y[20];
    for (int i = 0; i < 12; ++i) x[i] = (float)(i % 5);
{runs}
    return 0;
}}
"""

RUN = """\
    {name} *{name}_session;
    if ({name}_create(&{name}_session, NULL) != 0 || {name}_run({name}_session, x, y) != 0) return 1;
    for (int i = 0; i < 20; ++i) printf("%g ", y[i]);
    {name}_destroy({name}_session);
"""

X = (np.arange(12, dtype=np.float32) % 5).reshape(4, 3)


@pytest.fixture
def project(tmp_path):
    """Configures and builds a project of models: the arguments of onnx2halide_add_model for each, by the name of its C functions."""
    (tmp_path / "layer.onnx").write_bytes(make_models.layer().SerializeToString())

    def build(models: dict[str, str]) -> None:
        calls = [f"onnx2halide_add_model({arguments})" for arguments in models.values()]
        libraries = [arguments.split()[0] for arguments in models.values()]
        package = ROOT / "runtime" / "cmake"
        (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(package=package, models="\n".join(calls), libraries=" ".join(libraries)))
        includes = "\n".join(f'#include "{name}.h"' for name in models)
        (tmp_path / "main.c").write_text(MAIN.format(includes=includes, runs="".join(RUN.format(name=name) for name in models)))
        generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={TOOLS / 'ninja'}"]
        for step in (["-S", tmp_path, "-B", tmp_path / "build", *generator], ["--build", tmp_path / "build"]):
            subprocess.run([TOOLS / "cmake", *step], check=True, capture_output=True, text=True)

    return build


def test_models(project, tmp_path):
    """Names that are not C identifiers, and named targets."""
    project({
        "layer": "layer layer.onnx",
        "my_net": "my-net layer.onnx TARGET x86-64-linux-sse41",
        "v2_net": "other layer.onnx NAME 2--net. OPTIONS --schedule naive",
    })  # fmt: skip
    expected = np.tile(reference(make_models.layer(), x=X), 3)
    assert np.allclose(numbers(run(tmp_path / "build" / "app")), expected, rtol=1e-4, atol=1e-4)


def test_files_that_the_model_depends_on(project, tmp_path):
    tuning, library = tmp_path / "layer.tuning.json", tmp_path / "build" / "layer.onnx2halide" / "layer.a"
    tuning.write_text('{"format": 1, "kernels": {}}')
    project({"layer": "layer layer.onnx OPTIONS --tuning ${CMAKE_CURRENT_SOURCE_DIR}/layer.tuning.json DEPENDS layer.tuning.json"})
    made = library.stat().st_mtime_ns
    build = [TOOLS / "cmake", "--build", tmp_path / "build"]
    subprocess.run(build, check=True, capture_output=True)
    assert library.stat().st_mtime_ns == made
    tuning.touch()
    subprocess.run(build, check=True, capture_output=True)
    assert library.stat().st_mtime_ns > made


def test_unknown_arguments(project):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        project({"layer": "layer layer.onnx TARGET host x86-64-linux"})
    assert "onnx2halide_add_model(layer): unknown arguments: x86-64-linux" in caught.value.stderr
