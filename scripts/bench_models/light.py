"""The light_* models of the onnx package: the zoo's networks without their weights, here with random ones."""

import pathlib

import numpy as np
import onnx

from onnx2halide.random_weights import with_random_weights

FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


class LightModel:
    """One of these models, with the interface of a Graph."""

    def __init__(self, name: str):
        self.name = name

    @property
    def parameters(self) -> int:
        """The number of float weights, several of which may be made from a single number in the file."""
        return sum(int(np.prod(tensor.dims)) for tensor in self.model().graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT)

    def model(self, seed: int = 0) -> onnx.ModelProto:
        return with_random_weights(onnx.load(FOLDER / f"{self.name}.onnx"), seed)

    def inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Normal noise: the networks expect pixels of mean 0."""
        graph = onnx.load(FOLDER / f"{self.name}.onnx").graph
        weights = {tensor.name for tensor in graph.initializer}
        rng = np.random.default_rng(seed)
        ports = {value.name: value.type.tensor_type.shape.dim for value in graph.input if value.name not in weights}
        return {name: rng.standard_normal([dim.dim_value for dim in dims], np.float32) for name, dims in ports.items()}


def light_names() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.onnx"))
