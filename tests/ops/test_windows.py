"""Convolutions and pools against ONNX's reference or onnxruntime, one row per case: extents around a vector's, and combinations of
attributes."""

import pytest
from onnx2halide.references import OnnxRuntime
from reference_cases import Case, check, constant, x


def windows():
    shapes = [((1, 3, 9, 11), (5, 3, 3, 3), 1), ((2, 16, 7, 7), (17, 16, 1, 1), 1), ((1, 6, 8, 8), (9, 2, 3, 3), 3), ((1, 8, 6, 9), (8, 1, 3, 3), 8)]
    attributes = [{}, {"pads": [1, 0, 2, 1]}, {"strides": [2, 3], "pads": [1, 1, 1, 1]}, {"dilations": [2, 1], "pads": [2, 2, 2, 2]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}]
    for shape, weight, group in shapes:
        for attribute in attributes:
            yield Case("Conv", [x(*shape), constant(*weight), constant(weight[0])], {"group": group, **attribute})
    # Depthwise, with so many channels that inputs evict each other from the cache: a padded input is copied.
    for shape, size, attribute in [((1, 512, 5, 13), 3, {}), ((2, 256, 9, 19), 5, {"strides": [1, 2]}), ((1, 520, 4, 17), 7, {"dilations": [1, 2]})]:
        pads = [size // 2, 1, size // 2, size - 1]
        yield Case("Conv", [x(*shape), constant(shape[1], 1, size, size), constant(shape[1])], {"group": shape[1], "pads": pads, **attribute})
    # Images so small that weights are read once for all rows.
    for shape, outputs, attribute in [((2, 256, 14, 14), 256, {"pads": [1, 1, 1, 1]}), ((1, 288, 9, 13), 520, {"pads": [2, 1, 0, 1]})]:
        yield Case("Conv", [x(*shape), constant(outputs, shape[1], 3, 3), constant(outputs)], {"strides": [2, 2], **attribute})
    # Groups with more channels than registers hold, which are not whole vectors.
    yield Case("Conv", [x(1, 272, 3, 9), constant(272, 136, 1, 1), constant(272)], {"group": 2})
    yield Case("Conv", [x(2, 40, 5, 7), constant(408, 10, 3, 3), constant(408)], {"group": 4, "pads": [1, 1, 1, 1]})
    # Vectors that span several groups with as many outputs as inputs; the last one may overlap the previous one.
    for channels, group, kernel, attribute in [
        (32, 8, (3, 3), {"pads": [1, 1, 1, 1]}),
        (64, 8, (3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 2]}),
        (22, 11, (5, 3), {"dilations": [1, 2]}),
        (20, 5, (1, 1), {}),
        (24, 3, (3,), {"pads": [0, 2]}),
        (32, 4, (2, 3, 3), {"pads": [1, 1, 1, 1, 1, 1], "strides": [1, 2, 1]}),
    ]:
        image = (9, 11, 6)[: len(kernel)]
        yield Case("Conv", [x(2, channels, *image), constant(channels, channels // group, *kernel), constant(channels)], {"group": group, **attribute})
    yield Case("Conv", [x(1, 32, 9, 19, dtype="float16"), constant(32, 4, 3, 3, dtype="float16")], {"group": 8, "pads": [1, 1, 1, 1]})
    # Planar images, with rows of several vectors.
    for channels, dtype, attribute in ((3, "float32", {}), (4, "float32", {"strides": [2, 2]}), (1, "float16", {}), (3, "float64", {})):
        image, kernel = x(2, channels, 9, 83, dtype=dtype), constant(24, channels, 3, 3, dtype=dtype)
        yield Case("Conv", [image, kernel], {"pads": [1, 1, 1, 1], **attribute})
    # Planar images with few channels: several neighbouring pixels share a vector.
    for outputs, image, kernel, attribute in [
        (8, (1, 9, 31), (5, 5), {"pads": [2, 2, 2, 2]}),
        (4, (3, 7, 37), (3, 3), {"pads": [1, 1, 1, 1]}),
        (1, (1, 21, 19), (7, 7), {}),
        (2, (1, 70), (9,), {"dilations": [3], "pads": [12, 12]}),
        (4, (2, 5, 6, 29), (2, 1, 3), {"strides": [1, 2, 1]}),
        (8, (1, 12, 13), (1, 1), {}),
    ]:
        yield Case("Conv", [x(2, *image), constant(outputs, image[0], *kernel), constant(outputs)], attribute)
    for dtype in ("float16", "float64"):
        yield Case("Conv", [x(1, 1, 9, 31, dtype=dtype), constant(4, 1, 5, 5, dtype=dtype)], {"pads": [2, 2, 2, 2]})
    # Weights known only at run time: dense, grouped in each form, depthwise; a bias that does not fill a block.
    for channels, outputs, group in ((3, 5, 1), (17, 33, 1), (32, 32, 8), (12, 36, 3), (24, 24, 24)):
        weights = x(outputs, channels // group, 3, 3)
        yield Case("Conv", [x(2, channels, 9, 11), weights], {"group": group, "pads": [1, 1, 1, 1]})
        yield Case("Conv", [x(2, channels, 9, 11), weights, x(outputs)], {"group": group, "strides": [2, 2]})
    yield Case("Conv", [x(2, 3, 19), constant(4, 3, 5)], {"pads": [2, 2]})
    yield Case("Conv", [x(1, 2, 5, 6, 7), constant(3, 2, 2, 2, 2)])
    # Volumes with taps outside of the first and last planes; with wide pads all taps are outside.
    for group, kernel, attribute in [
        (1, (3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
        (1, (3, 1, 1), {"pads": [3, 0, 0, 4, 0, 0]}),
        (1, (2, 3, 3), {"pads": [0, 1, 0, 2, 0, 1], "strides": [2, 1, 2], "dilations": [2, 1, 1]}),
        (2, (3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
        (18, (3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    ]:
        yield Case("Conv", [x(2, 18, 4, 5, 6), constant(36, 18 // group, *kernel), constant(36)], {"group": group, **attribute})
    # Taps outside of the edges of rows, and taps outside of the whole image.
    for group, kernel, attribute in [
        (1, 3, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
        (1, 3, {"pads": [9, 6, 9, 6], "dilations": [9, 6], "strides": [2, 1]}),
        (1, 3, {"pads": [0, 12, 30, 12], "dilations": [15, 12]}),
        (3, 5, {"pads": [2, 2, 2, 2]}),
        (18, 5, {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
        (18, 3, {"pads": [20, 20, 20, 20], "dilations": [20, 20]}),
    ]:
        yield Case("Conv", [x(2, 18, 9, 20), constant(36, 18 // group, kernel, kernel), constant(36)], {"group": group, **attribute})
    half = [x(1, 18, 4, 5, 6, dtype="float16"), constant(20, 18, 3, 3, 3, dtype="float16")]
    yield Case("Conv", half, {"pads": [1, 1, 1, 1, 1, 1]})
    for attribute in ({}, {"strides": [2, 3]}, {"strides": [2, 2], "pads": [1, 0, 1, 2], "output_padding": [1, 1]}, {"dilations": [2, 2]}):
        yield Case("ConvTranspose", [x(1, 4, 5, 6), constant(4, 3, 3, 3), constant(3)], attribute)
    for kernel, attribute in [
        (2, {"strides": [2, 2]}),
        (4, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        (1, {"strides": [2, 3]}),
        (3, {"strides": [2, 2], "pads": [2, 2, 2, 2]}),
        (3, {"strides": [3, 1], "auto_pad": "SAME_UPPER"}),
    ]:
        yield Case("ConvTranspose", [x(2, 4, 5, 6), constant(4, 18, kernel, kernel), constant(18)], attribute)
    # The reference interprets output_shape as the padded shape.
    yield Case("ConvTranspose", [x(1, 4, 5, 6), constant(4, 18, 3, 3)], {"strides": [2, 2], "output_shape": [9, 12]}, engine=OnnxRuntime)
    # What is beyond the full output is at the end.
    for attribute in ({"output_shape": [12, 21]}, {"output_shape": [13, 20], "auto_pad": "VALID"}):
        for channels in (3, 18):
            for weights in (constant(4, channels, 2, 2), x(4, channels, 2, 2)):
                yield Case("ConvTranspose", [x(1, 4, 3, 5), weights], {"strides": [4, 4], **attribute}, engine=OnnxRuntime)
    # A convolution for each phase.
    yield Case("ConvTranspose", [x(1, 64, 5, 6), constant(64, 48, 3, 3), constant(48)], {"strides": [2, 2], "pads": [1, 1, 0, 0]})
    # Weights known only at run time.
    yield Case("ConvTranspose", [x(1, 4, 5, 6), x(4, 3, 2, 2)], {"strides": [2, 2]})
    yield Case("ConvTranspose", [x(1, 64, 9, 7), x(64, 48, 3, 3), x(48)], {"strides": [2, 2], "pads": [1, 1, 0, 0]})
    yield Case("ConvTranspose", [x(2, 4, 13), x(4, 6, 5), x(12)], {"strides": [3], "group": 2}, engine=OnnxRuntime)
    yield Case("ConvTranspose", [x(1, 4, 5, 6, dtype="float16"), x(4, 3, 3, 3, dtype="float16")], {"strides": [2, 2], "pads": [1, 0, 1, 1]})
    yield Case("ConvTranspose", [x(1, 16, 21), constant(16, 8, 16), constant(8)], {"strides": [8], "pads": [4, 4]})
    yield Case("ConvTranspose", [x(1, 2, 3, 4, 5), constant(2, 3, 3, 2, 4)], {"strides": [2, 1, 3]})
    for shape, group in (((4, 0, 3, 3), 1), ((4, 0, 3, 3), 2), ((0, 4, 3, 3), 1)):  # neither results nor products
        yield Case("ConvTranspose", [x(1, shape[0], 5, 5), constant(*shape)], {"strides": [2, 2], "group": group}, engine=OnnxRuntime)
    # The reference reshapes the weights of a group as if there were only one.
    for group, attribute in [(2, {}), (2, {"strides": [2, 2], "pads": [1, 0, 1, 1]}), (4, {"strides": [2, 2]})]:
        yield Case("ConvTranspose", [x(1, 4, 5, 6), constant(4, 3, 3, 3), constant(3 * group)], {"group": group, **attribute}, engine=OnnxRuntime)
    for attribute in ({}, {"strides": [2, 2]}, {"pads": [1, 1, 0, 1]}, {"strides": [2, 2], "ceil_mode": 1}):
        # The reference has the wrong order of pads.
        yield Case("MaxPool", [x(2, 17, 9, 10)], {"kernel_shape": [3, 2], **attribute}, engine=OnnxRuntime)
        for include in (0, 1):
            yield Case("AveragePool", [x(2, 17, 9, 10)], {"kernel_shape": [3, 2], "count_include_pad": include, **attribute})
    # Windows that reach past the padding, by less than a stride.
    for size, attribute in (((2, 2), {"kernel_shape": [3, 3], "strides": [2, 2]}), ((1, 23), {"kernel_shape": [4, 3], "strides": [4, 2], "pads": [1, 0, 1, 0]}), ((5,), {"kernel_shape": [3], "strides": [3], "dilations": [3]})):
        for op, include in (("MaxPool", {}), ("AveragePool", {"count_include_pad": 0}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {})):
            for is_open in (False, True):
                yield Case(op, [x(1, 17, *size)], {"ceil_mode": 1, **attribute, **include}, engine=OnnxRuntime, is_open=is_open)
    yield Case("GlobalAveragePool", [x(2, 17, 5, 3)])
    for op, attribute in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), *(("LpPool", {"p": p}) for p in (1, 2, 3))):  # one window
        yield Case(op, [x(2, 17, 5, 3)], {"kernel_shape": [7, 4], "pads": [1, 1, 1, 0], **attribute}, engine=OnnxRuntime)
        yield Case(op, [x(2, 17, 5, 3)], {"kernel_shape": [5, 3], "auto_pad": "VALID", **attribute}, engine=OnnxRuntime)
    for op, attribute in (("GlobalMaxPool", {}), ("GlobalAveragePool", {}), *(("GlobalLpPool", {"p": p}) for p in (1, 2, 3))):
        for is_open in (False, True):  # planes are reduced in place
            yield Case(op, [x(2, 3, 17, 19)], attribute, engine=OnnxRuntime, opset=21, is_open=is_open)
    yield from pools_of_rows()
    yield from pools_of_channels()


def pools_of_rows():
    """Pools of planar images, like a model's input: rows shorter than a vector, as long, and longer."""
    images = (
        (8, [3], {"pads": [1, 1]}),
        (40, [5], {"strides": [3], "dilations": [2], "pads": [4, 2], "ceil_mode": 1}),
        ((9, 8), [2, 1], {}),
        ((5, 23), [3, 3], {"pads": [1, 1, 1, 1]}),
        ((11, 37), [3, 3], {"strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
        ((20, 70), [5, 4], {"strides": [1, 3], "pads": [2, 0, 1, 3]}),
        ((9, 33), [3, 2], {"dilations": [2, 3], "pads": [1, 0, 2, 1]}),
        ((5, 6, 18), [3, 3, 3], {"strides": [2, 1, 2], "pads": [1, 1, 1, 1, 1, 1]}),
    )
    for size, kernel, attributes in images:
        shape = (2, 3, *(size if isinstance(size, tuple) else (size,)))
        for is_open in (False, True):
            yield Case("MaxPool", [x(*shape)], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime, is_open=is_open)
            yield Case("AveragePool", [x(*shape)], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime, is_open=is_open)
        yield Case("AveragePool", [x(*shape)], {"kernel_shape": kernel, "count_include_pad": 1, **attributes}, engine=OnnxRuntime)
        yield Case("LpPool", [x(*shape)], {"kernel_shape": kernel, "p": 1 + len(kernel), **attributes}, engine=OnnxRuntime)
        yield Case("MaxPool", [x(*shape, dtype="int8")], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime)
        yield Case("MaxPool", [x(*shape, dtype="float64")], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime)


def pools_of_channels():
    """Overlapping windows where rows are too short, or kernels too wide, for vectors along rows: these run along channels."""
    images = (
        (20, [7], [5], {"pads": [2, 2]}),
        (17, (7, 7), [3, 3], {"pads": [1, 1, 1, 1]}),
        (128, (5, 7), [3, 3], {}),
        (512, (5, 7), [3, 3], {"pads": [1, 1, 1, 1]}),
        (1024, (3, 3, 5), [3, 3, 3], {"pads": [1, 1, 1, 0, 1, 1]}),
        (136, (7, 6), [3, 3], {"pads": [1, 0, 1, 2], "ceil_mode": 1}),
        (33, (9, 7), [5, 4], {"pads": [2, 3, 0, 1]}),
        (16, (9, 13), [6, 7], {"strides": [1, 2], "pads": [3, 3, 3, 3]}),
        (5, (15, 11), [4, 5], {"dilations": [2, 1], "pads": [2, 0, 1, 0]}),
        (24, (31, 37), [3, 17], {"pads": [1, 8, 1, 8]}),
        (12, (17, 7), [13, 8], {"auto_pad": "SAME_UPPER"}),
        (18, (4, 5, 6), [3, 3, 3], {"pads": [1, 1, 1, 1, 1, 1]}),
        (18, (5, 9, 6), [2, 1, 4], {"strides": [2, 1, 1]}),
        # Much work, which threads share.
        (192, [784], [16], {"strides": [16]}),
        (128, [300], [7], {"pads": [3, 3]}),
        (64, [9], [7], {"pads": [3, 3]}),
        (64, (40, 40), [5, 5], {"pads": [2, 2, 2, 2]}),
    )
    for channels, size, kernel, attributes in images:
        shape = (2, channels, *size)
        for dtype in ("float32", "float64", "int8"):
            yield Case("MaxPool", [x(*shape, dtype=dtype)], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime)
        yield Case("MaxPool", [x(*shape, dtype="float16")], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime)
        for include in (0, 1):
            yield Case("AveragePool", [x(*shape)], {"kernel_shape": kernel, "count_include_pad": include, **attributes}, engine=OnnxRuntime)
        yield Case("LpPool", [x(*shape)], {"kernel_shape": kernel, "p": 1 + len(kernel), **attributes}, engine=OnnxRuntime)
        yield Case("MaxPool", [x(*shape)], {"kernel_shape": kernel, **attributes}, engine=OnnxRuntime, is_open=True)


@pytest.mark.parametrize("case", windows(), ids=str)
def test_windows(case):
    check(case)
