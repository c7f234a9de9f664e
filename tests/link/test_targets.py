"""One library for several instruction sets, on processors that QEMU emulates."""

import os
import pathlib
import shutil
import subprocess

import make_models
import numpy as np
import pytest
from link_programs import link, link_stream, reference, run, stream
from paths import COMPILER

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="no x86-64 machine")

AVX512, AVX2, SSE41 = TARGETS = ["x86-64-linux-avx512_skylake", "x86-64-linux-avx2-f16c-fma", "x86-64-linux-sse41"]
FLAGS = ["--target", ",".join(TARGETS)]
PICTURE = np.random.default_rng(0).random((1, 3, 56, 56), np.float32)


def own_target() -> str:
    """The target that this machine uses."""
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return AVX512 if "avx512bw" in flags else AVX2 if "avx2" in flags else SSE41


def qemu(model: str) -> list[str]:
    return ["qemu-x86_64", "-cpu", model]


def check(program):
    """QEMU has no AVX-512."""
    for command, expected in [([], own_target()), (qemu("max"), AVX2), (qemu("Nehalem"), SSE41)]:
        target, features = stream([*command, program], PICTURE)
        assert target == expected
        assert np.allclose(features, reference(make_models.image(), picture=PICTURE), rtol=1e-4, atol=1e-4)


def test_each_machine_gets_its_kernels(compiled, tmp_path):
    folder = compiled("image", *FLAGS)
    program = link_stream(folder, "image", tmp_path / "program")
    check(program)
    refused = subprocess.run([*qemu("core2duo"), program], input=PICTURE.tobytes(), capture_output=True)
    assert refused.returncode == 1
    assert refused.stderr.decode() == f"image: the processor lacks what the kernels are compiled for: {SSE41}\n"


def test_features_that_only_newer_machines_have(compiled, tmp_path):
    program = link_stream(compiled("layer", "--target", f"x86-64-linux-avxvnni,{AVX2}"), "layer", tmp_path / "program")
    assert stream([*qemu("max"), program], np.zeros((4, 3), np.float32))[0] == AVX2


def test_rebuilt(compiled, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(compiled("image", *FLAGS), folder)
    sources = folder / "image_generators.cpp"
    text = sources.read_text()
    sources.write_text(text.replace("class c2_r2_sse41", "class gone"))
    done = subprocess.run([COMPILER, "build", folder], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "image_generators.cpp: HALIDE_REGISTER_GENERATOR(c2_r2_sse41) does not follow its class\n")
    sources.write_text(text.replace("public:\n", "public:\n    // edited\n"))
    subprocess.run([COMPILER, "build", folder], check=True)
    check(link_stream(folder, "image", tmp_path / "program"))


def test_open_batch(compiled, tmp_path):
    printed = run(link("open_batch.c", [compiled("open_batch", *FLAGS)], tmp_path / "program", "c11")).splitlines()
    assert printed == run(link("open_batch.c", [compiled("open_batch")], tmp_path / "host", "c11")).splitlines()
