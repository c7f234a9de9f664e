"""BERT-base for question answering as torch.onnx exports Hugging Face's BertForQuestionAnswering with opset 14 and one question and text
of 128 tokens: LayerNorm and Gelu in pieces, shapes as constants.

Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding, 2018."""

import numpy as np
import onnx

from bench_models.graph import Graph, integers, normal, uniform

VOCABULARY, TOKENS, POSITIONS = 30522, 128, 512
HIDDEN, INTERMEDIATE, LAYERS, HEADS = 768, 3072, 12, 12
HEAD = HIDDEN // HEADS

# A sample has 100 tokens, the first 20 of which are the question.
USED, QUESTION = 100, 20


def bert_base_qa() -> Graph:
    g = Graph("bert_base_qa", 14)
    ids, types, mask = _inputs(g)
    x = _embedded(g, ids, types)
    bias = _mask_bias(g, mask)
    for layer in range(LAYERS):
        x = _layer(g, f"layer.{layer}", x, bias)
    x = _linear(g, "qa_outputs", x, HIDDEN, 2)
    g.node("Split", "split", x, g.constant("split.sizes", [1, 1], np.int64), outputs=("start", "end"), axis=-1)
    for side in ("start", "end"):
        g.output(g.node("Squeeze", f"{side}_logits", side, g.constant(f"{side}.axes", [-1], np.int64)), 1, TOKENS)
    return g


def _inputs(g: Graph) -> tuple[str, str, str]:
    """The words of the tokens, the index of the text that each belongs to, and whether each is used."""

    def tokens(first: int, end: int):
        return lambda rng, shape: np.array([[first <= token < end for token in range(TOKENS)]], np.int64)

    shape, int64 = (1, TOKENS), onnx.TensorProto.INT64
    ids = g.input("input_ids", shape, integers(VOCABULARY), int64)
    mask = g.input("attention_mask", shape, tokens(0, USED), int64)
    types = g.input("token_type_ids", shape, tokens(QUESTION, USED), int64)
    return ids, types, mask


def _embedded(g: Graph, ids: str, types: str) -> str:
    positions = g.initializer("position_ids", [range(TOKENS)], np.int64)
    words, types, positions = (
        g.node("Gather", name, g.weight(f"{name}.weight", (rows, HIDDEN), normal(0.05)), indices)
        for name, rows, indices in [
            ("word_embeddings", VOCABULARY, ids),
            ("token_type_embeddings", 2, types),
            ("position_embeddings", POSITIONS, positions),
        ]
    )
    x = g.add("embeddings.add_1", g.add("embeddings.add", words, types), positions)
    return _layer_norm(g, "embeddings.norm", x)


def _mask_bias(g: Graph, mask: str) -> str:
    """0 for used tokens and the lowest float for others, which is added to scores."""
    x = g.node("Unsqueeze", "mask.keys", mask, g.constant("mask.axis1", [1], np.int64))
    x = g.node("Unsqueeze", "mask.heads", x, g.constant("mask.axis2", [2], np.int64))
    x = g.node("Cast", "mask.float", x, to=onnx.TensorProto.FLOAT)
    x = g.node("Sub", "mask.unused", g.constant("mask.one", 1), x)
    return g.node("Mul", "mask.bias", x, g.constant("mask.lowest", np.finfo(np.float32).min))


def _layer(g: Graph, name: str, x: str, bias: str) -> str:
    """The residual branch is small, and queries and keys are large: with gains of 1, attention is nearly the mean over tokens, and a few
    layers make all tokens equal."""
    attention = _linear(g, f"{name}.attention.output", _attention(g, f"{name}.attention", x, bias), HIDDEN, HIDDEN, gain=0.2)
    x = _layer_norm(g, f"{name}.attention.norm", g.add(f"{name}.attention.add", attention, x))
    y = _gelu(g, f"{name}.gelu", _linear(g, f"{name}.intermediate", x, HIDDEN, INTERMEDIATE))
    y = _linear(g, f"{name}.output", y, INTERMEDIATE, HIDDEN, gain=0.5)
    return _layer_norm(g, f"{name}.norm", g.add(f"{name}.add", y, x))


def _attention(g: Graph, name: str, x: str, bias: str) -> str:
    query = _linear(g, f"{name}.query", x, HIDDEN, HIDDEN, gain=3)
    key = _heads(g, f"{name}.key", _linear(g, f"{name}.key", x, HIDDEN, HIDDEN, gain=3), [0, 2, 3, 1])
    value = _heads(g, f"{name}.value", _linear(g, f"{name}.value", x, HIDDEN, HIDDEN), [0, 2, 1, 3])
    query = _heads(g, f"{name}.query", query, [0, 2, 1, 3])
    scores = g.node("MatMul", f"{name}.products", query, key)
    scores = g.node("Div", f"{name}.scores", scores, g.constant(f"{name}.divisor", HEAD**0.5))
    shares = g.node("Softmax", f"{name}.softmax", g.add(f"{name}.masked", scores, bias), axis=-1)
    x = g.node("Transpose", f"{name}.tokens", g.node("MatMul", f"{name}.mixed", shares, value), perm=[0, 2, 1, 3])
    return g.node("Reshape", f"{name}.joined", x, g.constant(f"{name}.joined.shape", [1, TOKENS, HIDDEN], np.int64))


def _heads(g: Graph, name: str, x: str, order: list[int]) -> str:
    x = g.node("Reshape", f"{name}.reshape", x, g.constant(f"{name}.shape", [1, TOKENS, HEADS, HEAD], np.int64))
    return g.node("Transpose", f"{name}.transpose", x, perm=order)


def _linear(g: Graph, name: str, x: str, inputs: int, outputs: int, gain=1.0) -> str:
    product = g.node("MatMul", f"{name}.matmul", x, g.weight(f"{name}.weight", (inputs, outputs), normal((gain / inputs) ** 0.5)))
    return g.add(f"{name}.add", g.weight(f"{name}.bias", (outputs,), normal(0.02)), product)


def _layer_norm(g: Graph, name: str, x: str) -> str:
    centred = g.node("Sub", f"{name}.centred", x, g.node("ReduceMean", f"{name}.mean", x, axes=[-1]))
    squares = g.node("Pow", f"{name}.squares", centred, g.constant(f"{name}.two", 2))
    variance = g.node("ReduceMean", f"{name}.variance", squares, axes=[-1])
    deviation = g.node("Sqrt", f"{name}.deviation", g.add(f"{name}.sum", variance, g.constant(f"{name}.epsilon", 1e-12)))
    x = g.node("Div", f"{name}.normalised", centred, deviation)
    x = g.node("Mul", f"{name}.scaled", x, g.weight(f"{name}.weight", (HIDDEN,), uniform(0.5, 1.5)))
    return g.add(f"{name}.shifted", x, g.weight(f"{name}.bias", (HIDDEN,), normal(0.02)))


def _gelu(g: Graph, name: str, x: str) -> str:
    y = g.node("Erf", f"{name}.erf", g.node("Div", f"{name}.div", x, g.constant(f"{name}.root", 2**0.5)))
    y = g.node("Mul", f"{name}.mul", x, g.add(f"{name}.add", y, g.constant(f"{name}.one", 1)))
    return g.node("Mul", name, y, g.constant(f"{name}.half", 0.5))
