"""ONNX's backend interface (onnx.backend.base)."""

import ctypes

import onnx
import onnx.backend.base
from onnx import helper

import onnx2halide


class BackendRep(onnx.backend.base.BackendRep):
    """A compiled model."""

    def __init__(self, model: onnx2halide.Model):
        self.model = model

    def run(self, inputs, **kwargs):
        """Returns the outputs as a tuple. `inputs` is a list or a dict of arrays, or a single array."""
        if hasattr(inputs, "dtype"):
            inputs = [inputs]
        return tuple(self.model.run(inputs))


class Backend(onnx.backend.base.Backend):
    """Compiles for the processor or, with device "CUDA", for a GPU. Further arguments of prepare, run_model and run_node are passed to
    onnx2halide.compile."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        if not cls.supports_device(device):
            raise ValueError(f"device {device} is not supported")
        kwargs.setdefault("target", "host-cuda" if _is_cuda(device) else "host")
        return BackendRep(onnx2halide.compile(model, **kwargs))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, opset_version=None, **kwargs):
        present = [name for name in node.input if name]
        types = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in inputs]
        values = [helper.make_tensor_value_info(*value) for value in zip(present, types, (array.shape for array in inputs))]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type, values, outputs)
        opset = helper.make_opsetid(node.domain, opset_version or onnx.defs.onnx_opset_version())
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[opset]))
        return cls.run_model(model, list(inputs), device, **kwargs)

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU" or (_is_cuda(device) and _has_cuda_device())


def _is_cuda(device: str) -> bool:
    return device.split(":")[0] == "CUDA"


def _has_cuda_device() -> bool:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
