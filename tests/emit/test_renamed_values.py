"""Kernels give way to the model's names: whatever an input or a dim is called, a kernel has the same text but for names."""

import re

import pytest
from graphs import GRAPHS

# What classes declare: Vars, RVars, RDoms, Funcs, parameters, constants, and the parameters of lambdas.
DECLARED = [
    r"^    (?:Var|RVar|Func|RDom) (.*);$",
    r"^    GeneratorParam<\w+> (\w+)",
    r"^ *const (?:int|auto) (\w+) =",
    r"\[&\]\(\w+ (\w+)\)",
    r"^ *(?:Expr|const Expr) (\w+) =",
]
TOKENS = re.compile(r"\.?[A-Za-z_]\w*|\d[\w.]*|\S")  # members, as r.x, have names of their own


@pytest.fixture
def emitted(onnx2halide, tmp_path):
    """The texts of the kernels of models, without comments."""

    def emit(protos) -> list[list[str]]:
        files = [f"net_{i}.onnx" for i, _ in enumerate(protos)]
        for file, proto in zip(files, protos):
            (tmp_path / file).write_bytes(proto.SerializeToString())
        done = onnx2halide("compile", *files, "-o", "out", "--sources-only", "--overwrite", "--target", "x86-64-linux-avx2-fma-f16c")
        assert (done.returncode, done.stderr) == (0, "")
        texts = [(tmp_path / "out" / file.replace(".onnx", "_generators.cpp")).read_text() for file in files]
        return [re.sub(r"//.*", "", text).split("\nclass ")[1:] for text in texts]

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
    (before,) = emitted([GRAPHS[name]("model_x", 1)])
    names = sorted(declared(before))
    assert len(names) > 2
    after = emitted([GRAPHS[name](other, 1) for other in names])
    assert [other for other, kernels in zip(names, after) if not all_rename(before, kernels)] == []


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "open convolution"])  # terms of several dims are sorted by name
def test_dims_called_as_what_kernels_declare(emitted, name):
    (before,) = emitted([GRAPHS[name]("model_x", "model_n")])
    names = sorted(declared(before))
    assert len(names) > 2
    after = emitted([GRAPHS[name]("model_x", other) for other in names])
    assert [other for other, kernels in zip(names, after) if not all_rename(before, kernels)] == []
