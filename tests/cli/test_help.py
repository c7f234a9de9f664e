"""`--help` of every command."""

import pytest

JARGON = ("[OPTIONS]", "TEXT", ":PATH", "REQUIRED", "Needs:", "INT", "{", "Positionals", "Subcommand")


@pytest.mark.parametrize("command", ["", "compile", "build", "inspect", "ops", "run", "verify", "bench", "tune"])
def test_help(onnx2halide, command):
    done = onnx2halide(*command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: onnx2halide {command}" in done.stdout.replace("Usage", "usage")
    assert "\nExamples:\n  onnx2halide" in done.stdout
    assert "Exit status: 0 done; 1 " in done.stdout
    if command not in ("run", "verify", "bench", "tune"):  # these use argparse
        assert [word for word in JARGON if word in done.stdout] == []


def test_no_words_are_a_call_for_help(onnx2halide):
    assert onnx2halide().stdout == onnx2halide("--help").stdout
