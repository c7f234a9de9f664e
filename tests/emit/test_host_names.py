"""Names in a model may equal those of C, of the runtime's headers and of the emitted program."""

import re
import shlex

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import helper
from onnx2halide.model import Model

NAMES = """input_0_dims output_0_dims input_0 shapes place bind steps description session open dims arena code status strings targets
    onnx2halide_session onnx2halide_run onnx2halide_tensor onnx2halide_lifetime onnx2halide_create onnx2halide_model
    halide_buffer_t halide_type_t halide_error halide_free halide_type_float halide_buffer_flag_host_dirty
    T VIEW STEP TENSOR TENSORS SCALAR EXTENTS ONNX2HALIDE_FAILED tensor_a small small_run small_inputs SMALL_H SMALL_INPUTS SMALL_T_RANK
    kernel k0_kernel NULL INT64_MAX size_t ptrdiff_t uint8_t float int main errno linux floor_div max_dim memcpy""".split()


@pytest.mark.parametrize("rows", [3, "halide_rows", "arena"])
def test_tensors(rows):
    """Each name is an input, a tensor in the arena and an output of some model."""
    for shift in range(3):
        inputs, between, outputs = (NAMES[(shift + i) % 3 :: 3] for i in range(3))
        count = min(map(len, (inputs, between, outputs)))
        triples = list(zip(inputs, between, outputs))[:count]
        nodes = []
        for source, middle, result in triples:
            nodes += [node("Softmax", source, middle), node("Softmax", middle, result, axis=0)]
        ports = ([(name, FLOAT, [rows, 4]) for name in column] for column in (inputs[:count], outputs[:count]))
        compiled = onnx2halide.compile(model(nodes, *ports))
        values = {name: np.full((3, 4), i, np.float32) for i, name in enumerate(inputs[:count])}
        for array in compiled.run_by_name(values).values():
            assert np.allclose(array, 1 / 3)


def test_text_stays_in_comments_and_literals(onnx2halide, tmp_path):
    """Names and paths with line breaks, ends of comments, backslashes and trigraphs do not become code."""
    hostile = ["n*/ x", "n\n#error x", "n??/", 'n"\\', "n/*", "n\\"]
    nodes, values = [], ["x\n#error x"]
    for i, name in enumerate(hostile):
        values.append(f"{name} {i} */\\")
        nodes.append(helper.make_node("Neg" if i % 2 else "Softmax", values[i : i + 1], values[i + 1 :], name=name))
    proto = model(nodes, [(values[0], FLOAT, [2, 4])], [(values[-1], FLOAT, [2, 4])])
    (tmp_path / "a *" / "b 'c'").mkdir(parents=True)
    path = tmp_path / "a *" / "b 'c'" / "odd\nname\\.onnx"
    path.write_bytes(proto.SerializeToString())
    done = onnx2halide(path, "-o", tmp_path / "out", "--emit", "shared_library")
    assert (done.returncode, done.stderr) == (0, "")
    assert np.isfinite(Model(tmp_path / "out" / "odd_name.so").run([np.zeros((2, 4), np.float32)])[0]).all()


@pytest.mark.parametrize("stem", ["features", "stdint", "time", "threads", "session", "box_operators", "tensor_x", "x_kernel"])
def test_models_called_as_headers_and_as_names_of_the_host_program(onnx2halide, tmp_path, stem):
    """A program that includes the model's header with -I can also include the system's headers."""
    (tmp_path / f"{stem}.onnx").write_bytes(model([node("Neg", "x", "y", name="x")], [("x", FLOAT, [4])], [("y", FLOAT, [4])]).SerializeToString())
    done = onnx2halide(f"{stem}.onnx", "-o", "out", "--emit", "shared_library")
    assert (done.returncode, done.stderr) == (0, "")
    values = np.arange(4, dtype=np.float32)
    assert np.array_equal(Model(tmp_path / "out" / f"model_{stem}.so").run([values])[0], -values)


def test_ports_that_differ_in_case(onnx2halide, tmp_path):
    """Their macros differ, too."""
    nodes = [node("Concat", "x X", "y", axis=0), node("Neg", "y", "Y")]
    ports = [("x", FLOAT, [4]), ("X", FLOAT, [5])], [("y", FLOAT, [9]), ("Y", FLOAT, [9])]
    (tmp_path / "net.onnx").write_bytes(model(nodes, *ports).SerializeToString())
    assert onnx2halide("net.onnx", "-o", "out").returncode == 0
    header = (tmp_path / "out" / "net.h").read_text()
    macros = re.findall(r"#define (\w+_ELEMENTS) (\d+)", header)
    assert macros == [("NET_X_ELEMENTS", "4"), ("NET_X_2_ELEMENTS", "5"), ("NET_Y_ELEMENTS", "9"), ("NET_Y_2_ELEMENTS", "9")]
    assert "net_run(net* session, const float* x, const float* X_2, float* y, float* Y_2);" in header


def test_the_command_can_be_repeated(onnx2halide, tmp_path):
    (tmp_path / "my model.onnx").write_bytes(model([node("Neg", "x", "y")], [("x", FLOAT, ["n? ", 4])], [("y", FLOAT, [None, 4])]).SerializeToString())
    words = ["compile", "my model.onnx", "--dim", "n? =3", "-o", "it's here", "--sources-only"]
    assert onnx2halide(*words).returncode == 0
    banner = (tmp_path / "it's here" / "my_model_generators.cpp").read_text().splitlines()[1]
    assert shlex.split(banner.removeprefix("// again with: ")) == ["onnx2halide", *words]
