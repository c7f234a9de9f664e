"""Other implementations of ONNX, with which results are compared."""

import pathlib

import numpy as np
import onnx

from onnx2halide.unsigned_weights import has_integer_products, with_unsigned_weights


class OnnxRuntime:
    """onnxruntime with exact integer products and without graph optimisations, so that every value of the graph can be an output."""

    name = "onnxruntime"

    def __init__(self, model: pathlib.Path | onnx.ModelProto, all_values: bool = False):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        if all_values:
            model = _with_all_values(model)
        if has_integer_products(_proto(model, weights=False)):
            model = with_unsigned_weights(_proto(model))
        source = str(model) if isinstance(model, pathlib.Path) else model.SerializeToString()
        self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, inputs)))


class OnnxReference:
    """The reference evaluator of the onnx package: slow, but it supports every operator."""

    name = "the ONNX reference"

    def __init__(self, model: pathlib.Path | onnx.ModelProto, all_values: bool = False):
        import onnx.reference

        self._evaluator = onnx.reference.ReferenceEvaluator(str(model) if isinstance(model, pathlib.Path) else model)
        self._all_values = all_values

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self._all_values:
            results = self._evaluator.run(None, inputs, intermediate=True)
            return {name: value for name, value in results.items() if isinstance(value, np.ndarray | np.generic)}
        return dict(zip(self._evaluator.output_names, self._evaluator.run(None, inputs)))


def reference(model: pathlib.Path | onnx.ModelProto, inputs: dict[str, np.ndarray], all_values: bool = False, engine: str | None = None):
    """Returns the name of the engine, and its outputs (or all values) by name. Without `engine` that is onnxruntime or, if it cannot run the
    model, the ONNX reference."""
    engines = {"onnxruntime": OnnxRuntime, "reference": OnnxReference}
    if engine:
        return engines[engine].name, engines[engine](model, all_values).run(inputs)
    try:
        return OnnxRuntime.name, OnnxRuntime(model, all_values).run(inputs)
    except Exception as error:
        try:
            return OnnxReference.name, OnnxReference(model, all_values).run(inputs)
        except Exception as second:
            raise RuntimeError(f"neither onnxruntime ({error}) nor the ONNX reference ({second}) runs the model") from second


def _proto(model: pathlib.Path | onnx.ModelProto, weights: bool = True) -> onnx.ModelProto:
    """Loads the model; without `weights`, external data is not loaded."""
    return onnx.load(model, load_external_data=weights) if isinstance(model, pathlib.Path) else model


def _with_all_values(model: pathlib.Path | onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model, with its external data, in which every value that a node computes is an output."""
    result = onnx.ModelProto()
    result.CopyFrom(_proto(model))
    outputs = {output.name for output in result.graph.output}
    for node in result.graph.node:
        result.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name and name not in outputs)
    return result
