"""Libraries for ARM, built by Debian's cross tool chain and run by QEMU."""

import re

import make_models
import numpy as np
import onnxruntime
import pytest
from link_programs import link_stream, stream
from paths import ROOT, real_model

CC = "aarch64-linux-gnu-gcc"
TARGET = ["--target", "arm-64-linux", "--cc", CC]
QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
DIGITS = ROOT / "scripts" / "digits" / "digits.onnx"


@pytest.mark.parametrize("name, flags", [("digits", ["--convolution", "direct"]), ("digits", ["--convolution", "winograd"]), ("mnist-8", [])])
def test_results(onnx2halide, tmp_path, name, flags):
    model = DIGITS if name == "digits" else real_model(name)
    compiled = onnx2halide("compile", model, "--name", "net", "-o", "net", *TARGET, *flags)
    assert (compiled.returncode, compiled.stderr) == (0, "")
    session = onnxruntime.InferenceSession(model)
    port = session.get_inputs()[0]
    picture = np.random.default_rng(0).random(port.shape, np.float32)
    target, result = stream([*QEMU, link_stream(tmp_path / "net", "net", tmp_path / "program", CC)], picture)
    expected = session.run(None, {port.name: picture})[0].ravel()
    assert target == "arm-64-linux"
    assert np.allclose(result, expected, rtol=1e-4, atol=1e-5)


def innermost_loops(assembly: str) -> list[str]:
    """The innermost loops, from their labels to the branches back."""
    labels = {match[1]: match.start() for match in re.finditer(r"^(\.\w+):", assembly, re.MULTILINE)}
    branches = re.finditer(r"^\t(?:b\.\w+|cbn?z|tbn?z)\t.*?(\.L\w+)$", assembly, re.MULTILINE)
    loops = [(labels[match[1]], match.end()) for match in branches if labels[match[1]] < match.start()]
    return [assembly[start:end] for start, end in loops if not any(start <= s and e < end or start < s and e <= end for s, e in loops)]


@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
def test_sums_stay_in_registers(compiled, algorithm):
    folder = compiled("image", *TARGET, "--emit", "assembly", "--convolution", algorithm)
    assembly = (folder / "image_c2_r2.s").read_text()
    # Transforms of tiles do not fit into the registers; they contain additions, by which they are excluded.
    products = [loop for loop in innermost_loops(assembly) if loop.count("fmla\t") >= 64 and "fadd\t" not in loop]
    assert products
    for loop in products:
        assert "Folded" not in loop  # LLVM's comment on spills and reloads
        assert loop.count("fmla\t") > loop.count("\tld") and "fmul\t" not in loop


def test_no_re2(onnx2halide, tmp_path):
    (tmp_path / "words.onnx").write_bytes(make_models.words().SerializeToString())
    compiled = onnx2halide("compile", "words.onnx", "-o", "words", *TARGET)
    assert compiled.returncode == 1
    assert compiled.stderr == f"words.onnx: regular expressions need RE2, and {CC} finds no libre2.a for target arm-64-linux\n"
