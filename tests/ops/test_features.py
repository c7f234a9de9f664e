"""Operators of ai.onnx.ml against references: see test_against_reference.py. onnxruntime has no shape inference for them, so that the
models declare what comes out."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime

FLOATS = np.random.default_rng(0).normal(size=(3, 17)).astype(np.float32)
INTEGERS = np.random.default_rng(0).integers(-3, 4, (3, 17))
WEIGHTS = np.random.default_rng(1).normal(size=4 * 17).astype(np.float32).tolist()
HOLES = np.where(FLOATS > 0.5, np.float32(np.nan), FLOATS)

CASES = [
    ("Scaler", [FLOATS], {"offset": [0.5], "scale": [2.0]}, [(TensorProto.FLOAT, (3, 17))]),
    ("Scaler", [INTEGERS], {"offset": WEIGHTS[:17], "scale": WEIGHTS[17:34]}, [(TensorProto.FLOAT, (3, 17))]),
    ("Imputer", [HOLES], {"imputed_value_floats": WEIGHTS[:17], "replaced_value_float": float("nan")}, [(TensorProto.FLOAT, (3, 17))]),
    ("Imputer", [INTEGERS], {"imputed_value_int64s": [7], "replaced_value_int64": -1}, [(TensorProto.INT64, (3, 17))]),
    ("Imputer", [INTEGERS], {"imputed_value_int64s": list(range(17)), "replaced_value_int64": 2}, [(TensorProto.INT64, (3, 17))]),
    ("Binarizer", [FLOATS], {"threshold": 0.25}, [(TensorProto.FLOAT, (3, 17))]),
    ("Normalizer", [abs(FLOATS)], {"norm": "MAX"}, [(TensorProto.FLOAT, (3, 17))]),
    ("Normalizer", [FLOATS], {"norm": "L1"}, [(TensorProto.FLOAT, (3, 17))]),
    ("Normalizer", [FLOATS], {"norm": "L2"}, [(TensorProto.FLOAT, (3, 17))]),
    ("FeatureVectorizer", [FLOATS, FLOATS[:, :5]], {"inputdimensions": [17, 5]}, [(TensorProto.FLOAT, (3, 22))]),
    ("ArrayFeatureExtractor", [FLOATS, np.array([[3, 0, 16]])], {}, [(TensorProto.FLOAT, (3, 3))]),
    ("ArrayFeatureExtractor", [FLOATS[0], np.array([3, 0])], {}, [(TensorProto.FLOAT, (1, 2))]),
    ("LinearRegressor", [FLOATS], {"coefficients": WEIGHTS[:17]}, [(TensorProto.FLOAT, (3, 1))]),
    ("LinearRegressor", [FLOATS], {"coefficients": WEIGHTS, "targets": 4, "intercepts": WEIGHTS[:4]}, [(TensorProto.FLOAT, (3, 4))]),
    *(
        (
            "LinearClassifier",
            [FLOATS],
            {"coefficients": WEIGHTS, "intercepts": WEIGHTS[:4], "classlabels_ints": [5, 6, 9, 2], "post_transform": transform, "multi_class": 1},
            [(TensorProto.INT64, (3,)), (TensorProto.FLOAT, (3, 4))],
        )
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    ),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "results"), CASES, ids=[f"{case[0]} {i}" for i, case in enumerate(CASES)])
def test_features(op, operands, attributes, results):
    inputs = {f"x{i}": operand for i, operand in enumerate(operands)}
    names = [f"y{i}" for i in range(len(results))]
    node = helper.make_node(op, list(inputs), names, domain="ai.onnx.ml", **attributes)
    ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()]
    outputs = [helper.make_tensor_value_info(name, *result) for name, result in zip(names, results, strict=True)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph([node], "small", ports, outputs), opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    expected = OnnxRuntime(model).run(inputs)
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        found = difference(array, np.asarray(expected[name]))
        assert not found.exceeds(1e-5, 1e-6), f"{name}: {found.text()}"
