"""ArcFace with ResNet-100 as ONNX's model zoo has it (arcfaceresnet100-8, exported by MXNet), with opset 13.

Deng et al., ArcFace: Additive Angular Margin Loss for Deep Face Recognition, 2018; the units are insightface's LResNet100E-IR."""

from bench_models.graph import Graph, uniform

EPSILON = 2e-5  # BatchNormalization's


def arcface_resnet100() -> Graph:
    g = Graph("arcface_resnet100", 13)
    x = g.node("Identity", "id", g.input("data", (1, 3, 112, 112), uniform(0, 255)))
    x = g.node("Sub", "_minusscalar0", x, g.initializer("scalar_op1", [127.5]))
    x = g.node("Mul", "_mulscalar0", x, g.initializer("scalar_op2", [1 / 128]))
    x = g.conv("conv0", x, (3, 64), bias=False)
    x = _prelu(g, "relu0", g.batch_norm("bn0", x, 64, EPSILON), 64)
    inputs = 64
    for stage, (outputs, units) in enumerate([(64, 3), (128, 13), (256, 30), (512, 3)], start=1):
        for unit in range(1, units + 1):
            x = _unit(g, f"stage{stage}_unit{unit}", x, inputs, outputs, 2 if unit == 1 else 1)
            inputs = outputs
    x = g.node("Dropout", "dropout0", g.batch_norm("bn1", x, 512, EPSILON))
    x = g.gemm("pre_fc1", g.node("Flatten", "flatten0", x), 512 * 7 * 7, 512)
    g.output(g.batch_norm("fc1", x, 512, EPSILON), 1, 512)
    return g


def _unit(g: Graph, name: str, x: str, inputs: int, outputs: int, stride: int) -> str:
    """A residual unit. 49 of them are summed, so each contribution is small."""
    y = g.batch_norm(f"{name}_bn1", x, inputs, EPSILON)
    y = g.batch_norm(f"{name}_bn2", g.conv(f"{name}_conv1", y, (inputs, outputs), bias=False, gain=1), outputs, EPSILON)
    y = _prelu(g, f"{name}_relu1", y, outputs)
    y = g.batch_norm(f"{name}_bn3", g.conv(f"{name}_conv2", y, (outputs, outputs), stride=stride, bias=False), outputs, EPSILON, scale=0.2)
    if stride > 1:
        x = g.conv(f"{name}_conv1sc", x, (inputs, outputs), kernel=1, stride=stride, bias=False, gain=1)
        x = g.batch_norm(f"{name}_sc", x, outputs, EPSILON)
    return g.add(f"{name}_plus", y, x)


def _prelu(g: Graph, name: str, x: str, channels: int) -> str:
    return g.node("PRelu", name, x, g.weight(f"{name}_gamma", (channels, 1, 1), uniform(0.1, 0.4)))
