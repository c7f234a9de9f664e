"""Kernels give way to the model's names: whatever an input or a dim is called, a kernel has the same text but for names."""

import re

import numpy as np
import pytest
from make_models import FLOAT, model, node

# What classes declare: Vars, RVars, RDoms, Funcs, parameters, constants, and the parameters of lambdas.
DECLARED = [
    r"^    (?:Var|RVar|Func|RDom) (.*);$",
    r"^    GeneratorParam<\w+> (\w+)",
    r"^ *const (?:int|auto) (\w+) =",
    r"\[&\]\(\w+ (\w+)\)",
    r"^ *(?:Expr|const Expr) (\w+) =",
]
TOKENS = re.compile(r"\.?[A-Za-z_]\w*|\d[\w.]*|\S")  # members, as r.x, have names of their own


def weights(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


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
    "direct": one("Conv", [16, 30, 30], [32, 15, 15], weights(32, 16, 3, 3), pads=[1] * 4, strides=[2, 2]),
    "depthwise": one("Conv", [32, 30, 30], [32, 30, 30], weights(32, 1, 3, 3), pads=[1] * 4, group=32),
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


@pytest.fixture
def emitted(onnx2halide, tmp_path):
    """The texts of a model's kernels, without comments."""

    def emit(proto) -> list[str]:
        (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
        done = onnx2halide("compile", "net.onnx", "-o", "out", "--sources-only", "--overwrite", "--target", "x86-64-linux-avx2-fma-f16c")
        assert (done.returncode, done.stderr) == (0, "")
        text = re.sub(r"//.*", "", (tmp_path / "out" / "net_generators.cpp").read_text())
        return text.split("\nclass ")[1:]

    return emit


def declared(kernels: list[str]) -> set[str]:
    """All names that kernels declare, but for those that are called after the model's values."""
    found = set()
    for pattern in DECLARED:
        for match in re.findall(pattern, "\n".join(kernels), re.MULTILINE):
            found.update(re.findall(r"[A-Za-z_]\w*", re.sub(r"\{[^}]*\}", "", match)))
    return {name for name in found if not name.startswith("model_")}


def renames(before: str, after: str) -> bool:
    """Whether the second text is the first one with other names, each of which stands for one."""
    ours, theirs = TOKENS.findall(before), TOKENS.findall(after)
    pairs = set(zip(ours, theirs))
    return len(ours) == len(theirs) and len(pairs) == len(set(ours)) == len(set(theirs))


def all_rename(before: list[str], after: list[str]) -> bool:
    return len(before) == len(after) and all(map(renames, before, after))


@pytest.mark.parametrize("name", GRAPHS)
def test_inputs_called_as_what_kernels_declare(emitted, name):
    before = emitted(GRAPHS[name]("model_x", 1))
    names = sorted(declared(before))
    assert len(names) > 2
    assert [other for other in names if not all_rename(before, emitted(GRAPHS[name](other, 1)))] == []


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "open convolution"])  # terms of several dims are sorted by name
def test_dims_called_as_what_kernels_declare(emitted, name):
    before = emitted(GRAPHS[name]("model_x", "model_n"))
    names = sorted(declared(before))
    assert len(names) > 2
    assert [other for other in names if not all_rename(before, emitted(GRAPHS[name]("model_x", other)))] == []
