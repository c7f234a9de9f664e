import pathlib
import subprocess

import make_models
import pytest
from paths import COMPILER

MODELS = {"layer": make_models.layer, "open_batch": lambda: make_models.layer("batch"), "image": make_models.image, "open_image": lambda: make_models.image("batch"), "copied_channels": make_models.copied_channels, "copied_strips": make_models.copied_strips, "packed": make_models.packed, "boxes": make_models.boxes, "maps": make_models.maps, "words": make_models.words, "changing": make_models.changing}


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a model once and returns its folder: compiled("layer"), compiled("image", "--target", "host-opencl", name="image_device")."""
    folders = {}

    def compile(model: str, *flags: str, name: str | None = None) -> pathlib.Path:
        key = (model, flags, name)
        if key not in folders:
            folder = tmp_path_factory.mktemp(name or model)
            file = folder / f"{name or model}.onnx"
            file.write_bytes(MODELS[model]().SerializeToString())
            subprocess.run([COMPILER, file, "-o", folder, *flags], check=True)
            folders[key] = folder
        return folders[key]

    return compile
