"""Compiles users' programs against emitted headers, links them with emitted archives, and runs them."""

import ctypes
import itertools
import os
import pathlib
import shutil
import subprocess

import make_models
import numpy as np
import pytest
from paths import COMPILER, PROGRAMS, ROOT
from link_programs import WARNINGS, archive, link, numbers, reference, run

HALIDE = next((ROOT / "build" / "venv" / "lib").glob("python3*/site-packages/halide"))

X = (np.arange(12, dtype=np.float32) % 5).reshape(4, 3)
PICTURE = (np.arange(3 * 56 * 56, dtype=np.float32) % 13 / 13).reshape(1, 3, 56, 56)


def expected_features():
    return reference(make_models.image(), picture=PICTURE)


@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "c++11", "c++20"])
@pytest.mark.parametrize("order", [("layer", "image"), ("image", "layer")], ids=" ".join)
def test_two_models(compiled, tmp_path, standard, order):
    """Headers compile without warnings in C and C++, archives link in either order, and both models are right in one process."""
    program = link("two_models.c", [compiled(name) for name in order], tmp_path / "program", standard)
    results = numbers(run(program))
    expected = np.concatenate([reference(make_models.layer(), x=X), expected_features()])
    assert np.allclose(results, expected, rtol=1e-4, atol=1e-4)


def test_header_may_be_included_twice_and_with_another(compiled, tmp_path):
    text = '#include "image.h"\n#include "layer.h"\n#include "image.h"\nint main(void) { return IMAGE_INPUTS - LAYER_INPUTS; }\n'
    for standard, suffix in (("c99", "c"), ("c++11", "cpp")):
        source = tmp_path / f"main.{suffix}"
        source.write_text(text)
        folders = [f"-I{compiled(name)}" for name in ("image", "layer")]
        subprocess.run(["gcc" if suffix == "c" else "g++", f"-std={standard}", *WARNINGS, *folders, "-c", source, "-o", tmp_path / "main.o"], check=True)


def test_only_the_models_own_names_are_public(compiled):
    lines = run("nm", "--extern-only", "--defined-only", archive(compiled("image"))).splitlines()
    names = {line.split()[-1] for line in lines if len(line.split()) == 3}
    public = {f"image_{suffix}" for suffix in ("create", "run", "run_values", "error", "target", "destroy", "inputs", "outputs")}
    assert public <= names <= public | {"onnx2halide_image_weights"}


def own_kernel(folder: pathlib.Path) -> pathlib.Path:
    """A kernel that a user has built with Halide, with its runtime in the same archive."""
    generator = folder / "generator"
    library = HALIDE / "lib64"
    sources = [PROGRAMS / "brighten_generator.cpp", HALIDE / "share" / "Halide" / "tools" / "GenGen.cpp"]
    if not sources[1].exists():
        sources[1] = library / "libHalide_GenGen.a"
    flags = ["-std=c++17", "-fno-rtti", f"-I{HALIDE}/include", f"-L{library}", f"-Wl,-rpath,{library}"]
    subprocess.run(["g++", *flags, *sources, "-lHalide", "-o", generator], check=True)
    subprocess.run([generator, "-g", "brighten", "-o", folder, "-e", "static_library,c_header", "target=host"], check=True)
    return folder / "brighten.a"


def test_devices_and_own_kernels_in_one_program(compiled, tmp_path):
    """A CPU and an OpenCL build of one model and a user's own Halide kernel, in any order of linking."""
    kernel = own_kernel(tmp_path)
    parts = [compiled("image"), compiled("image", "--target", "host-opencl", name="image_device"), kernel]
    options = [f"-I{tmp_path}", "-isystem", f"{HALIDE}/include"]
    for order in itertools.permutations(parts):
        program = link("own_kernel.cpp", list(order), tmp_path / "program", "c++17", options)
        assert np.allclose(numbers(run(program)), expected_features(), rtol=1e-4, atol=1e-4)


def test_pkg_config(compiled, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(compiled("layer"), moved)
    environment = os.environ | {"PKG_CONFIG_PATH": str(moved)}
    flags = run("pkg-config", "--cflags", "--libs", "layer", env=environment).split()
    program = tmp_path / "program"
    subprocess.run(["gcc", "-std=c99", *WARNINGS, PROGRAMS / "weights_file.c", "-o", program, *flags], check=True)
    assert run(program).startswith("create: 0 \nrun: 0\n")


def test_shared_library(tmp_path):
    (tmp_path / "layer.onnx").write_bytes(make_models.layer().SerializeToString())
    subprocess.run([COMPILER, tmp_path / "layer.onnx", "-o", tmp_path, "--emit", "shared_library"], check=True)
    library = ctypes.CDLL(str(tmp_path / "layer.so"))
    library.layer_error.restype = ctypes.c_char_p
    session, y = ctypes.c_void_p(), np.zeros((4, 5), np.float32)
    assert library.layer_create(ctypes.byref(session), None) == 0
    x = np.ascontiguousarray(X)
    assert library.layer_run(session, x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p)) == 0
    assert library.layer_run(session, None, None) == 1
    assert library.layer_error(session) == b"layer: input 'x' is a null pointer"
    library.layer_destroy(session)
    assert np.allclose(y.ravel(), reference(make_models.layer(), x=X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model, convolution", [("image", "auto"), ("copied_channels", "auto"), ("copied_strips", "direct"), ("copied_strips", "winograd")])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_allocates_nothing(compiled, tmp_path, threads, model, convolution):
    program = link("allocations.c", [compiled(model, "--convolution", convolution, name="image")], tmp_path / "program", "gnu11")
    allocations, scratch = (int(word) for word in run(program, str(threads)).split() if word.isdigit())
    assert allocations == 0
    assert scratch > 0  # or the test proves nothing about scratch memory


@pytest.mark.parametrize("threads", [1, 2])
def test_an_open_batch_allocates_for_its_largest_size_only(compiled, tmp_path, threads):
    """Only two rounds of batches may allocate: the first, which meets new sizes, and the second, which enlarges scratch memory."""
    program = link("open_allocations.c", [compiled("open_image")], tmp_path / "program", "gnu11")
    first, _, *later = numbers(run(program, str(threads)))
    assert first > 0  # or the test says nothing
    assert later == [0, 0, 0]


@pytest.mark.parametrize("threads", [1, 2])
def test_sessions_in_threads(compiled, tmp_path, threads):
    run(link("two_threads.c", [compiled("image")], tmp_path / "program", "gnu11"), str(threads))


def test_forked_process(compiled, tmp_path):
    run(link("forked.c", [compiled("image")], tmp_path / "program", "gnu11"))


def test_changing_sizes_settle(compiled, tmp_path):
    """Ten thousand runs whose sizes depend on shapes and elements allocate memory only in the first rounds through the sizes."""
    program = link("changing.c", [compiled("changing")], tmp_path / "program", "gnu11", ["-DCOUNT_ALLOCATIONS"])
    first, later = numbers(run(program, "1", "10000"))
    assert first > 0  # or the test says nothing
    assert later == 0


@pytest.mark.parametrize("threads, flag", [(1, "-fsanitize=address,undefined"), (2, "-fsanitize=thread")])
def test_changing_sizes_under_sanitizers(compiled, tmp_path, threads, flag):
    """The runtime and the host program are compiled with the sanitizers, too."""
    program = link("changing.c", [compiled("changing", "--cc", f"gcc {flag}")], tmp_path / "program", "gnu11", [flag])
    run(program, str(threads), "10000")


def test_changing_sizes_under_valgrind(compiled, tmp_path):
    folder = compiled("changing", "--target", "x86-64-linux-avx2-fma-f16c")
    program = link("changing.c", [folder], tmp_path / "program", "gnu11")
    run("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", program, "1", "10000")


def test_packed_elements(compiled, tmp_path):
    """Two elements per byte, the first in the low bits."""
    lines = run(link("packed.c", [compiled("packed")], tmp_path / "program")).splitlines()
    assert lines == [
        "int4 3 elements, 2 bytes",
        "typed: e3 05; 44 c0 4a of float8e4m3fn",
        "values: e3 05, 2 bytes",
        "packed: input 'x' needs 2 bytes, its data has 1",
    ]


@pytest.mark.parametrize("flags", [(), ("-fsanitize=address,undefined",)], ids=" ".join)
def test_strings_and_sequences(compiled, tmp_path, flags):
    """Two hundred runs of many sizes, and messages; also with the runtime and the host program under the sanitizers."""
    folder = compiled("boxes", *(["--cc", " ".join(["gcc", *flags])] if flags else []))
    lines = run(link("boxes.c", [folder], tmp_path / "program", "gnu11", list(flags))).splitlines()
    assert lines == [
        "words of kind 0, tensors of kind 1 with tensors of type float32 and rank 1",
        "boxes: input 'tensors': item 2 has elements of type int64, expected float32",
        "boxes: input 'tensors': item 2 needs 8 bytes, its data has 7",
        "boxes: input 'tensors' is a tensor, expected a sequence",
        "boxes: input 'words' has elements of type int64, expected string",
    ]


@pytest.mark.parametrize("flags", [("-DCOUNT_ALLOCATIONS",), ("-fsanitize=address,undefined",)], ids=" ".join)
def test_maps(compiled, tmp_path, flags):
    """Ten thousand runs of several sizes, which allocate memory only in the first rounds, and messages; also with the runtime and the host
    program under the sanitizers."""
    is_checked = flags[0].startswith("-f")
    folder = compiled("maps", *(["--cc", " ".join(["gcc", *flags])] if is_checked else []))
    lines = run(link("maps.c", [folder], tmp_path / "program", "gnu11", list(flags)), "10000").splitlines()
    assert lines == [
        "classes of kind 1 with items of kind 2 from string to float32",
        "0",
        "maps: node 'classes' (ai.onnx.ml.ZipMap): input 0 has 2 columns, expected 3 as there are labels",
        "maps: input 'counts' has 1 items, expected keys and values",
        "maps: input 'counts' has 1 keys, expected a value for each",
        "maps: input 'weights' has elements of type float32, expected int64",
    ]


def test_regular_expressions(compiled, tmp_path):
    """The archives contain the necessary parts of RE2: a C program links only C++'s library."""
    folders = [compiled("words"), compiled("words", name="others")]
    flags = [*(f"-I{folder}" for folder in folders), *map(archive, folders), "-lstdc++", "-lpthread", "-ldl", "-lm"]
    subprocess.run(["gcc", "-std=gnu11", *WARNINGS, PROGRAMS / "two_expressions.c", *flags, "-o", tmp_path / "program"], check=True)
    assert run(tmp_path / "program", "ab", "", "a1", "Straße").split("\n") == ["ab 1 1", " 0 0", "a1 0 0", "Straße 1 1", ""]
    assert "libre2" not in run("ldd", tmp_path / "program")
    assert "words.a -lstdc++ -lpthread" in (folders[0] / "words.pc").read_text()
    assert "stdc++" not in (compiled("layer") / "layer.pc").read_text()


def test_missing_device(compiled, tmp_path):
    """Returns an error code and a message, twice, and exits cleanly."""
    program = link("device_missing.c", [compiled("image", "--target", "host-opencl")], tmp_path / "program")
    nothing = tmp_path / "vendors"
    nothing.mkdir()
    lines = run(program, env=os.environ | {"OCL_ICD_VENDORS": str(nothing)}).splitlines()
    assert lines and all(line.split()[1] == "4" and "image: " in line for line in lines), lines


@pytest.mark.skipif(pathlib.Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_missing_gpu(compiled, tmp_path):
    program = link("device_missing.c", [compiled("image", "--target", "host-cuda")], tmp_path / "program")
    lines = run(program).splitlines()
    assert lines and all(line.split()[1] == "4" and "image: " in line for line in lines), lines


PLAIN = "launched 5 recorded 0 graphs 0"
FAILURES = {
    "cuStreamBeginCapture_v2": PLAIN,
    "cuStreamEndCapture": "launched 5 recorded 5 graphs 0",
    "cuGraphNodeGetType": "launched 5 recorded 5 graphs 0",
    "cuGraphInstantiateWithFlags": "launched 5 recorded 5 graphs 0",
    "cuGraphLaunch": "launched 5 recorded 5 graphs 1",
}


def test_cuda_graph(compiled, tmp_path):
    """The second run records and later ones replay; if the driver fails, each kernel is launched by itself again."""
    program = link("cuda_graph.c", [compiled("image", "--target", "host-cuda")], tmp_path / "program", options=["-rdynamic"])
    weights, once, nothing_left = f"{PLAIN} in 6 out 1", "in 1 out 1", "streams 0 executables 0 copies 0"
    replayed = f"launched 0 recorded 0 graphs 1 {once}"
    assert run(program).splitlines() == [weights, f"launched 0 recorded 5 graphs 1 {once}", replayed, replayed, nothing_left]
    for function, second in FAILURES.items():
        plain = f"{PLAIN} {once}"
        assert run(program, function).splitlines() == [weights, f"{second} in 2 out 1", plain, plain, nothing_left], function
    off = run(program, env={**os.environ, "ONNX2HALIDE_CUDA_GRAPH": "0"}).splitlines()
    assert off == [weights, *3 * [f"{PLAIN} {once}"], nothing_left]
