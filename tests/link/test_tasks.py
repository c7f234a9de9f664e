"""How kernels divide rows among tasks (runtime/tasks.h)."""

import ctypes
import subprocess

import pytest
from paths import ROOT


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    library = tmp_path_factory.mktemp("tasks") / "tasks.so"
    subprocess.run(["cc", "-shared", "-fPIC", ROOT / "runtime" / "tasks.c", "-o", library], check=True)
    return ctypes.CDLL(str(library))


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
def test_rows_of_task(tasks, rows, elements_of_row, elements, least_rows, threads, inner_tasks, expected):
    assert tasks.onnx2halide_rows_of_task(rows, elements_of_row, elements, least_rows, threads, inner_tasks) == expected


@pytest.mark.parametrize(
    "rows, most, expected",
    [(0, 32, 1), (1, 32, 1), (3, 32, 2), (4, 32, 4), (7, 32, 4), (8, 32, 8), (31, 32, 16), (32, 32, 32), (33, 32, 16), (2**31 - 1, 32, 32), (24, 48, 24), (47, 48, 24), (9, 1, 1)],
)
def test_rows_of_tile(tasks, rows, most, expected):
    assert tasks.onnx2halide_rows_of_tile(rows, most) == expected


@pytest.mark.parametrize(
    "rows, least_rows, most_rows, threads, inner_tasks, expected",
    [
        (112, 12, 200, 1, 1, 112),
        (112, 12, 50, 1, 1, 38),  # three strips fit into the cache
        (112, 12, 50, 2, 8, 28),  # two for each thread
        (112, 12, 200, 2, 8, 56),
        (112, 12, 200, 2, 1, 19),  # three for each thread, as a strip is one task
        (112, 12, 200, 16, 1, 13),  # no smaller ones
        (14, 12, 200, 2, 8, 14),
        (7, 12, 3, 2, 1, 3),  # as many as the cache demands
        (1, 1, 1, 64, 1, 1),
        (2**31 - 1, 1, 2**31 - 1, 1, 2**31 - 1, 2**31 - 1),
    ],
)
def test_rows_of_strip(tasks, rows, least_rows, most_rows, threads, inner_tasks, expected):
    assert tasks.onnx2halide_rows_of_strip(rows, least_rows, most_rows, threads, inner_tasks) == expected
