"""Small graphs, each of which brings out certain schedules."""

import numpy as np
from make_models import FLOAT, model, node
from onnx import ModelProto, parser


def weights(*shape):
    """Simple numbers, the same everywhere."""
    return ((np.arange(np.prod(shape)) % 7 - 3) / 8).astype(np.float32).reshape(shape)


def attention(x, batch):
    nodes = [
        node("Transpose", x, "model_t", perm=[0, 2, 1]),
        node("MatMul", f"{x} model_t", "model_scores"),
        node("Softmax", "model_scores", "model_shares", axis=-1),
        node("MatMul", f"model_shares {x}", "model_y"),
    ]
    return model(nodes, [(x, FLOAT, [batch, 64, 64])], [("model_y", FLOAT, [batch, 64, 64])])


def one(op, shape, result, *constants, **attributes):
    """Makes models of one node, of which the first input and the first dim of input and output have the given names."""
    named = {f"model_c{i}": constant for i, constant in enumerate(constants)}

    def make(x, batch):
        ports = [(x, FLOAT, [batch, *shape])], [("model_y", FLOAT, [batch, *result])]
        return model([node(op, " ".join([x, *named]), "model_y", **attributes)], *ports, named)

    return make


GRAPHS = {
    "winograd": one("Conv", [32, 30, 30], [32, 30, 30], weights(32, 32, 3, 3), pads=[1] * 4),
    "winograd of conflicting pixels": one("Conv", [512, 33, 33], [16, 33, 33], weights(16, 512, 3, 3), pads=[1] * 4),
    "direct": one("Conv", [16, 30, 30], [32, 15, 15], weights(32, 16, 3, 3), pads=[1] * 4, strides=[2, 2]),
    "small image": one("Conv", [256, 14, 14], [256, 7, 7], weights(256, 256, 3, 3), pads=[1] * 4, strides=[2, 2]),
    "depthwise": one("Conv", [32, 30, 30], [32, 30, 30], weights(32, 1, 3, 3), pads=[1] * 4, group=32),
    "depthwise of conflicting pixels": one("Conv", [512, 28, 28], [512, 28, 28], weights(512, 1, 3, 3), pads=[1] * 4, group=512),
    "depthwise of many conflicting taps": one("Conv", [256, 28, 28], [256, 28, 28], weights(256, 1, 7, 7), pads=[3] * 4, group=256),
    "small groups": one("Conv", [32, 30, 30], [32, 30, 30], weights(32, 4, 3, 3), pads=[1] * 4, group=8),
    "open convolution": one("Conv", [8, "MODEL_H", "MODEL_W"], [16, "MODEL_I", "MODEL_J"], weights(16, 8, 3, 3), pads=[1] * 4, strides=[2, 2]),
    "transposed convolution": one("ConvTranspose", [16, 9, 9], [8, 18, 18], weights(16, 8, 2, 2), strides=[2, 2]),
    "product": one("MatMul", [100, 200], [100, 300], weights(200, 300)),
    "product of rows": one("MatMul", [64], [96], weights(64, 96)),
    "many dots": one("MatMul", [3, 50], [3, 1], weights(50, 1)),
    "column": one("MatMul", [64, 37], [64, 1], weights(37, 1)),
    "attention": attention,
    "softmax": one("Softmax", [50, 600], [50, 600]),
    "mean": one("ReduceMean", [50, 600], [50, 1], np.array([2])),
    "layer normalisation": one("LayerNormalization", [50, 96], [50, 96], weights(96)),
    "group normalisation": one("GroupNormalization", [32, 7, 9], [32, 7, 9], weights(32), weights(32), num_groups=4),
    "pool": one("MaxPool", [32, 20, 20], [32, 10, 10], kernel_shape=[2, 2], strides=[2, 2]),
    "transpose": one("Transpose", [30, 40, 50], [40, 50, 30], perm=[0, 2, 3, 1]),
    "resize": one("Resize", [16, 10, 12], [16, 20, 24], np.float32([]), np.float32([1, 1, 2, 2]), mode="linear"),
}

# Graphs of more nodes, in ONNX's textual syntax.
TEXTS = {
    "few columns": "(float[1,128] x, float[128,24] w) => (float[1,24] y) { y = MatMul (x, w) }",
    "block": """(float[1,16,20,20] x, float[16,16,3,3] v, float[16,1,3,3] d, float[32,16,1,1] p) => (float[1,32,10,10] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, v) b = Add (a, x) c = Relu (b)
        e = Conv <pads = [1, 1, 1, 1], strides = [2, 2], group = 16> (c, d) f = HardSwish (e) y = Conv (f, p) }""",
    "depthwise pair": """(float[1,16,112,112] x, float[96,16,1,1] v, float[96,1,3,3] d) => (float[1,96,56,56] y) {
        a = Conv (x, v) b = Relu (a) y = Conv <pads = [1, 1, 1, 1], strides = [2, 2], group = 96> (b, d) }""",
    "pooled convolution": """(float[1,3,96,96] x, float[32,3,3,3] w) => (float[1,32,48,48] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w) b = Relu (a) y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b) }""",
    "averaged convolution": """(float[1,64,28,28] x, float[32,64,1,1] w) => (float[1,32,14,14] y) {
        a = Conv (x, w) y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (a) }""",
    "branches": """(float[1,16,14,14] x, float[16,16,1,1] v, float[24,16,3,3] w) => (float[1,56,14,14] y) {
        a = Conv (x, v) b = Conv <pads = [1, 1, 1, 1]> (x, w) c = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)
        j = Concat <axis = 1> (a, b, c) y = Sigmoid (j) }""",
    "squeeze and excitation": """(float[1,32,14,14] x, float[8,32,1,1] v, float[32,8,1,1] w) => (float[1,32,14,14] y) {
        m = GlobalAveragePool (x) a = Conv (m, v) b = Relu (a) c = Conv (b, w) s = Sigmoid (c) y = Mul (x, s) }""",
    "channel shuffle": """(float[1,32,14,14] x, float[32,8,1,1] w) => (float[1,32,14,14] y) {
        a = Conv <group = 4> (x, w) s = Constant <value_ints = [1, 4, 8, 14, 14]> () t = Constant <value_ints = [1, 32, 14, 14]> ()
        b = Reshape (a, s) c = Transpose <perm = [0, 2, 1, 3, 4]> (b) d = Reshape (c, t) y = Relu (d) }""",
    "quantised convolution": """(uint8[1,32,14,14] x, int8[32,32,3,3] w) => (uint8[1,32,14,14] y) {
        s = Constant <value = float {0.05}> () z = Constant <value = uint8 {128}> () t = Constant <value = float {0.02}> ()
        i = Constant <value = int8 {0}> () y = QLinearConv <pads = [1, 1, 1, 1]> (x, s, z, w, t, i, s, z) }""",
    "loop": """(float[8] x, int64 n) => (float[8] y, float[k,8] z) { go = Constant <value = bool {1}> ()
        y, z = Loop (n, go, x) <body = b (int64 i, bool on, float[8] s) => (bool o, float[8] r, float[8] q) {
            o = Identity (on) r = Add (s, s) q = Neg (r) }> }""",
    "gathered rows": """(float[100,64] x, int64[n] i) => (float[n,64] y) { g = Gather (x, i) y = Tanh (g) }""",
    "transposed operand of open size": """(float[2,r,c] x, float[2,c,r] z) => (float[2,r,c] y) {
        t = Transpose <perm = [0, 2, 1]> (z) s = Add (x, t) y = Tanh (s) }""",
    "largest": """(float[4,100] x) => (float[4,5] y, int64[4,5] i) { k = Constant <value_ints = [5]> () y, i = TopK (x, k) }""",
}


def models() -> dict[str, ModelProto]:
    """All graphs, as models of one image or sequence, by names that are identifiers."""
    protos = {name: make("x", 1) for name, make in GRAPHS.items()}
    for name, text in TEXTS.items():
        protos[name] = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> g {text}')
    return {name.replace(" ", "_"): proto for name, proto in protos.items()}
