"""Optimisers of ai.onnx.preview.training against ONNX's reference: see reference_cases.py."""

import numpy as np
import pytest
from reference_cases import Case, check, x


def steps():
    for op, states, attributes in (
        ("Adagrad", 1, {"decay_factor": 0.1, "norm_coefficient": 0.01}),
        ("Adam", 2, {"norm_coefficient": 0.01, "norm_coefficient_post": 0.02}),
        ("Momentum", 1, {"alpha": 0.9, "beta": 0.5, "mode": "standard", "norm_coefficient": 0.01}),
        ("Momentum", 1, {"alpha": 0.9, "beta": 0.5, "mode": "nesterov", "norm_coefficient": 0.01}),
    ):
        for number in (0, 3):
            tensors = [x(3, 17), x(5)]
            state = [x(*tensor.shape, between=(0.1, 2)) for tensor in tensors]
            operands = [np.float32(0.1), np.int64(number), *tensors, *tensors, *state * states]
            yield Case(op, operands, attributes, outputs=2 + 2 * states, domain="ai.onnx.preview.training")


@pytest.mark.parametrize("case", [*steps()], ids=lambda case: f"{case} step={case.operands[1]}")
def test_training(case):
    check(case)
