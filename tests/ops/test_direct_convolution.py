"""Direct convolutions whose channels fill vectors or not, against ones in float64."""

import pytest
from convolutions import error, model


@pytest.mark.parametrize("kernel, strides, pads", [((1, 1), (1, 1), (0,) * 4), ((3, 3), (2, 2), (1,) * 4)], ids=["1x1", "3x3"])
@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("channels", [5, 8, 18, 24, 34, 40, 50])
@pytest.mark.parametrize("target", ["host", "x86-64-linux-avx2-fma-f16c-avx-sse41"])
def test_channels_of_a_group(target, channels, group, kernel, strides, pads):
    """Of a vector and a half, of two and an eighth and the like."""
    proto = model(12 * group, channels * group, 9, 14, kernel=kernel, strides=strides, pads=pads, group=group, residual=True)
    assert error(proto, "direct", target=target) < 2e-6


@pytest.mark.parametrize("channels", [16, 24, 36])
@pytest.mark.parametrize("options", [{}, {"strides": (2, 2)}, {"batch": 2}], ids=lambda options: "-".join(options) or "plain")
def test_pixels_from_afar(channels, options):
    """Inputs that no near cache holds, of which the next tile's are asked for meanwhile: of whole cache lines and of parts."""
    proto = model(channels, 20, 110, 170, kernel=(1, 1), pads=(0,) * 4, **options)
    assert error(proto, "direct") < 2e-6
