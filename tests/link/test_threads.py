"""The threads of a session: runtime/threads.c in a program that distributes jobs, under the sanitizers."""

import subprocess

import pytest
from link_programs import WARNINGS, run
from paths import PROGRAMS, ROOT
from test_programs import HALIDE


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_each_task_runs_once(tmp_path, sanitizer, threads):
    program = tmp_path / "program"
    sources = [PROGRAMS / "share_out.c", ROOT / "runtime" / "threads.c"]
    flags = ["-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizer}", f"-I{ROOT / 'runtime'}", f"-I{HALIDE / 'include'}", "-pthread"]
    subprocess.run(["gcc", *flags, *WARNINGS, *sources, "-o", program], check=True)
    assert run(program, str(threads)) == ""
