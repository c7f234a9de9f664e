"""Operators against ONNX's reference, one row per case. The backend suite has one or two cases of each; these have extents around a
vector's, combinations of attributes, and constant operands."""

import itertools

import numpy as np
import pytest
from onnx2halide.references import OnnxRuntime
from reference_cases import Case, check, constant, indices, x


def elementwise():
    # Extents around vectors of 8 and 16, and a tail that is shorter than one.
    for shape in ((), (1,), (7,), (3, 17), (2, 1, 33)):
        for op in ("Relu", "Exp"):
            yield Case(op, [x(*shape)])
    for op in ("Sigmoid", "Tanh", "Erf", "HardSwish"):
        yield Case(op, [x(3, 17)])
    # Rows shorter than a vector: as many as fill vectors together, fewer and more.
    for shape in ((5, 3), (32, 2), (2, 45, 3), (3, 5000, 1, 5)):
        yield Case("Sigmoid", [x(*shape)])
    yield Case("Exp", [x(45, 2, dtype="float64")])
    for dtype in ("float16", "float64", "int8", "int64"):
        yield Case("Abs", [x(3, 17, dtype=dtype)])
    yield Case("Sqrt", [x(3, 17, between=(0, 100))])
    yield Case("Log", [x(3, 17, between=(1e-3, 100))])
    yield Case("Clip", [x(3, 17), np.float32(-0.5), None])
    yield Case("Clip", [x(3, 17), None, np.float32(0.5)])
    for dtype in ("float64", "float16"):
        yield Case("Clip", [x(3, 17, dtype=dtype)], {"min": -0.5, "max": 0.7}, opset=6)
    yield Case("Elu", [x(3, 17)], {"alpha": 0.3})


def broadcasts():
    for left, right in (((17,), ()), ((3, 17), (17,)), ((3, 1), (1, 17)), ((2, 3, 1, 5), (4, 1)), ((1, 1), (2, 3, 17))):
        for op in ("Sub", "Less"):
            yield Case(op, [x(*left), x(*right)])
        yield Case("Add", [x(*left), constant(*right)])
    yield Case("Div", [x(3, 17), x(17, between=(0.5, 2))])
    yield Case("Div", [x(3, 17, dtype="int32"), x(17, dtype="int32", between=(1, 5))])
    yield Case("Mod", [x(3, 17, dtype="int32", between=(-9, 9)), x(17, dtype="int32", between=(1, 5))])
    yield Case("Pow", [x(3, 17, between=(0.1, 3)), x(17)])
    for base in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"):  # whose powers wrap around
        for exponent in ("uint8", "uint64") if base == "uint64" else ("int8", "uint8", "int64"):
            yield Case("Pow", [x(3, 17, dtype=base, between=(0, 99)), x(17, dtype=exponent, between=(0, 99))])
        yield Case("Pow", [x(3, 17, dtype=base, between=(0, 99)), np.array(9, base)])
    yield Case("Pow", [x(3, 17, dtype="int64", between=(-9, 9)), x(17, dtype="int64", between=(2**40, 2**60))])
    for shapes in (((), (7,)), ((7,), ()), ((), ()), ((1,), (1,))):  # numbers that do not depend on a loop
        for dtype in ("int32", "int64"):
            yield Case("Pow", [x(*shape, dtype=dtype, between=(0, 99)) for shape in shapes])
    for exponent in (indices(2), np.float32([2])):  # a square beyond the integers that doubles represent
        yield Case("Pow", [x(17, dtype="int64", between=(2**30, 2**31)), exponent], engine=OnnxRuntime)
    yield Case("Pow", [x(90, dtype="int64", between=(-3, 4)), x(90, dtype="int64", between=(-4, 0))], engine=OnnxRuntime)
    yield Case("Where", [x(3, 1, dtype="bool"), x(17), x(2, 1, 1)])
    yield Case("PRelu", [x(2, 3, 5), constant(3, 1)])
    yield Case("PRelu", [x(1, 5), constant(2, 3, 1)], engine=OnnxRuntime)


def reductions():
    for op in ("ReduceMean", "ReduceL2", "ReduceLogSumExp"):
        yield Case(op, [x(2, 3, 17), indices(2, 0)], {"keepdims": 0})
    for op in ("ReduceSum", "ReduceMax"):
        for shape, axes, keep in (((3, 17), [1], 1), ((3, 17), [0], 0), ((2, 3, 5, 9), [-1, 1], 0), ((2, 3, 5), None, 1), ((4, 1), [1], 0)):
            yield Case(op, [x(*shape), axes and indices(*axes)], {"keepdims": keep})
    for op in ("ReduceMean", "ReduceMax", "ReduceL2"):  # many elements for each of a few results, side by side
        for shape, axes in (((80, 8), [0]), ((2, 9, 12, 24), [1, 2]), ((3, 77, 4), [1]), ((130, 16), [0])):
            for dtype in ("float32", "float64"):
                yield Case(op, [x(*shape, dtype=dtype), indices(*axes)], {"keepdims": 0}, engine=OnnxRuntime)
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            yield Case(op, [x(3, 7, 17)], {"axis": axis, "keepdims": 0})
    for keep in (2, -1):  # not 1
        yield Case("ReduceSum", [x(3, 17), indices(1)], {"keepdims": keep}, engine=OnnxRuntime)
        yield Case("ArgMax", [x(3, 17)], {"axis": 1, "keepdims": keep}, engine=OnnxRuntime)
    for shape, axes in (((64, 20), [1]), ((5, 333), [1]), ((3, 9, 33), [1, 2]), ((2, 3, 40), [0, 1, 2]), ((33, 40), [0])):
        for dtype in ("float32", "float64"):
            yield Case("ReduceLogSumExp", [x(*shape, dtype=dtype), indices(*axes)], {"keepdims": 0})
        yield Case("ReduceLogSumExp", [x(*shape), indices(*axes)], {"keepdims": 0}, is_open=True)
    for op, columns, last in itertools.product(("ArgMax", "ArgMin"), (130, 200, 256), (0, 1)):  # across rows, several vectors at a time
        yield Case(op, [x(9, columns, dtype="int32", between=(0, 5))], {"axis": 0, "select_last_index": last}, engine=OnnxRuntime)
        yield Case(op, [x(9, columns)], {"axis": 0, "select_last_index": last}, engine=OnnxRuntime)
    for op in ("ArgMax", "ArgMin"):  # rows of a few vectors, with equal elements in several lanes
        for last in (0, 1):
            for extent, dtype in ((127, "float32"), (128, "float32"), (1000, "float32"), (300, "float64"), (333, "int32"), (400, "int8")):
                for is_open in (False, True):
                    operand = x(3, extent, dtype=dtype, between=(-9, 9)) if dtype.startswith("int") else x(3, extent, dtype=dtype)
                    yield Case(op, [operand], {"axis": 1, "select_last_index": last, "keepdims": last}, engine=OnnxRuntime, is_open=is_open)
        yield Case(op, [x(200, dtype="int32", between=(0, 3))], {"axis": 0}, engine=OnnxRuntime)
    for axis in (0, 1, -1):
        yield Case("Softmax", [x(2, 9, 17)], {"axis": axis})
        yield Case("LogSoftmax", [x(2, 9, 17)], {"axis": axis})


def products():
    for left, right in (((7, 17), (17, 9)), ((1, 33), (33, 1)), ((2, 3, 5, 8), (8, 16)), ((2, 1, 5, 8), (3, 8, 17)), ((17,), (17, 5)), ((5, 17), (17,)), ((17,), (17,))):
        yield Case("MatMul", [x(*left), x(*right)])
        yield Case("MatMul", [x(*left), constant(*right)])
    for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
        shapes = ((9, 7) if a else (7, 9)), ((17, 9) if b else (9, 17))
        yield Case("Gemm", [x(*shapes[0]), constant(*shapes[1]), constant(17)], {"transA": a, "transB": b, "alpha": 0.5})
        yield Case("Gemm", [x(*shapes[0]), x(*shapes[1]), x(7, 1)], {"transA": a, "transB": b, "beta": 2.0})
    yield Case("Einsum", [x(2, 5, 7), x(2, 7, 9)], {"equation": "bij,bjk->bik"})
    # Products whose operands or axes have another order.
    for equation, left, right in (
        ("bclhn,bcshn->bclsh", (2, 1, 20, 5, 33), (2, 1, 17, 5, 33)),
        ("bclhn,bclhp->bchpn", (1, 2, 20, 3, 33), (1, 2, 20, 3, 18)),
        ("bij,bj->bi", (3, 17, 20), (3, 20)),
        ("ij,j->i", (17, 20), (20,)),
        ("...ij,kj...->k...i", (4, 17, 20), (9, 20, 4)),
        ("bik,bkj->ijb", (4, 7, 20), (1, 20, 9)),  # of which one index is broadcast
    ):
        yield Case("Einsum", [x(*left), x(*right)], {"equation": equation})
        if 1 not in right[:1]:
            yield Case("Einsum", [x(*left), x(*right)], {"equation": equation}, is_open=True)
    # Products and sums after transposing and reshaping: several indices each, some of which may be open, or none.
    for equation, *shapes in (
        ("nkctv,kvw->nctw", (2, 3, 5, 7, 18), (3, 18, 11)),
        ("nchw,nkhw->nck", (2, 5, 4, 6), (2, 7, 4, 6)),
        ("abcd,acde->abe", (2, 5, 3, 4), (2, 3, 4, 6)),
        ("hbxw,ybwh->xyb", (3, 2, 5, 4), (6, 2, 4, 3)),
        ("ij,ji->", (5, 9), (9, 5)),
        ("bd,bd->b", (6, 40), (6, 40)),
        ("abij,jbi->b", (1, 3, 4, 5), (5, 3, 4)),
        ("bijc->bjci", (2, 5, 6, 7)),
        ("bijc->cb", (2, 5, 6, 7)),
        ("i...j->...", (2, 5, 6, 7)),
        ("iij->ji", (5, 5, 4)),
    ):
        yield Case("Einsum", [x(*shape) for shape in shapes], {"equation": equation})
        yield Case("Einsum", [x(*shape) for shape in shapes], {"equation": equation}, is_open=True)
    # Three operands and more, of which pairs are multiplied.
    for equation, *shapes in (
        ("ij,kl,jk->il", (5, 7), (9, 4), (7, 9)),
        ("bclhn,bcshn,bcls,bcshp->bclhp", (1, 2, 6, 3, 4), (1, 2, 5, 3, 4), (1, 2, 6, 5), (1, 2, 5, 3, 7)),
        ("...i,i,...i->...", (3, 17), (17,), (3, 17)),
        ("ii,ij,k->jk", (5, 5), (5, 3), (4,)),
    ):
        yield Case("Einsum", [x(*shape) for shape in shapes], {"equation": equation})
        yield Case("Einsum", [x(*shape) for shape in shapes], {"equation": equation}, is_open=True)
    yield Case("Einsum", [x(3, 17), x(17), x(1, 17)], {"equation": "...i,i,...i->..."})
    # Products of one matrix with several merged axes: the second operand in place and transposed, constant and not, on the left.
    for equation, left, right in (
        ("ibh,hnd->ibnd", (3, 2, 8), (8, 4, 5)),
        ("ibnd,hnd->ibh", (3, 2, 4, 5), (9, 4, 5)),
        ("...nd,ndh->...h", (3, 2, 4, 5), (4, 5, 9)),
        ("hnd,ibh->ibnd", (8, 4, 5), (3, 2, 8)),
        ("bji,jk->bik", (2, 5, 5), (5, 5)),
        ("ij,jk->ik", (3, 1), (7, 4)),
        ("ibh,hnd->ibnd", (2, 5, 3), (3, 2, 0)),
        ("ibhd,hdn->ibn", (2, 5, 3, 0), (3, 0, 4)),
    ):
        yield Case("Einsum", [x(*left), x(*right)], {"equation": equation})
        yield Case("Einsum", [x(*left), constant(*right)], {"equation": equation})
    for dtype in ("int8", "uint8", "int16", "uint16"):  # whose sums wrap around
        for rows, depth, columns in ((6, 8, 9), (1, 8, 9), (6, 8, 1), (6, 1, 9)):
            a, b = x(rows, depth, dtype=dtype, between=(50, 99)), x(depth, columns, dtype=dtype, between=(0, 99))
            yield Case("Einsum", [a, b], {"equation": "ij,jk->ik"})
            yield Case("Einsum", [a, b.sample(np.random.default_rng(1))], {"equation": "ij,jk->ik"})
        yield Case("Einsum", [x(6, 8, dtype=dtype, between=(50, 99)), x(6, 8, dtype=dtype, between=(0, 99))], {"equation": "ij,ij->j"})
    for rows, columns in ((1, 7), (6, 1), (6, 9)):
        yield Case("Einsum", [x(2, rows, 1), x(2, 1, columns)], {"equation": "bij,bjk->bik"})
        yield Case("MatMul", [x(2, rows, 1), constant(1, columns)])


def box(*slices):
    """The coordinates of each element of a box, along a last axis."""
    return np.stack(np.mgrid[slices], axis=-1)


def boxes():
    """Indices of a tensor of 6 x 37 x 5 that fill a box in order, and some that do not."""
    yield box(slice(1, 5), slice(3, 37))
    yield box(slice(2, 6))  # of whole slices
    yield box(slice(0, 6), slice(0, 37))  # nothing is left
    yield box(slice(0, 6), slice(1, 37), slice(0, 4))
    yield box(slice(-4, -1), slice(0, 9), slice(-1, 0))
    yield box(slice(3, 4), slice(0, 37)).reshape(1, 1, 37, 1, 2)
    yield box(slice(0, 6), slice(0, 37)).reshape(2, 3, 37, 2)  # two axes for one
    yield box(slice(1, 6, 2), slice(3, 37))  # with gaps
    yield box(slice(1, 5), slice(0, 9))[:, ::-1]
    yield box(slice(1, 5), slice(0, 9)).transpose(1, 0, 2)
    yield box(slice(1, 5), slice(0, 9)) // 2 * 2  # repeated


def movement():
    for perm in ([1, 0, 2], [2, 1, 0], [0, 2, 1]):
        yield Case("Transpose", [x(3, 8, 17)], {"perm": perm})
    # Elements with a stride of a page where they are read, where they are written, and both; and short rows.
    for shape in ((20, 1024), (1024, 20), (1024, 1024), (14, 40), (40, 14), (16, 1024), (1024, 7)):
        for dtype in ("float32", "float64", "uint8"):
            yield Case("Transpose", [x(*shape, dtype=dtype)], {"perm": [1, 0]})
    for starts, ends, axes, steps in (([1], [-1], [1], [1]), ([-1, 0], [-99, 99], [2, 0], [-2, 2]), ([5], [2], [1], [1])):
        yield Case("Slice", [x(3, 8, 17), *(indices(*numbers) for numbers in (starts, ends, axes, steps))])
    for extent, dtype in ((5, "float64"), (13, "float32"), (13, "float64"), (21, "float32")):  # backwards: a vector and a remainder
        yield Case("Slice", [x(extent, dtype=dtype), *(indices(number) for number in (-1, -99, 0, -1))])
    for end in (2**31 - 1, 2**63 - 1):  # no end, including backwards
        yield Case("Slice", [x(3, 5), indices(-1, 3), indices(end, end), indices(0, 1), indices(-1, -2)], engine=OnnxRuntime)
        for exclusive in (0, 1):
            yield Case("CumSum", [x(2, extent, dtype=dtype), np.int64(1)], {"reverse": 1, "exclusive": exclusive})
    for mode, pads in (("constant", [0, 2, 1, 3]), ("reflect", [1, 2, 0, 3]), ("edge", [2, 2, 2, 2]), ("wrap", [1, 2, 0, 3])):
        yield Case("Pad", [x(3, 17), indices(*pads)], {"mode": mode})
    yield Case("Pad", [x(3, 17), indices(0, -2, 1, 3)], engine=OnnxRuntime)  # the reference does not support negative pads
    yield Case("Pad", [x(1, 2), indices(-1, 0, 2, 0)], engine=OnnxRuntime)  # nothing of x is left
    for axis in (0, 1, -1):
        yield Case("Concat", [x(3, 5, 8), x(3, 5, 8)], {"axis": axis})
        yield Case("Gather", [x(3, 5, 8), indices(2, 0, -1)], {"axis": axis})
        yield Case("Gather", [x(3, 5, 8), x(2, 2, dtype="int64", between=(-3, 3))], {"axis": axis})
        yield Case("CumSum", [x(3, 5, 8), np.int64(axis)], {"reverse": 1, "exclusive": 1})
    for shape in ((1, 5), (20, 20), (2, 1), (9, 100), (3, 5, 16), (2, 3, 7, 1)):  # adjacent and strided rows
        for axis in range(len(shape)):
            yield Case("CumSum", [x(*shape), np.int64(axis)], {"exclusive": axis % 2})
            yield Case("CumSum", [x(*shape, dtype="int32"), np.int64(axis)], {"reverse": 1})
    yield Case("CumSum", [x(40, 2050), np.int64(0)])
    yield Case("Split", [x(3, 17), indices(5, 0, 12)], {"axis": 1}, outputs=3)
    for dtype in ("float32", "float64", "int64"):  # results, including whole vectors, are in the caller's memory
        for reduction in ("add", "mul", "min", "max"):
            yield Case("ScatterND", [x(4, 16, dtype=dtype), np.array([[1], [-1]]), x(2, 16, dtype=dtype)], {"reduction": reduction}, engine=OnnxRuntime)
    for slice_shape in ((1024,), (3, 96), (24,), (5, 3)):  # slices of several runs, of one, and of several rows
        for places in ((60, 1), (5, 12, 1)):  # some of which meet
            operands = [x(20, *slice_shape), x(*places, dtype="int64", between=(0, 20)), x(*places[:-1], *slice_shape)]
            yield Case("ScatterND", operands, {"reduction": "add"}, engine=OnnxRuntime)
            yield Case("ScatterND", operands, {}, engine=OnnxRuntime)
    for places in boxes():
        indexed = places.shape[:-1]
        yield Case("ScatterND", [x(6, 37, 5), places, x(*indexed, *(6, 37, 5)[places.shape[-1]:])], engine=OnnxRuntime)
    yield Case("ScatterND", [x(6, 37, dtype="uint8"), box(slice(1, 5), slice(3, 30)), x(4, 27, dtype="uint8")], engine=OnnxRuntime)
    for reduction in ("add", "mul", "min", "max"):
        yield Case("ScatterElements", [x(4, 16, dtype="bool"), x(4, 16, dtype="int64", between=(0, 4)), x(4, 16, dtype="bool")], {"reduction": reduction})
    yield Case("Split", [x(3, 17, 1), indices(0, 1)], {"axis": 2}, outputs=2)
    yield Case("Tile", [x(3, 5), indices(2, 3)])
    yield Case("Expand", [x(3, 1), indices(2, 1, 17)])
    yield Case("DepthToSpace", [x(1, 12, 3, 5)], {"blocksize": 2, "mode": "CRD"})
    yield Case("Trilu", [x(2, 7, 9), np.int64(-1)], {"upper": 0})
    for diagonal in (2**32, -(2**32)):
        yield Case("Trilu", [x(2, 3), x(dtype="int64", between=(diagonal, diagonal + 1))])
    # Numbers that are indices in 32 bits only.
    for dtype, first in (("int64", 2**32), ("int64", -(2**32) - 3), ("uint32", 2**32 - 3)):
        yield Case("OneHot", [x(9, dtype=dtype, between=(first, first + 3)), np.int64(3), np.float32([-1, 1])])
    for mode in ("nearest", "linear", "cubic"):
        yield Case("Resize", [x(1, 2, 5, 7), None, np.float32([1, 1, 2, 1.5])], {"mode": mode})
    yield Case("GatherElements", [x(3, 5), x(3, 2, dtype="int64", between=(-5, 5))], {"axis": 1})


def normalisation():
    for axis in (1, 2, -1):
        yield Case("LayerNormalization", [x(2, 3, 17), constant(*(2, 3, 17)[axis:]), None], {"axis": axis})
    yield Case("BatchNormalization", [x(2, 17, 5), constant(17), constant(17), constant(17), abs(constant(17)) + np.float32(0.5)])
    yield Case("InstanceNormalization", [x(2, 3, 5, 7), constant(3), constant(3)])
    yield Case("InstanceNormalization", [x(16, 4), constant(4), constant(4)])
    yield Case("GroupNormalization", [x(2, 6, 5), constant(6), constant(6)], {"num_groups": 3})
    yield Case("GroupNormalization", [x(2, 6, 5), constant(3), constant(3)], {"num_groups": 3}, engine=OnnxRuntime, opset=18)
    # The reference iterates over as many channels as the batch has items, and adds without |x|.
    yield Case("LRN", [x(1, 9, 3, 4)], {"size": 5, "alpha": 0.1}, engine=OnnxRuntime)
    yield Case("LRN", [x(1, 9, 3, 4)], {"size": 3, "alpha": 0.1, "beta": 0.5}, engine=OnnxRuntime)
    yield Case("LpNormalization", [x(3, 17)], {"axis": 0, "p": 1}, engine=OnnxRuntime)


def col2im():
    """Blocks known at compile time; those of the suite are known at run time."""
    rows = [
        ([2, 18, 16], [6, 6], [3, 3], {}),
        ([1, 18, 6], [5, 7], [3, 3], {"strides": [2, 2]}),
        ([1, 4, 6], [8, 12], [2, 2], {"strides": [5, 4]}),  # which skip elements
        ([1, 12, 35], [4, 5], [2, 3], {"pads": [0, 1, 2, 3]}),
        ([2, 12, 9], [7, 8], [2, 3], {"strides": [2, 3], "dilations": [3, 2], "pads": [1, 2, 0, 3]}),
        ([2, 6, 5], [7], [3], {"dilations": [2], "pads": [1, 1]}),
        ([1, 16, 12], [3, 4, 3], [2, 2, 2], {}),
        ([1, 9, 1369], [37, 37], [3, 3], {"pads": [1, 1, 1, 1]}),  # rows that fill vectors
    ]
    for shape, image, block, attributes in rows:
        yield Case("Col2Im", [x(*shape), indices(*image), indices(*block)], attributes)
    for dtype in ("float16", "int8", "uint64"):  # narrow floats are added as wide ones
        yield Case("Col2Im", [x(1, 9, 9, dtype=dtype), indices(5, 5), indices(3, 3)])


FAMILIES = (elementwise, broadcasts, reductions, products, movement, normalisation, col2im)
CASES = [case for family in FAMILIES for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_reference(case):
    check(case)
