"""A model's names may be those of C, of the runtime's headers and of the emitted program itself."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node

NAMES = """input_0_dims output_0_dims input_0 shapes place bind steps description session open dims arena code status strings targets
    onnx2halide_session onnx2halide_run onnx2halide_tensor onnx2halide_lifetime onnx2halide_create onnx2halide_model
    halide_buffer_t halide_type_t halide_error halide_free halide_type_float halide_buffer_flag_host_dirty
    T VIEW STEP TENSOR TENSORS SCALAR EXTENTS ONNX2HALIDE_FAILED tensor_a small small_run small_inputs SMALL_H SMALL_INPUTS SMALL_T_RANK
    kernel k0_kernel NULL INT64_MAX size_t ptrdiff_t uint8_t float int main errno linux floor_div max_dim memcpy""".split()


@pytest.mark.parametrize("rows", [3, "halide_rows", "arena"])
def test_tensors(rows):
    """Each name is an input, a tensor in the arena and an output of some model."""
    for shift in range(3):
        inputs, between, outputs = (NAMES[(shift + i) % 3 :: 3] for i in range(3))
        count = min(map(len, (inputs, between, outputs)))
        triples = list(zip(inputs, between, outputs))[:count]
        nodes = []
        for source, middle, result in triples:
            nodes += [node("Softmax", source, middle), node("Softmax", middle, result, axis=0)]
        ports = ([(name, FLOAT, [rows, 4]) for name in column] for column in (inputs[:count], outputs[:count]))
        compiled = onnx2halide.compile(model(nodes, *ports))
        values = {name: np.full((3, 4), i, np.float32) for i, name in enumerate(inputs[:count])}
        for array in compiled.run_by_name(values).values():
            assert np.allclose(array, 1 / 3)
