"""The runtimes that `bench` compares with, in their fastest settings: float32, all optimisations, outputs without copies if possible."""

import time

import numpy as np
import onnx


class OnnxRuntimePeer:
    name = "onnxruntime"

    def __init__(self, model: onnx.ModelProto, inputs: dict[str, np.ndarray], threads: int):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self._inputs, self._binding = inputs, self._session.io_binding()
        for name, array in inputs.items():
            self._binding.bind_cpu_input(name, array)
        for output in self._session.get_outputs():
            self._binding.bind_output(output.name)

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> list:
        # Copying bound outputs crashes if one is a sequence of maps.
        return self._session.run(None, self._inputs)


class OpenVinoPeer:
    name = "openvino"

    def __init__(self, model: onnx.ModelProto, inputs: dict[str, np.ndarray], threads: int):
        import openvino

        core = openvino.Core()
        network = core.read_model(model.SerializeToString())
        if network.is_dynamic():
            network.reshape({port: inputs[port.any_name].shape for port in network.inputs})
        # Without the hint it computes in bfloat16 on machines that support it.
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": "1"}
        self._request = core.compile_model(network, "CPU", settings).create_infer_request()
        for port in network.inputs:
            self._request.set_tensor(port, openvino.Tensor(inputs[port.any_name], shared_memory=True))
        self.run = self._request.infer

    def outputs(self) -> list[np.ndarray]:
        self.run()
        return [np.array(tensor.data) for tensor in self._request.output_tensors]


class PeerClock:
    """Times a peer's runs."""

    def __init__(self, peer: OnnxRuntimePeer | OpenVinoPeer):
        self._run = peer.run

    def __call__(self, count: int) -> list[float]:
        """Seconds of each of `count` runs."""
        times = []
        for _ in range(count):
            began = time.perf_counter()
            self._run()
            times.append(time.perf_counter() - began)
        return times


PEERS = {peer.name: peer for peer in (OnnxRuntimePeer, OpenVinoPeer)}
