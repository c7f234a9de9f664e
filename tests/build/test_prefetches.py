"""The prefetches of weights in kernels: a tile of channels asks for the next one's cache lines, a part in each tile of
pixels or rows."""

import itertools
import re
from collections import Counter

import make_models
import numpy as np
import pytest
from onnx import numpy_helper

LINE = 16  # float32


def convolution(inputs, outputs, size, kernel):
    return make_models.model(
        [make_models.node("Conv", "x w", "y", pads=[kernel // 2] * 4)],
        [("x", make_models.FLOAT, [1, inputs, size, size])],
        [("y", make_models.FLOAT, [1, outputs, size, size])],
        {"w": np.ones((outputs, inputs, kernel, kernel), np.float32)},
    )


def product(rows, depth, columns):
    return make_models.model(
        [make_models.node("MatMul", "x w", "y")],
        [("x", make_models.FLOAT, [rows, depth])],
        [("y", make_models.FLOAT, [rows, columns])],
        {"w": np.ones((depth, columns), np.float32)},
    )


def prefetched_lines(stmt):
    """How often each line of the weights, by number, is prefetched in a kernel's statements."""
    loops = {
        name: range(int(first), int(first) + int(extent))
        for name, first, extent in re.findall(r"for \(([\w.$]+), (\d+), (\d+)\)", stmt)
    }
    task = re.search(r"__user_context, ([\w.$]+), closure_arg", stmt)
    extent = re.search(r"halide_do_par_for\(.*, 0, (\d+), ", stmt)
    loops[task[1]] = range(int(extent[1]))
    lines = Counter()
    for index in re.findall(r"llvm\.prefetch\.p0\(.*uint64\(int64\((.*)\)\*\(int64\)4\)\), 0, 3, 1\)", stmt):
        used = [name for name in loops if name in index]
        expression = index.replace("/", "//")
        for number, name in enumerate(used):
            expression = expression.replace(name, f"v{number}")
        code = compile(expression, "index", "eval")
        # Loops that the address does not depend on repeat it.
        repetitions = np.prod([len(loops[name]) for name in loops if name not in used and is_around(stmt, name)])
        for values in itertools.product(*(loops[name] for name in used)):
            scope = {f"v{number}": value for number, value in enumerate(values)}
            lines[eval(code, {"min": min, "select": lambda condition, a, b: a if condition else b}, scope) // LINE] += int(repetitions)
    return lines


def is_around(stmt, loop):
    """Whether a loop is around the prefetches, rather than before or after them."""
    begin = stmt.find(f"for ({loop},")
    return begin < 0 or "llvm.prefetch" in stmt[begin : stmt.find("\n" + indent(stmt, begin) + "}", begin)]


def indent(stmt, position):
    line = stmt[stmt.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


AVX512, AVX2 = "avx512_skylake-avx2-fma-f16c-sse41", "avx2-fma-f16c-sse41"


# If there are more tiles than are needed, some repeat the others' requests; AVX2's are small, as are those of 7 pixels.
@pytest.mark.parametrize(
    "model, target, repetitions",
    [
        pytest.param(convolution(512, 512, 14, 1), AVX512, 4, id="14x14"),
        pytest.param(convolution(256, 256, 14, 1), AVX512, 2 * 2, id="two strips, each with all weights"),
        pytest.param(convolution(256, 512, 7, 1), AVX512, 2, id="7x7"),
        pytest.param(convolution(64, 128, 4, 3), AVX512, 2, id="3x3"),
        pytest.param(product(126, 256, 1024), AVX512, 2, id="126 rows"),
        pytest.param(product(50, 512, 1024), AVX512, 2, id="50 rows"),
        pytest.param(convolution(256, 512, 7, 1), AVX2, 3, id="7x7, AVX2"),
        pytest.param(product(50, 512, 1024), AVX2, 3, id="50 rows, AVX2"),
    ],
)
def test_lines_of_the_next_weights(onnx2halide, tmp_path, model, target, repetitions):
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    options = ("--target", f"x86-64-linux-{target}", "--convolution", "direct")
    assert onnx2halide("m.onnx", "-o", "out", *options, "--emit", "stmt").returncode == 0
    (stmt,) = (path for path in (tmp_path / "out").glob("*.stmt") if "llvm.prefetch" in path.read_text())
    lines = prefetched_lines(stmt.read_text())
    weights = numpy_helper.to_array(model.graph.initializer[0])
    # The first lines prefetched are those after the first tile.
    emitted = (tmp_path / "out" / "m_generators.cpp").read_text()
    vectors = int(re.search(r'"vectors", (\d+)', emitted)[1])
    columns = weights.shape[0] if weights.ndim == 4 else weights.shape[1]
    first = -(-vectors * (16 if target == AVX512 else 8) // LINE) * weights.size // columns
    assert min(lines) == first
    assert sorted(lines) == list(range(first, first + weights.size // LINE))
    assert sum(lines.values()) < repetitions * len(lines)


def test_shares_of_an_open_number_of_tiles(onnx2halide, tmp_path):
    """They are chosen at run time: two tiles or more ask for all lines, one for half of them, and none for more than that."""
    (tmp_path / "m.onnx").write_bytes(product("rows", 256, 256).SerializeToString())
    options = ("--target", f"x86-64-linux-{AVX2}", "--emit", "stmt")
    assert onnx2halide("m.onnx", "-o", "out", *options).returncode == 0
    (stmt,) = (path.read_text() for path in (tmp_path / "out").glob("*.stmt"))
    call = re.search(r"halide_do_par_for\(.*, 0, \d+, ", stmt)[0]
    versions = [version for version in re.split(r"^internal func ", stmt, flags=re.MULTILINE)[1:] if "llvm.prefetch" in version]
    assert len(versions) == 4  # for six to three rows; fewer are bound by memory
    panels = 256 * 256 // LINE
    for version in versions:
        tiles = re.search(r"for \([\w.$]+, 0, (t\d+)\)", version)[1]
        for count in (1, 2, 3, 4, 11):
            lines = prefetched_lines(re.sub(rf"\b{tiles}\b", str(count), version) + call)
            assert len(lines) == (panels // 2 if count == 1 else panels)
            assert sum(lines.values()) == count * panels // 2


@pytest.mark.parametrize("columns", [96, 1000])
def test_open_rows(onnx2halide, tmp_path, columns):
    """Of versions of tiles, those for few rows are wider."""
    (tmp_path / "m.onnx").write_bytes(product("rows", 512, columns).SerializeToString())
    options = ("--target", f"x86-64-linux-{AVX512}", "--emit", "stmt")
    assert onnx2halide("m.onnx", "-o", "out", *options).returncode == 0
    (stmt,) = (tmp_path / "out").glob("*.stmt")
    assert ("llvm.prefetch" in stmt.read_text()) == (columns == 1000)
