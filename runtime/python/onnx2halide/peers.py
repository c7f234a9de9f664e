"""The runtimes that `bench` compares with, in their fastest settings: float32, all optimisations, outputs without copies if possible."""

import multiprocessing
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np


class OnnxRuntimePeer:
    name = "onnxruntime"

    def __init__(self, model: bytes, inputs: dict[str, np.ndarray], threads: int):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs, self._binding = inputs, self._session.io_binding()
        for name, array in inputs.items():
            self._binding.bind_cpu_input(name, array)
        for output in self._session.get_outputs():
            self._binding.bind_output(output.name)
        try:
            self.run()
        except Exception:  # noqa: BLE001 - a bound output must have the rank that the model declares
            self.run = lambda: self._session.run(None, self._inputs)

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> list:
        # Copying bound outputs crashes if one is a sequence of maps.
        return self._session.run(None, self._inputs)


class OpenVinoPeer:
    name = "openvino"

    def __init__(self, model: bytes, inputs: dict[str, np.ndarray], threads: int):
        import openvino

        core = openvino.Core()
        network = core.read_model(model)
        if network.is_dynamic():
            network.reshape({port: inputs[port.any_name].shape for port in network.inputs})
        # Without the hint it computes in bfloat16 on machines that support it. If weights are integers of a few bits, it
        # would round their operands to 8 bits, in groups.
        precision = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", **precision}
        self._request = core.compile_model(network, "CPU", settings).create_infer_request()
        self._inputs = inputs  # whose memory the tensors share
        for port in network.inputs:
            self._request.set_tensor(port, openvino.Tensor(inputs[port.any_name], shared_memory=True))
        self.run = self._request.infer

    def outputs(self) -> list[np.ndarray]:
        self.run()
        return [np.array(tensor.data) for tensor in self._request.output_tensors]


PEERS = {peer.name: peer for peer in (OnnxRuntimePeer, OpenVinoPeer)}


class PeerFault(RuntimeError):
    """A peer does not run the model; the message is the peer's first line."""


class PeerClock:
    """Times a peer's runs. The peer has a process of its own, so that one that crashes does not end the comparison."""

    def __init__(self, peer: type, model: bytes, inputs: dict[str, np.ndarray], threads: int):
        self._process = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts)
        try:
            self.outputs = self._call(_start, peer, model, inputs, threads)
        except PeerFault:
            self.close()
            raise

    def __call__(self, count: int) -> list[float]:
        """Seconds of each of `count` runs."""
        return self._call(_times, count)

    def close(self) -> None:
        self._process.shutdown()

    def _call(self, function, *arguments):
        try:
            return self._process.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise PeerFault("its process crashed") from None


# ---- In the peer's process ----

_peer = None


def _ignore_interrupts() -> None:
    """The terminal interrupts all processes of a command; the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _start(peer: type, model: bytes, inputs: dict[str, np.ndarray], threads: int) -> list:
    global _peer
    try:
        _peer = peer(model, inputs, threads)
        return _peer.outputs()
    except Exception as error:  # noqa: BLE001 - each runtime has exceptions of its own, which other processes may not know
        raise _fault(error) from None


def _times(count: int) -> list[float]:
    times = []
    try:
        for _ in range(count):
            began = time.perf_counter()
            _peer.run()
            times.append(time.perf_counter() - began)
    except Exception as error:  # noqa: BLE001 - as above
        raise _fault(error) from None
    return times


def _fault(error: Exception) -> PeerFault:
    lines = str(error).strip().splitlines()
    return PeerFault(lines[0] if lines else type(error).__name__)
