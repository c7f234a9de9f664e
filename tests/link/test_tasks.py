"""How kernels divide rows among tasks (runtime/tasks.h)."""

import ctypes
import subprocess

import pytest
from paths import ROOT


@pytest.fixture(scope="module")
def rows_of_task(tmp_path_factory):
    library = tmp_path_factory.mktemp("tasks") / "tasks.so"
    subprocess.run(["cc", "-shared", "-fPIC", ROOT / "runtime" / "tasks.c", "-o", library], check=True)
    return ctypes.CDLL(str(library)).onnx2halide_rows_of_task


@pytest.mark.parametrize(
    "rows, elements_of_row, elements, least_rows, threads, inner_tasks, expected",
    [
        (100, 10, 100, 1, 1, 1, 10),  # ten tasks of 100 elements
        (100, 10, 100, 20, 1, 1, 20),
        (100, 10, 100, 1, 4, 1, 13),  # eight tasks, two for each thread
        (7, 10, 100, 1, 4, 4, 7),  # one task: its inner ones are divided
        (7, 10, 40, 1, 4, 3, 7),  # one task of 40 elements, too few for half of the threads
        (8, 10, 40, 1, 4, 3, 2),  # two tasks of 40 elements, which four threads share
        (3, 10, 10, 1, 4, 1, 1),
        (0, 10, 100, 1, 4, 1, 1),
        (5, 0, 100, 1, 2, 1, 3),
        (2**31 - 1, 2**31 - 1, 2**31 - 1, 1, 1, 1, 1),
    ],
)
def test_rows_of_task(rows_of_task, rows, elements_of_row, elements, least_rows, threads, inner_tasks, expected):
    assert rows_of_task(rows, elements_of_row, elements, least_rows, threads, inner_tasks) == expected
