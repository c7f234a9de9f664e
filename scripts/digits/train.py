"""Trains digits.onnx, the demo's model: a small convolutional network for handwritten digits, on the 1797 digits of 8x8 pixels
that scikit-learn ships. Writes digits.onnx and held_out.pgm next to this file.

    pip install -r requirements.txt && python train.py

Everything is seeded, so two runs on one machine give the same bytes. The number of epochs is fixed in advance: the held-out
digits choose nothing.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

EPOCHS = 60
BATCH = 64
HELD_OUT = 360
SEED = 1
EPSILON = 1e-5  # BatchNormalization's

here = pathlib.Path(__file__).parent


class Conv:
    """3x3 convolution with zero padding of 1; images are (n, c, y, x)."""

    def __init__(self, rng, inputs, outputs, bias):
        self.values = {"W": rng.normal(0, np.sqrt(2 / (9 * inputs)), (outputs, inputs, 3, 3))}
        if bias:
            self.values["B"] = np.zeros(outputs)

    def forward(self, x, training):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        self.windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))  # n, c, y, x, ky, kx
        y = np.tensordot(self.windows, self.values["W"], axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
        return y + self.values["B"][:, None, None] if "B" in self.values else y

    def backward(self, dy):
        self.gradients = {"W": np.tensordot(dy, self.windows, axes=((0, 2, 3), (0, 2, 3))), "B": dy.sum((0, 2, 3))}
        padded = np.pad(dy, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        flipped = self.values["W"][:, :, ::-1, ::-1]
        return np.tensordot(windows, flipped, axes=((1, 4, 5), (0, 2, 3))).transpose(0, 3, 1, 2)


class BatchNormalization:
    def __init__(self, channels):
        self.values = {"scale": np.ones(channels), "bias": np.zeros(channels)}
        self.mean, self.variance = np.zeros(channels), np.ones(channels)

    def forward(self, x, training):
        mean, variance = self.mean, self.variance
        if training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean += 0.1 * (mean - self.mean)
            self.variance += 0.1 * (variance - self.variance)
        self.deviation = np.sqrt(variance + EPSILON)[:, None, None]
        self.normalised = (x - mean[:, None, None]) / self.deviation
        return self.values["scale"][:, None, None] * self.normalised + self.values["bias"][:, None, None]

    def backward(self, dy):
        self.gradients = {"scale": (dy * self.normalised).sum((0, 2, 3)), "bias": dy.sum((0, 2, 3))}
        dx = dy * self.values["scale"][:, None, None]
        average = dx.mean((0, 2, 3), keepdims=True)
        along = (dx * self.normalised).mean((0, 2, 3), keepdims=True)
        return (dx - average - self.normalised * along) / self.deviation


class Relu:
    values = {}

    def forward(self, x, training):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


class MaxPool:
    """2x2 windows, stride 2."""

    values = {}

    def forward(self, x, training):
        n, c, h, w = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = windows.max((3, 5), keepdims=True)
        self.chosen = windows == y
        return y.reshape(n, c, h // 2, w // 2)

    def backward(self, dy):
        n, c, h, w = dy.shape
        share = dy.reshape(n, c, h, 1, w, 1) * self.chosen / self.chosen.sum((3, 5), keepdims=True)
        return share.reshape(n, c, 2 * h, 2 * w)


class Flatten:
    values = {}

    def forward(self, x, training):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, dy):
        return dy.reshape(self.shape)


class Dense:
    def __init__(self, rng, inputs, outputs):
        self.values = {"W": rng.normal(0, np.sqrt(1 / inputs), (outputs, inputs)), "B": np.zeros(outputs)}

    def forward(self, x, training):
        self.x = x
        return x @ self.values["W"].T + self.values["B"]

    def backward(self, dy):
        self.gradients = {"W": dy.T @ self.x, "B": dy.sum(0)}
        return dy @ self.values["W"]


class Adam:
    """Adam (Kingma and Ba, 2014) with the paper's constants; the rate decays along half a cosine."""

    def __init__(self, layers, steps, rate=2e-3):
        self.parameters = [(layer, name) for layer in layers for name in layer.values]
        self.moments = [[np.zeros_like(layer.values[name])] * 2 for layer, name in self.parameters]
        self.steps, self.rate, self.step = steps, rate, 0

    def update(self):
        self.step += 1
        rate = self.rate * 0.5 * (1 + np.cos(np.pi * self.step / self.steps))
        for (layer, name), moments in zip(self.parameters, self.moments):
            gradient = layer.gradients[name]
            moments[0] = 0.9 * moments[0] + 0.1 * gradient
            moments[1] = 0.999 * moments[1] + 0.001 * gradient**2
            first = moments[0] / (1 - 0.9**self.step)
            second = moments[1] / (1 - 0.999**self.step)
            layer.values[name] -= rate * first / (np.sqrt(second) + 1e-8)


def forward(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def shifted(rng, images):
    """Shifts each image by up to one pixel in x and y, since handwritten digits are not always centred."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    dy, dx = rng.integers(0, 3, (2, len(images)))
    return np.stack([image[:, y : y + 8, x : x + 8] for image, y, x in zip(padded, dy, dx)])


def train(rng, layers, images, labels):
    adam = Adam(layers, EPOCHS * (len(images) // BATCH))
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        loss = 0
        for at in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[at : at + BATCH]
            wanted = np.eye(10)[labels[batch]]
            probabilities = softmax(forward(layers, shifted(rng, images[batch]), training=True))
            loss -= (wanted * np.log(probabilities + 1e-12)).sum()
            gradient = (probabilities - wanted) / BATCH
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            adam.update()
        print(f"epoch {epoch + 1:2}   loss {loss / (at + BATCH):.4f}", flush=True)


def to_onnx(layers, accuracy):
    conv1, norm1, _, conv2, _, _, _, dense = layers
    weights = {
        "conv1_W": conv1.values["W"],
        "norm1_scale": norm1.values["scale"],
        "norm1_bias": norm1.values["bias"],
        "norm1_mean": norm1.mean,
        "norm1_variance": norm1.variance,
        "conv2_W": conv2.values["W"],
        "conv2_B": conv2.values["B"],
        "dense_W": dense.values["W"],
        "dense_B": dense.values["B"],
    }
    convolution = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    norm1_inputs = ["conv1", "norm1_scale", "norm1_bias", "norm1_mean", "norm1_variance"]

    def node(op, inputs, name, **attributes):
        return helper.make_node(op, inputs, [name], name=name, **attributes)

    graph = helper.make_graph(
        [
            node("Conv", ["image", "conv1_W"], "conv1", **convolution),
            node("BatchNormalization", norm1_inputs, "norm1", epsilon=EPSILON),
            node("Relu", ["norm1"], "relu1"),
            node("Conv", ["relu1", "conv2_W", "conv2_B"], "conv2", **convolution),
            node("Relu", ["conv2"], "relu2"),
            node("MaxPool", ["relu2"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
            node("Flatten", ["pool"], "flat", axis=1),
            node("Gemm", ["flat", "dense_W", "dense_B"], "dense", transB=1),
            node("Softmax", ["dense"], "probabilities", axis=1),
        ],
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
        producer_name="onnx2halide",
        doc_string="Handwritten digits of 8x8 pixels, 0 (paper) to 1 (ink). "
        f"{accuracy:.2%} of {HELD_OUT} held-out digits are right.",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def write_pgm(path, images):
    """Writes ten digits, one below the other, as a plain PGM: text that people, image viewers and a few lines of C can read."""
    rows = "\n".join(" ".join(f"{pixel:2}" for pixel in row) for row in images.reshape(-1, 8))
    path.write_text(f"P2\n# the first held-out digit of each class, 0 to 9\n8 {8 * len(images)}\n16\n{rows}\n")


def main():
    rng = np.random.default_rng(SEED)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    held_out, kept = order[:HELD_OUT], order[HELD_OUT:]
    images = digits.images[:, None] / 16

    layers = [
        Conv(rng, 1, 16, bias=False),
        BatchNormalization(16),
        Relu(),
        Conv(rng, 16, 32, bias=True),
        Relu(),
        MaxPool(),
        Flatten(),
        Dense(rng, 512, 10),
    ]
    train(rng, layers, images[kept], digits.target[kept])

    answers = forward(layers, images[held_out]).argmax(1)
    accuracy = (answers == digits.target[held_out]).mean()
    print(f"{accuracy:.2%} of {HELD_OUT} held-out digits are right")

    onnx.save(to_onnx(layers, accuracy), here / "digits.onnx")
    firsts = [next(i for i in held_out if digits.target[i] == digit) for digit in range(10)]
    write_pgm(here / "held_out.pgm", digits.images[firsts].astype(int))


if __name__ == "__main__":
    main()
