"""Tiny YOLOv2 as ONNX's model zoo has it (tinyyolov2-8, converted from Core ML), with opset 13.

Redmon and Farhadi, YOLO9000: Better, Faster, Stronger, 2016."""

from bench_models.graph import Graph, uniform

SAME = {"auto_pad": "SAME_UPPER"}


def tinyyolov2() -> Graph:
    g = Graph("tinyyolov2", 13)
    x = g.input("image", (1, 3, 416, 416), uniform(0, 255))
    x = g.node("Mul", "image2", x, g.initializer("scalerPreprocessor_scale", [1 / 255]))
    x = g.node("Add", "scaled", x, g.initializer("scalerPreprocessor_bias", [[[0]]] * 3))
    inputs = 3
    # Channels, and the stride of the pool that follows.
    for index, (outputs, pool) in enumerate([(16, 2), (32, 2), (64, 2), (128, 2), (256, 2), (512, 1), (1024, 0), (1024, 0)]):
        x = g.conv(f"convolution{index}", x, (inputs, outputs), bias=False, **SAME)
        x = g.batch_norm(f"batchnorm{index}", x, outputs, epsilon=1e-5)
        x = g.node("LeakyRelu", f"activation{index}", x, alpha=0.1)
        if pool:
            x = g.max_pool(f"pooling{index}", x, stride=pool, **SAME)
        inputs = outputs
    # 5 boxes of 4 coordinates, confidence and 20 classes in each of 13x13 cells.
    g.output(g.conv("grid", x, (1024, 125), kernel=1, gain=1, **SAME), 1, 125, 13, 13)
    return g
