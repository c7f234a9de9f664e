"""Operands with extents known only at run time: those that fit are accepted, as by onnxruntime; errors about others have the model's names."""

import numpy as np
import onnx2halide
import pytest
from onnx import parser
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime


def ints(*values):
    return np.array(values, np.int64)


def x(*shape):
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


CONV_TRANSPOSE = "g (float[n,c,h,w] x, float[a,b,3,3] k, float[e] f) => (float[n,o,u,v] y) { y = ConvTranspose <strides = [2, 2], group = 2> (x, k, f) }"
CONV = "g (float[n,4,h,w] x, float[m,a,3,3] k) => (float[n,m,u,v] y) { y = Conv <group = 2> (x, k) }"
CONV_BIAS = "g (float[n,4,h,w] x, float[m,a,3,3] k, float[e] f) => (float[n,m,u,v] y) { y = Conv <group = 2> (x, k, f) }"
DEFORM_CONV = "g (float[n,c,h,w] x, float[m,c,1,1] k, float[p,q,r,s] o, float[e,f,u,v] z) => (float[n,m,i,j] y) { y = DeformConv (x, k, o, , z) }"
BATCH = "g (float[n,c,h] x, float[a] s, float[b] t, float[d] m, float[e] v) => (float[n,c,h] y) { y = BatchNormalization (x, s, t, m, v) }"
INSTANCE = "g (float[n,c,h] x, float[a] s, float[b] t) => (float[n,c,h] y) { y = InstanceNormalization (x, s, t) }"
GROUPS = "g (float[n,c,h] x, float[a] s, float[b] t) => (float[n,c,h] y) { y = GroupNormalization <num_groups = 2, epsilon = 0.01> (x, s, t) }"
SCATTER = "g (float[n,m] x, int64[p,q] i, float[u,v] w) => (float[n,m] y) { y = ScatterElements <axis = 0> (x, i, w) }"
SCATTER_ROWS = "g (float[n,m] x, int64[p,k] i, float[u,w] z) => (float[n,m] y) { y = ScatterND (x, i, z) }"
SCATTER_ND = "g (float[n,m] x, int64[p,q,1] i, float[u,v,w] z) => (float[n,m] y) { y = ScatterND (x, i, z) }"
DET = "g (float[a,n,m] x) => (float[a] y) { y = Det (x) }"
DFT = "g (float[a,n,z] x) => (float[a,m,2] y) { y = DFT (x) }"
CROP = "g (float[n,c,h,w] x, float[m,4] r, int32[b] i) => (float[a,d,e,f] y) { s = Constant <value_ints = [2, 3]> () t = Cast <to = 6> (s) y = com.microsoft.CropAndResize (x, r, i, t) }"
ROI = "g (float[n,c,h,w] x, float[m,z] r, int64[b] i) => (float[a,d,e,f] y) { y = RoiAlign <output_height = 2, output_width = 2> (x, r, i) }"
UNPOOL = "g (float[a,b,c,d] x, int64[e,f,g,h] i) => (float[p,q,r,s] y) { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) }"
UPDATE = "g (float[a,b,c] x, float[d,e,f] s, int64[g] i) => (float[a,b,c] y) { y = TensorScatter (x, s, i) }"
CHANNELS = x(2, 3, 4), x(3), x(3)
IMAGE = x(2, 3, 4, 5)

# The model, what it accepts, and what it rejects with which message. Several models accept more than one shape.
CASES = [
    (20, "g (float[n,c,h,w] x, float[m,p,q,z] g) => (float[a,b,d,e] y) { y = GridSample (x, g) }", [(IMAGE, x(2, 3, 3, 2))], (IMAGE, x(1, 3, 3, 2)), "'y' (GridSample): dim 0 of 'g' is 1, expected 2"),
    (20, "g (float[n,c,h,w,u] x, float[m,p,q,r,z] g) => (float[a,b,d,e,f] y) { y = GridSample (x, g) }", [(x(2, 3, 4, 5, 2), x(2, 3, 3, 2, 3))], (x(2, 3, 4, 5, 2), x(2, 3, 3, 2, 2)), "'y' (GridSample): dim 4 of 'g' is 2, expected 3"),
    (20, "g (float[n,a,b] x, int64[4] s) => (float[p,q,r,s] y) { y = AffineGrid (x, s) }", [(x(2, 2, 3), ints(2, 3, 4, 5))], (x(2, 3, 4), ints(2, 3, 4, 5)), "'y' (AffineGrid): dim 1 of 'x' is 3, expected 2"),
    (16, ROI, [(IMAGE, x(3, 4), ints(0, 1, 0))], (IMAGE, x(3, 5), ints(0, 1, 0)), "'y' (RoiAlign): dim 1 of 'r' is 5, expected 4"),
    (16, ROI, [(IMAGE, x(1, 4), ints(1))], (IMAGE, x(1, 4), ints(2)), "'y' (RoiAlign): input 2 has the index 2"),
    (20, CONV_TRANSPOSE, [(x(2, 4, 4, 5), x(4, 2, 3, 3), x(4))], (x(2, 4, 4, 5), x(2, 2, 3, 3), x(4)), "'y' (ConvTranspose): dim 1 of 'x' is 4, expected 2"),
    (20, CONV_TRANSPOSE, [(x(1, 2, 3, 3), x(2, 3, 3, 3), x(6))], (x(1, 2, 3, 3), x(2, 3, 3, 3), x(3)), "'y' (ConvTranspose): dim 0 of 'f' is 3, expected 6"),
    (20, CONV_TRANSPOSE, [(x(1, 2, 3, 3), x(2, 3, 3, 3), x(6))], (x(1, 5, 3, 3), x(5, 3, 3, 3), x(6)), "'y' (ConvTranspose): dim 1 of 'x' is 5, expected 4"),
    (20, CONV_BIAS, [(x(2, 4, 4, 5), x(6, 2, 3, 3), x(6))], (x(2, 4, 4, 5), x(6, 2, 3, 3), x(1)), "'y' (Conv): dim 0 of 'f' is 1, expected 6"),
    (20, CONV, [(x(2, 4, 4, 5), x(6, 2, 3, 3))], (x(2, 4, 4, 5), x(5, 2, 3, 3)), "'y' (Conv): dim 0 of 'k' is 5, expected 4"),
    (20, CONV, [(x(2, 4, 4, 5), x(6, 2, 3, 3))], (x(2, 4, 4, 5), x(6, 3, 3, 3)), "'y' (Conv): dim 1 of 'k' is 3, expected 2"),
    (20, DEFORM_CONV, [(x(2, 3, 4, 5), x(2, 3, 1, 1), x(2, 2, 4, 5), x(2, 1, 4, 5))], (x(2, 3, 4, 5), x(2, 3, 1, 1), x(2, 2, 4, 4), x(2, 1, 4, 5)), "'y' (DeformConv): dim 3 of 'o' is 4, expected 5"),
    (20, DEFORM_CONV, [(x(2, 3, 4, 5), x(2, 3, 1, 1), x(2, 2, 4, 5), x(2, 1, 4, 5))], (x(2, 3, 4, 5), x(2, 3, 1, 1), x(2, 2, 4, 5), x(1, 1, 4, 5)), "'y' (DeformConv): dim 0 of 'z' is 1, expected 2"),
    (20, BATCH, [(*CHANNELS, x(3), x(3))], (*CHANNELS, x(3), x(1)), "'y' (BatchNormalization): dim 0 of 'v' is 1, expected 3"),
    (20, INSTANCE, [CHANNELS], (x(2, 3, 4), x(2), x(3)), "'y' (InstanceNormalization): dim 0 of 's' is 2, expected 3"),
    (20, "g (float[n,c] x, float[a] s, float[b] t) => (float[n,c] y) { y = LayerNormalization (x, s, t) }", [(x(2, 4), x(4), x(4))], (x(2, 4), x(2), x(4)), "'y' (LayerNormalization): dim 0 of 's' is 2, expected 4"),
    (21, GROUPS, [(x(2, 6, 5), x(6), x(6)), (x(1, 4, 3), x(4), x(4))], (x(2, 5, 5), x(5), x(5)), "'y' (GroupNormalization): the shape's number of elements is 40, expected 50"),
    (21, GROUPS, [(x(2, 6, 5), x(6), x(6))], (x(2, 6, 5), x(6), x(4)), "'y' (GroupNormalization): dim 0 of 'y_bias' is 4, expected 6 or 1"),
    (18, GROUPS.replace("[a]", "[2]").replace("[b]", "[2]"), [(x(2, 6, 5), x(2), x(2)), (x(1, 4, 3), x(2), x(2))], (x(2, 5, 5), x(2), x(2)), "'y' (GroupNormalization): the shape's number of elements is 40, expected 50"),
    (20, "g (float[n,m,k] x, int64[p,q,1] i) => (float[a,b,c] y) { y = GatherND <batch_dims = 1> (x, i) }", [(x(2, 3, 4), ints([[0], [1]], [[1], [2]]))], (x(2, 3, 4), ints([[0], [1]])), "'y' (GatherND): dim 0 of 'i' is 1, expected 2"),
    (20, "g (float[n,m] x, int64[p,q] i) => (float[p,q] y) { y = GatherElements <axis = 0> (x, i) }", [(x(2, 3), ints([0, 1]))], (x(2, 3), ints([0, 1, 1, 1])), "'y' (GatherElements): dim 1 of 'i' is 4, expected one in [0, 3]"),
    (20, SCATTER, [(x(2, 3), ints([0, 1, 1]), x(1, 3))], (x(2, 3), ints([0, 1, 1]), x(2, 3)), "'y' (ScatterElements): dim 0 of 'w' is 2, expected 1"),
    (20, SCATTER, [(x(2, 3), ints([0, 1]), x(1, 2))], (x(2, 3), ints([0, 1, 1, 0]), x(1, 4)), "'y' (ScatterElements): dim 1 of 'i' is 4, expected one in [0, 3]"),
    (20, SCATTER_ROWS, [(x(2, 3), ints([0], [1]), x(2, 3))], (x(2, 3), ints([0, 0], [1, 1]), x(2, 3)), "'y' (ScatterND): dim 1 of 'i' is 2, expected 1"),
    (20, SCATTER_ND, [(x(2, 3), ints([[0], [1]]), x(1, 2, 3))], (x(2, 3), ints([[0], [1]]), x(1, 2, 4)), "'y' (ScatterND): dim 2 of 'z' is 4, expected 3"),
    (20, "g (float[n,m,k] x, int64[l] i) => (float[n,m,k] y) { y = ReverseSequence (x, i) }", [(x(4, 2, 3), ints(2, 4))], (x(4, 2, 3), ints(2, 3, 1)), "'y' (ReverseSequence): dim 0 of 'i' is 3, expected 2"),
    (20, "g (float[n,m,k] x, int64[l] i) => (float[n,m,k] y) { y = ReverseSequence (x, i) }", [(x(4, 2, 3), ints(0, 1))], (x(4, 2, 3), ints(2, 7)), "'y' (ReverseSequence): input 1 has the index 7"),
    (20, UNPOOL, [(x(1, 1, 2, 2), ints([[[0, 3], [8, 10]]]))], (x(1, 1, 2, 2), ints([[[0, 3], [8, 16]]])), "'y' (MaxUnpool): input 1 has the index 16"),
    (20, UNPOOL, [(x(1, 1, 1, 2), ints([[[1, 3]]]))], (x(1, 1, 2, 2), ints([[[1, 3]]])), "'y' (MaxUnpool): dim 2 of 'i' is 1, expected 2"),
    (24, UPDATE, [(x(2, 5, 4), x(2, 2, 4), ints(0, 3))], (x(2, 5, 4), x(2, 2, 4), ints(0, 4)), "'y' (TensorScatter): input 2 has the index 4"),
    (24, UPDATE, [(x(2, 5, 4), x(2, 1, 4), ints(4, 0))], (x(2, 5, 4), x(2, 2, 3), ints(0, 1)), "'y' (TensorScatter): dim 2 of 's' is 3, expected 4"),
    (20, DET, [(x(2, 4, 4),), (x(3, 1, 1),), (x(1, 70, 70),), (x(2, 3, 3) * [[[1], [0], [1]]],)], (x(2, 4, 3),), "'y' (Det): dim 2 of 'x' is 3, expected 4"),
    (20, DET.replace("n,m", "n,3"), [(x(2, 3, 3),)], (x(2, 4, 3),), "'y' (Det): dim 1 of 'x' is 4, expected 3"),
    (20, DFT, [(x(2, 8, 1),), (x(2, 8, 2),), (x(3, 7, 2),), (x(1, 12, 1),)], (x(2, 8, 3),), "'y' (DFT): dim 2 of 'x' is 3, expected one in [1, 2]"),
    (20, DFT.replace("z", "1"), [(x(2, 8, 1),)], (x(1, 46341, 1),), "'y' (DFT): the transform's number of elements is 46341, expected one in [1, 46340]"),
    (20, "g (float[a,n,z] x) => (float[a,f,m,2] y) { s = Constant <value_int = 2> () l = Constant <value_int = 4> () y = STFT (x, s, , l) }", [(x(2, 8, 1),)], (x(2, 8, 3),), "'y' (STFT): dim 2 of 'x' is 3, expected one in [1, 2]"),
    (20, "g (float[n,c] x, float[m,c] s) => (float[k,c] y) { y = Scan <num_scan_inputs = 2, body = b (float[c] a, float[c] d) => (float[c] e) { e = Add (a, d) }> (x, s) }", [(x(2, 3), x(2, 3)), (x(1, 4), x(1, 4))], (x(3, 3), x(2, 3)), "'y' (Scan): the number of slices of scan input 1 is 2, expected 3"),
    (20, "g (float[n,2,h,w] x, float[c] b) => (float[n,m,o,p] y) { k = Constant <value = float[3,2,1,1] {1, 2, 3, 4, 5, 6}> () y = Conv (x, k, b) }", [(x(2, 2, 5, 4), x(3))], (x(2, 2, 5, 4), x(4)), "input 'b' has shape [4], expected [3]"),
    (21, "g (float[n,c,h] x) => (float[n,c,h] y) { s = Constant <value = float[4] {1, 2, 3, 4}> () y = GroupNormalization <num_groups = 2> (x, s, s) }", [(x(2, 4, 5),)], (x(2, 6, 5),), "input 'x' has shape [2, 6, 5], expected [None, 4, None]"),
    (20, 'g (float[m,k] x, float[n,l] z) => (float[m,n] y) { y = com.microsoft.CDist <metric = "euclidean"> (x, z) }', [(x(5, 7), x(70, 7)), (x(1, 3), x(2, 3))], (x(5, 7), x(70, 6)), "'y_squares' (onnx2halide.SquaredDistances): dim 0 of 'y_b_columns' is 6, expected 7"),
    (20, CROP, [(IMAGE, x(3, 4), ints(0, 1, 0)), (IMAGE, x(1, 4), ints(1))], (IMAGE, x(1, 4), ints(2)), "'y_sampled' (onnx2halide.GridSample): input 2 has the index 2"),
    (20, CROP, [(IMAGE, x(2, 4), ints(0, 1))], (IMAGE, x(2, 4), ints(1)), "'y_sampled' (onnx2halide.GridSample): dim 0 of 'y_grid' is 2, expected 1"),
]  # fmt: skip


@pytest.mark.parametrize("opset, text, taken, refused, message", CASES)
def test_operands(opset, text, taken, refused, message):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    named = lambda operands: {port.name: np.asarray(operand, port.dtype) for port, operand in zip(compiled.inputs, operands, strict=True)}
    for operands in taken:
        found, expected = compiled.run_by_name(named(operands))["y"], reference.run(named(operands))["y"]
        assert found.shape == expected.shape and not difference(found, expected).exceeds(2e-5)
    with pytest.raises(ValueError) as error:
        compiled.run_by_name(named(refused))
    assert message in str(error.value)
    compiled.run_by_name(named(taken[0]))


def test_determinants_of_narrow_floats():
    model = parser.parse_model('<ir_version: 10, opset_import: ["" : 22]> g (float16[a,n,n] x) => (float16[a] y) { y = Det (x) }')
    matrices = x(3, 5, 5).astype(np.float16)
    found = onnx2halide.compile(model).run([matrices])[0]
    np.testing.assert_allclose(found, np.linalg.det(matrices.astype(np.float64)), rtol=1e-3, atol=1e-4)
