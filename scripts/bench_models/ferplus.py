"""Emotion FER+ as ONNX's model zoo has it (emotion-ferplus-8, exported by CNTK), with opset 13: biases are added by nodes of their own,
and the first dense layer's weights are reshaped.

Barsoum et al., Training Deep Networks for Facial Expression Recognition with Crowd-Sourced Label Distribution, 2016."""

import numpy as np

from bench_models.graph import Graph, normal, uniform


def emotion_ferplus() -> Graph:
    g = Graph("emotion_ferplus", 13)
    x = g.input("Input3", (1, 1, 64, 64), uniform(0, 255))
    x = g.node("Sub", "Minus340", x, g.initializer("Constant339", 127.5))
    x = g.node("Div", "Block352", x, g.initializer("Constant343", 255))
    inputs = 1
    for block, (outputs, convs) in enumerate([(64, 2), (128, 2), (256, 3), (256, 3)], start=1):
        for conv in range(1, convs + 1):
            x = _conv(g, f"{block}_{conv}", x, inputs, outputs)
            inputs = outputs
        x = g.max_pool(f"Pooling{block}", x, auto_pad="NOTSET", pads=[0] * 4)
        x = g.node("Dropout", f"Dropout{block}", x)
    x = g.node("Reshape", "flat", x, g.initializer("flat_shape", [1, 4096], np.int64))
    weight = g.weight("dense1_weight", (256, 4, 4, 1024), normal((2 / 4096) ** 0.5))
    weight = g.node("Reshape", "dense1_weight_matrix", weight, g.initializer("dense1_weight_shape", [4096, 1024], np.int64))
    x = g.node("Dropout", "Dropout5", g.relu("ReLU5", _dense(g, "dense1", x, weight, 1024)))
    weight = g.weight("dense2_weight", (1024, 1024), normal((2 / 1024) ** 0.5))
    x = g.node("Dropout", "Dropout6", g.relu("ReLU6", _dense(g, "dense2", x, weight, 1024)))
    weight = g.weight("dense3_weight", (1024, 8), normal((1 / 1024) ** 0.5))
    g.output(_dense(g, "dense3", x, weight, 8), 1, 8)
    return g


def _conv(g: Graph, name: str, x: str, inputs: int, outputs: int) -> str:
    x = g.conv(f"Convolution{name}", x, (inputs, outputs), bias=False, auto_pad="SAME_UPPER")
    return g.relu(f"ReLU{name}", g.add(f"Plus{name}", x, g.weight(f"bias{name}", (outputs, 1, 1), normal(0.1))))


def _dense(g: Graph, name: str, x: str, weight: str, outputs: int) -> str:
    x = g.node("MatMul", f"{name}_times", x, weight)
    return g.add(f"{name}_plus", x, g.weight(f"{name}_bias", (outputs,), normal(0.1)))
