"""Operators of onnxruntime's own domain for sequences, hashes, inverses and quantised embeddings, against onnxruntime; see microsoft_cases.py."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import numpy_helper, parser
from onnx2halide.references import OnnxRuntime
from reference_cases import constant, x
from microsoft_cases import Fused, check


def repeated_tokens():
    for size in (1, 2, 3, 4):
        for length in (2, 3, 9):
            tokens = x(2, length, dtype="int64", between=(0, 3))
            yield Fused("NGramRepeatBlock", [tokens, x(2, 5)], {"ngram_size": size})


def inverses():
    for shape in ((1, 1), (3, 3), (2, 3, 7, 7)):
        for dtype in ("float32", "float64"):
            yield Fused("Inverse", [x(*shape, dtype=dtype)])
    yield Fused("Inverse", [x(2, 3, 3, dtype="float16")])


def hashes():
    for dtype in ("int32", "uint32", "int64", "uint64", "float32", "float64"):
        for attributes in ({}, {"positive": 0, "seed": 17}):
            yield Fused("MurmurHash3", [x(3, 5, dtype=dtype)], attributes)


def warped_times():
    for shape in ((1, 1), (5, 7), (1, 9, 4), (3, 40)):
        yield Fused("DynamicTimeWarping", [x(*shape)])
    yield Fused("DynamicTimeWarping", [x(6, 5, between=(0, 0))])  # all paths cost the same


def quantised_embeddings():
    ids, segments, mask = (x(2, 5, dtype="int32", between=(0, high)) for high in (11, 2, 2))
    for dtype in ("uint8", "int8"):
        bytes_ = [constant(*shape, dtype=dtype) for shape in ((11, 17), (8, 17), (2, 17), (17,), (17,))]
        scales = [np.float32(scale) for scale in (0.1, 0.2, 0.05, 0.3, 0.02)]
        zeros = [np.array(zero, dtype) for zero in (3, 1, 0, 5, 4)]
        yield Fused("QEmbedLayerNormalization", [ids, segments, *bytes_, mask, *scales, *zeros], {"epsilon": 1e-3}, (0, 1))
        few = [[*part[:2], None, *part[3:]] for part in (bytes_, scales, zeros)]
        yield Fused("QEmbedLayerNormalization", [ids, None, *few[0], None, *few[1], *few[2]], {}, (0, 1))


CASES = [case for family in (repeated_tokens, inverses, hashes, warped_times, quantised_embeddings) for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    check(case)


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> g {text}')


def test_tokens_of_open_length():
    proto = model("(int64[b,l] i, float[b,v] s) => (float[b,v] y) { y = com.microsoft.NGramRepeatBlock <ngram_size = 3> (i, s) }")
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    draw = np.random.default_rng(0)
    for length in (1, 2, 3, 4, 20):
        inputs = {"i": draw.integers(0, 2, (3, length)), "s": draw.normal(size=(3, 5)).astype(np.float32)}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])


def test_matrices_that_are_not_square():
    proto = model("(float[n,m] x) => (float[n,m] y) { y = com.microsoft.Inverse (x) }")
    compiled = onnx2halide.compile(proto)
    square = np.eye(3, dtype=np.float32) * 2
    np.testing.assert_array_equal(compiled.run([square])[0], square / 4)
    with pytest.raises((ValueError, RuntimeError), match=r"'y' \(com.microsoft.Inverse\): dim 1 of 'x' is 4, expected 3"):
        compiled.run([np.ones((3, 4), np.float32)])


def test_hashes_of_strings():
    proto = model("(string[n] x) => (uint32[n] y, int32[2] z) { y = com.microsoft.MurmurHash3 <seed = 7> (x) z = com.microsoft.MurmurHash3 <positive = 0> (c) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array(["a constant", ""], object), "c"))
    inputs = {"x": np.array(["", "a", "abc", "abcd", "abcde", "hällo wörld", "x" * 37], object)}
    expected = OnnxRuntime(proto).run(inputs)
    for name, array in onnx2halide.compile(proto).run_by_name(inputs).items():
        np.testing.assert_array_equal(array, expected[name])
