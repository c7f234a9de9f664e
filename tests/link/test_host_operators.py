"""Functions of the runtime with unusual operands, under the sanitizers."""

import subprocess

import numpy as np
import onnx
import pytest
from link_programs import link_stream, stream
from paths import COMPILER

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def int32s(*numbers: int) -> list[np.ndarray]:
    return [np.array(number, np.int32) for number in numbers]


CASES = {
    "a range wider than its type": (
        "g (int32 a, int32 b, int32 c) => (int32[n] y) { y = Range (a, b, c) }",
        int32s(-2000000000, 2000000000, 1000000000),
        np.array([-2000000000, -1000000000, 0, 1000000000], np.int32),
    ),
}


@pytest.mark.parametrize("text, inputs, expected", CASES.values(), ids=CASES)
def test_unusual_operands(tmp_path, text, inputs, expected):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    (tmp_path / "unusual.onnx").write_bytes(model.SerializeToString())
    subprocess.run([COMPILER, tmp_path / "unusual.onnx", "-o", tmp_path, "--cc", " ".join(["gcc", *SANITIZERS])], check=True)
    program = link_stream(tmp_path, "unusual", tmp_path / "program", options=SANITIZERS)
    np.testing.assert_array_equal(stream(program, *inputs)[1].view(expected.dtype), expected.ravel())
