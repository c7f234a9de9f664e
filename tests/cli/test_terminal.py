"""Output that appears on a terminal, but not in a pipe."""

import os
import pty
import re
import subprocess

from make_models import chain
from paths import COMPILER


def on_terminal(tmp_path, *words) -> str:
    """What remains visible on a terminal: erased lines are left out."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([COMPILER, *words], cwd=tmp_path, stderr=theirs, stdout=theirs)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 4096):
            text += part
    except OSError:  # on Linux: the other side has been closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert b"0/0" not in text
    return re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", "", text.decode()).replace("\r\x1b[K", "").replace("\r\n", "\n")


def test_success(tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    (tmp_path / "batch.onnx").write_bytes(chain("Neg", shape=("n", 4)).SerializeToString())
    number = r"\d+\.\d s\n"
    rows = [
        (["tiny.onnx"], r"tiny\.a tiny\.h  1 kernel, arena 0 bytes, " + number),
        (["batch.onnx", "-o", "out"], r"out/batch\.a out/batch\.h  1 kernel, arena depends on open dims, " + number),
        (["tiny.onnx", "-o", "out", "--sources-only"], r"out/tiny_generators\.cpp out/tiny\.c  1 kernel, arena not known yet, " + number),
        (["-o", "here", "tiny.onnx"], r"here/tiny\.a here/tiny\.h  1 kernel, arena 0 bytes, " + number),
        (["build", "here"], r"here/tiny\.a here/tiny\.h  1 kernel, arena 0 bytes, " + number),
    ]
    for words, expected in rows:
        text = on_terminal(tmp_path, *words)
        assert re.fullmatch(expected, text), text


def test_sizes_that_are_not_known(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    assert onnx2halide("tiny.onnx", "--sources-only").returncode == 0
    remark = " /* scratch memory is not known before `onnx2halide build` */"
    sizes = [line for line in (tmp_path / "tiny.h").read_text().splitlines() if re.match("#define TINY_(ARENA|SCRATCH)_SIZE", line)]
    assert sizes == [f"#define TINY_ARENA_SIZE 0{remark}", f"#define TINY_SCRATCH_SIZE 0{remark}"]
    assert onnx2halide("build", ".").returncode == 0
    assert (tmp_path / "tiny.a").exists()
    assert remark not in (tmp_path / "tiny.h").read_text()
    assert onnx2halide("tiny.onnx").returncode == 0


def test_a_full_disk_is_told(tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(chain("Neg").SerializeToString())
    for words in (["inspect", "tiny.onnx"], ["ops"], ["--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([COMPILER, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (1, "standard output cannot be written: No space left on device\n")
