"""What the compiler emits equals what is in generated/, which scripts/regenerate rewrites."""

import subprocess

import emitted
from paths import COMPILER, ROOT


def test_digits(tmp_path):
    # The command line of scripts/regenerate, which the files quote.
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    command = "compile scripts/digits/digits.onnx -o generated/digits --target x86-64-linux-avx2-fma-f16c --sources-only"
    subprocess.run([COMPILER, *command.split()], cwd=tmp_path, check=True)
    golden = {file.name: file.read_bytes() for file in (ROOT / "generated" / "digits").iterdir()}
    made = {file.name: file.read_bytes() for file in (tmp_path / "generated" / "digits").iterdir()}
    assert sorted(made) == sorted(golden)
    assert [name for name in golden if made[name] != golden[name]] == []


def test_hashes():
    golden, made = set(emitted.LIST.read_text().splitlines()), set(emitted.lines())
    assert sorted(golden ^ made) == []
