"""Which of Halide's checks kernels contain: none of the buffers that the host program makes, but those of what a schedule reads."""

import make_models
import pytest


@pytest.mark.parametrize("target, has", [("host", False), ("host-debug", True)])
def test_checks_of_buffers(onnx2halide, tmp_path, target, has):
    (tmp_path / "tiny.onnx").write_bytes(make_models.chain("Neg", shape=("n", 40)).SerializeToString())
    assert onnx2halide("tiny.onnx", "-o", "out", "--target", target, "--emit", "assembly").returncode == 0
    (assembly,) = (tmp_path / "out").glob("*.s")
    text = assembly.read_text()
    assert "halide_error_access_out_of_bounds" in text
    for check in ("halide_error_constraint_violated", "halide_error_bad_type", "halide_error_buffer_extents_too_large"):
        assert (check in text) == has, check
