"""`--tuning FILE`: parameters of schedules, keyed by what a kernel computes."""

import json
import re

import make_models
import numpy as np
import onnx2halide as package
import pytest
from link_programs import link, numbers, run
from make_models import FLOAT, model, node

AVX2, SSE41 = "x86-64-linux-avx2-fma-f16c", "x86-64-linux-sse41"
DIRECT = ("--convolution", "direct")  # with parameters for its tiles


@pytest.fixture
def kernels(onnx2halide, tmp_path):
    """The kernels of a model by their classes' names, with their keys and parameters."""

    def find(model, *words) -> dict[str, dict]:
        trials = tmp_path / "trials"
        trials.mkdir(exist_ok=True)
        done = onnx2halide(model, "-o", tmp_path / "unused", "--trials", trials, *words)
        assert (done.returncode, done.stderr) == (0, "")
        return {kernel["name"]: kernel for kernel in json.loads((trials / "trials.json").read_text())["kernels"]}

    return find


@pytest.fixture
def image(tmp_path):
    (tmp_path / "image.onnx").write_bytes(make_models.image().SerializeToString())
    return "image.onnx"


def write(path, params_of: dict[str, dict]) -> None:
    path.write_text(json.dumps({"format": 1, "kernels": {key: {"params": params} for key, params in params_of.items()}}))


def own(kernel: dict) -> dict[str, int]:
    """The parameters that the schedule has on its own."""
    return {param["role"]: param["own"] for param in kernel["params"]}


def defaults(folder, kernel: str) -> dict[str, int]:
    """The defaults of the emitted class's parameters."""
    text = (folder / "image_generators.cpp").read_text()
    found = re.search(rf"\nclass {kernel} .*?\n}};\n", text, re.DOTALL)[0]
    return {name: int(value) for name, value in re.findall(r"GeneratorParam<int> \w+{\"(\w+)\", (\d+)}", found)}


def test_tiles_of_channels_are_held_to_those_that_are_walked_together(onnx2halide, kernels, tmp_path):
    """Depthwise channels come in two parts, and a tile of all vectors would read beyond the weights."""
    channels, vectors = 576, 72
    constants = {"w": np.ones((channels, 1, 3, 3), np.float32), "b": np.ones(channels, np.float32)}
    shape = [1, channels, 9, 9]
    proto = make_models.model(
        [make_models.node("Conv", "x w b", "y", group=channels, pads=[1] * 4)],
        [("x", make_models.FLOAT, shape)],
        [("y", make_models.FLOAT, shape)],
        constants,
    )
    (tmp_path / "depthwise.onnx").write_bytes(proto.SerializeToString())
    conv = next(kernel for kernel in kernels("depthwise.onnx").values() if "vectors" in own(kernel))
    write(tmp_path / "t.json", {conv["key"]: {"vectors": vectors}})
    done = onnx2halide("depthwise.onnx", "-o", "out", "--tuning", "t.json")
    assert (done.returncode, done.stderr) == (0, "")
    manifest = json.loads((tmp_path / "out" / "depthwise.json").read_text())
    assert next(kernel for kernel in manifest["kernels"] if kernel["name"] == conv["name"])["parameters"]["vectors"] == vectors


def test_tuned_values_are_the_emitted_defaults(onnx2halide, kernels, image, tmp_path):
    """The emitted parameters are those that run, and the results stay the same; kernels that are not in the file keep their own."""
    found = kernels(image)
    first, second, *_ = [kernel for kernel in found.values() if "vectors" in own(kernel)]
    before = own(first)["vectors"]
    write(tmp_path / "t.json", {first["key"]: {"vectors": before + 1}, "0123456789abcdef": {"odd": 1}})
    for folder, words in (("tuned", ["--tuning", "t.json"]), ("own", [])):
        assert onnx2halide(image, "-o", folder, *words).returncode == 0
    assert defaults(tmp_path / "tuned", first["name"]) == own(first) | {"vectors": before + 1}
    assert defaults(tmp_path / "tuned", second["name"]) == defaults(tmp_path / "own", second["name"])
    text = (tmp_path / "tuned" / "image_generators.cpp").read_text()
    assert f"\n// tuned: vectors {before + 1} instead of {before}\nclass {first['name']} " in text
    assert text.count("// tuned: ") == 1
    manifest = json.loads((tmp_path / "tuned" / "image.json").read_text())
    assert next(kernel for kernel in manifest["kernels"] if kernel["name"] == first["name"])["parameters"]["vectors"] == before + 1
    results = [numbers(run(link("print_features.c", [tmp_path / folder], tmp_path / "program"))) for folder in ("tuned", "own")]
    assert np.allclose(*results, rtol=1e-4, atol=1e-4)


def test_keys_do_not_depend_on_names(kernels, tmp_path):
    def layer(*names):
        a, b, c = names
        weights = {"W": np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32)}
        return model([node("MatMul", f"{a} W", b), node("Relu", b, c)], [(a, FLOAT, [8, 32])], [(c, FLOAT, [8, 32])], weights)

    # A parameter gives way where a value is called like it, and goes by its role in the file.
    for file, names in (("one.onnx", "xyz"), ("two.onnx", ("in", "rows", "vectors"))):
        (tmp_path / file).write_bytes(layer(*names).SerializeToString())
    one, two = ([(kernel["key"], [param["role"] for param in kernel["params"]]) for kernel in kernels(file).values()] for file in ("one.onnx", "two.onnx"))
    assert one == two


def test_entries_are_for_one_target(onnx2halide, kernels, image, tmp_path):
    kernel = next(kernel for kernel in kernels(image, "--target", AVX2, *DIRECT).values() if "pixels" in own(kernel))
    write(tmp_path / "t.json", {kernel["key"]: {"pixels": 99}})
    assert onnx2halide(image, "-o", "out", "--target", f"{AVX2},{SSE41}", "--tuning", "t.json", *DIRECT).returncode == 0
    assert defaults(tmp_path / "out", f"{kernel['name']}_avx2")["pixels"] == 99
    assert defaults(tmp_path / "out", f"{kernel['name']}_sse41")["pixels"] != 99


BAD_FILES = [
    ('{"format":\n', "t.json:2: is not JSON, expected a file that onnx2halide tune wrote"),
    ("[]", "t.json: has no 'format' and 'kernels', expected a file that onnx2halide tune wrote"),
    ('{"format": 1, "kernels": []}', "t.json: has no 'format' and 'kernels', expected a file that onnx2halide tune wrote"),
    ('{"format": 2, "kernels": {}}', "t.json: has format 2, expected 1"),
    ('{"format": 1, "kernels": {"KEY": {}}}', "t.json: kernel 'KERNEL' (KEY) has no object 'params'"),
    ('{"format": 1, "kernels": {"KEY": 1}}', "t.json: kernel 'KERNEL' (KEY) has no object 'params'"),
    ('{"format": 1, "kernels": {"KEY": {"params": {"odd": 1}}}}', "t.json: kernel 'KERNEL' (KEY) has no parameter 'odd', expected one of PARAMS"),
    ('{"format": 1, "kernels": {"KEY": {"params": {"odd": 0}}}}', "t.json: kernel 'KERNEL' (KEY): parameter 'odd' is 0, expected a whole number from 1"),
    ('{"format": 1, "kernels": {"KEY": {"params": {"odd": "x"}}}}', "t.json: kernel 'KERNEL' (KEY): parameter 'odd' is \"x\", expected a whole number from 1"),
    ('{"format": 1, "kernels": {"KEY": {"params": {"odd": 1e9}}}}', "t.json: kernel 'KERNEL' (KEY): parameter 'odd' is 1000000000.0, expected a whole number from 1"),
]  # fmt: skip


def test_bad_files(onnx2halide, kernels, image, tmp_path):
    name, kernel = next((name, kernel) for name, kernel in kernels(image).items() if kernel["params"])
    words = {"KEY": kernel["key"], "KERNEL": name, "PARAMS": ", ".join(own(kernel))}
    for text, message in BAD_FILES:
        (tmp_path / "t.json").write_text(text.replace("KEY", kernel["key"]))
        done = onnx2halide(image, "--tuning", "t.json", "-o", "out")
        for word, meant in words.items():
            message = message.replace(word, meant)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"image.onnx: {message}\n")
        assert not (tmp_path / "out").exists()


def test_missing_file(onnx2halide, image):
    done = onnx2halide(image, "--tuning", "t.json", "-o", "out")
    assert (done.returncode, done.stderr) == (1, "t.json cannot be read: No such file or directory\n")


@pytest.mark.parametrize("words", [["--schedule", "naive"], ["--schedule", "auto:mullapudi2016"], ["--pipeline", "whole"]])
def test_only_own_schedules_are_tuned(onnx2halide, image, tmp_path, words):
    (tmp_path / "t.json").write_text("{}")
    done = onnx2halide(image, "--tuning", "t.json", *words, "-o", "out")
    message = "--tuning: is for the compiler's own schedules, expected neither --schedule naive or auto:NAME nor --pipeline whole"
    assert (done.returncode, done.stderr) == (2, f"{message}\nRun with --help for more information.\n")


def test_python_sees_that_the_file_changed(image, tmp_path):
    tuning = tmp_path / "t.json"
    write(tuning, {})
    package.compile(tmp_path / image, tuning=str(tuning), cache=tmp_path / "cache")
    tuning.write_text("[]")
    with pytest.raises(package.CompileError, match="t.json: has no 'format' and 'kernels'"):
        package.compile(tmp_path / image, tuning=str(tuning), cache=tmp_path / "cache")
