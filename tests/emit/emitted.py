"""Hashes of what the compiler emits for small graphs and several targets: where a change of schedules or of the host program shows.
scripts/regenerate rewrites the list by running this file."""

import hashlib
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from graphs import models
from paths import COMPILER, ROOT

LIST = ROOT / "generated" / "emitted.txt"
TARGETS = {
    "avx2": "x86-64-linux-avx2-fma-f16c",
    "avx512": "x86-64-linux-avx-avx2-f16c-fma-avx512-avx512_skylake-tune_znver4",
    "arm": "arm-64-linux",
    "cuda": "x86-64-linux-avx2-fma-f16c-cuda",
}


def lines() -> list[str]:
    """`target graph kernels host`, where the last two are hashes of the generators and of the host program."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        protos = models()
        for name, proto in protos.items():
            (folder / f"net_{name}.onnx").write_bytes(proto.SerializeToString())
        for target, text in TARGETS.items():
            command = [COMPILER, "compile", *(f"net_{name}.onnx" for name in protos), "-o", target, "--target", text, "--sources-only"]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for name in sorted(protos):
                hashes = [hash_of((folder / target / f"net_{name}{suffix}").read_text()) for suffix in ("_generators.cpp", ".c")]
                found.append(" ".join([target, name, *hashes]))
    return found


def hash_of(text: str) -> str:
    """Leaves out the banner, which names the compiled file by its hash, and the hash of the weights."""
    kept = [line for line in text.splitlines()[4:] if "weights_id" not in line]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:12]


if __name__ == "__main__":
    LIST.write_text("".join(f"{line}\n" for line in lines()))
