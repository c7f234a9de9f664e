"""ResNet-18, MobileNetV2 and VGG-16 as torch.onnx exports torchvision's models in evaluation mode: BatchNormalization is folded into
Conv, Dropout is gone."""

from bench_models.graph import Graph, normal

OPSET = 13
IMAGE = (1, 3, 224, 224)
CLASSES = 1000


def resnet18() -> Graph:
    """He et al., Deep Residual Learning for Image Recognition, 2015."""
    g = Graph("resnet18", OPSET)
    x = g.input("image", IMAGE, normal(1))
    x = g.relu("relu", g.conv("conv1", x, (3, 64), kernel=7, stride=2))
    x = g.max_pool("maxpool", x, kernel=3, stride=2, pads=[1, 1, 1, 1])
    inputs = 64
    for layer, outputs in enumerate([64, 128, 256, 512], start=1):
        for block in range(2):
            x = _basic_block(g, f"layer{layer}.{block}", x, inputs, outputs)
            inputs = outputs
    return _classified(g, "fc", x, 512)


def _basic_block(g: Graph, name: str, x: str, inputs: int, outputs: int) -> str:
    stride = 1 if inputs == outputs else 2
    y = g.relu(f"{name}.relu", g.conv(f"{name}.conv1", x, (inputs, outputs), stride=stride))
    y = g.conv(f"{name}.conv2", y, (outputs, outputs), gain=0.5)
    if stride > 1:
        x = g.conv(f"{name}.downsample", x, (inputs, outputs), kernel=1, stride=stride, gain=1)
    return g.relu(f"{name}.relu_1", g.add(f"{name}.add", y, x))


def mobilenetv2() -> Graph:
    """Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018."""
    g = Graph("mobilenetv2", OPSET)
    x = _relu6(g, "features.0", g.conv("features.0.conv", g.input("image", IMAGE, normal(1)), (3, 32), stride=2))
    inputs, feature = 32, 1
    # Expansion factor, output channels, blocks, stride of the first block.
    for factor, outputs, blocks, stride in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for block in range(blocks):
            x = _inverted_residual(g, f"features.{feature}", x, (inputs, outputs), factor, 1 if block else stride)
            inputs, feature = outputs, feature + 1
    x = _relu6(g, "features.18", g.conv("features.18.conv", x, (320, 1280), kernel=1))
    return _classified(g, "classifier", x, 1280)


def _inverted_residual(g: Graph, name: str, x: str, channels: tuple[int, int], factor: int, stride: int) -> str:
    inputs, outputs = channels
    hidden = inputs * factor
    y = x
    if factor > 1:
        y = _relu6(g, f"{name}.expand", g.conv(f"{name}.expand.conv", y, (inputs, hidden), kernel=1, gain=2.5))
    y = _relu6(g, f"{name}.depthwise", g.conv(f"{name}.depthwise.conv", y, (hidden, hidden), stride=stride, group=hidden, gain=3))
    residual = stride == 1 and inputs == outputs
    y = g.conv(f"{name}.project", y, (hidden, outputs), kernel=1, gain=0.5 if residual else 2)
    return g.add(f"{name}.add", x, y) if residual else y


def _relu6(g: Graph, name: str, x: str) -> str:
    return g.node("Clip", f"{name}.relu6", x, g.constant(f"{name}.min", 0), g.constant(f"{name}.max", 6))


def vgg16() -> Graph:
    """Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, 2014: configuration D."""
    g = Graph("vgg16", OPSET)
    x = g.input("image", IMAGE, normal(1))
    inputs, index = 3, 0
    for outputs, convs in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(convs):
            x = g.relu(f"features.{index + 1}", g.conv(f"features.{index}", x, (inputs, outputs)))
            inputs, index = outputs, index + 2
        x = g.max_pool(f"features.{index}", x)
        index += 1
    # AdaptiveAvgPool2d((7, 7)) of 7x7.
    x = g.node("AveragePool", "avgpool", x, kernel_shape=[1, 1], strides=[1, 1])
    x = g.node("Flatten", "flatten", x, axis=1)
    x = g.relu("classifier.1", g.gemm("classifier.0", x, 7 * 7 * 512, 4096, gain=2))
    x = g.relu("classifier.4", g.gemm("classifier.3", x, 4096, 4096, gain=2))
    g.output(g.gemm("classifier.6", x, 4096, CLASSES), 1, CLASSES)
    return g


def _classified(g: Graph, name: str, x: str, channels: int) -> Graph:
    """Ends the graph with the mean of each channel and a dense layer."""
    x = g.node("Flatten", "flatten", g.node("GlobalAveragePool", "avgpool", x), axis=1)
    g.output(g.gemm(name, x, channels, CLASSES), 1, CLASSES)
    return g
