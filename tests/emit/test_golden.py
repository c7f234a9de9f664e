"""The compiler's output for the digits model equals generated/digits, which scripts/regenerate rewrites."""

import subprocess

from paths import COMPILER, ROOT


def test_digits(tmp_path):
    # The command line of scripts/regenerate, which the files quote.
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    command = "compile scripts/digits/digits.onnx -o generated/digits --target x86-64-linux-avx2-fma-f16c --sources-only"
    subprocess.run([COMPILER, *command.split()], cwd=tmp_path, check=True)
    golden = {file.name: file.read_bytes() for file in (ROOT / "generated" / "digits").iterdir()}
    emitted = {file.name: file.read_bytes() for file in (tmp_path / "generated" / "digits").iterdir()}
    assert sorted(emitted) == sorted(golden)
    assert [name for name in golden if emitted[name] != golden[name]] == []
