"""Grids of CUDA's blocks, with a fake driver that refuses those that the real one refuses: of no blocks, or of too many along a dimension
but the first. It computes nothing, so that only errors are seen."""

import json
import os
import subprocess
import sys

import pytest
from paths import PROGRAMS
from test_gpu import concatenated, scattered

RUN = """
import json, sys
import numpy as np
import onnx2halide
model = onnx2halide.compile(sys.argv[1], target="host-cuda")
for shapes in json.loads(sys.argv[2]):
    model.run([np.zeros(shape, port.dtype) for shape, port in zip(shapes, model.inputs)])
print("done")
"""

# By name: a model, and shapes of its inputs.
GRIDS = {
    "many images": (concatenated([[70000, 2, 3], [70000, 1, 3]], 1), [[[70000, 2, 3], [70000, 1, 3]]]),
    "many images of open width": (concatenated([[70000, 3, "w"], [70000, 2, "w"]], 1), [[[70000, 3, 20], [70000, 2, 20]]]),
    "any number of images": (concatenated([["n", "a", 16], ["n", "b", 16]], 1), [[[70000, 2, 16], [70000, 1, 16]], [[1, 2, 16], [1, 7, 16]]]),
    "many planes of open size": (concatenated([["n", 3, "c", "w"], ["n", 2, "c", "w"]], 1), [[[256, 3, 320, 9], [256, 2, 320, 9]]]),
    "an empty cache": (concatenated([[2, 3, "past", 16], [2, 3, "new", 16]], 2), [[[2, 3, past, 16], [2, 3, 1, 16]] for past in (0, 1, 40)]),
    "updates of long rows": (scattered("ScatterND", [40, 70000], 20), [[[40, 70000], [20, 70000]]]),
    "many updates": (scattered("ScatterND", [400000, 3], 300000), [[[400000, 3], [300000, 3]]]),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    source = PROGRAMS / "fake_cuda_driver.h"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-x", "c", source, "-o", folder / "libcuda.so.1"], check=True)
    return folder


@pytest.mark.parametrize("name", GRIDS)
def test_grid(name, driver, tmp_path):
    model, shapes = GRIDS[name]
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    command = [sys.executable, "-c", RUN, tmp_path / "model.onnx", json.dumps(shapes)]
    done = subprocess.run(command, env=os.environ | {"LD_LIBRARY_PATH": str(driver)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
