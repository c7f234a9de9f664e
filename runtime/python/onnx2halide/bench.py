"""onnx2halide bench: times a compiled model and its peers, onnxruntime and OpenVINO, in turns; and its kernels against the machine's limits."""

import argparse
import math
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace

import onnx
from google.protobuf.message import DecodeError

from onnx2halide import arguments
from onnx2halide.clocks import RunClock, StepClock, machine
from onnx2halide.compiler import Options, compile_into
from onnx2halide.data import sized_inputs, usual_inputs
from onnx2halide.model import Model
from onnx2halide.peers import PEERS, PeerClock, PeerFault
from onnx2halide.random_weights import with_random_weights
from onnx2halide.values import Port
from onnx2halide.verify import Tolerance

OURS = "onnx2halide"
# The same model with other schedules, as contestants.
SCHEDULES = ("naive", "auto:mullapudi2016", "auto:adams2019", "auto:li2018")
# The same model, compiled for the sizes of the run only.
FIXED = "fixed"
# The length of a contestant's turn: enough for the caches to hold its data and not another's.
TURN_SECONDS = 0.05
# The pause between turns, after which the threads of the last runtime no longer spin.
PAUSE_SECONDS = 0.02
LEAST_TURNS = 5
# Consecutive executions of a kernel, of which the fastest counts.
WARM_REPETITIONS = 10


@dataclass
class Times:
    """Seconds of one run."""

    best: float
    median: float


@dataclass
class Kernel:
    """The time of one step of a run, on one or several threads, and the machine's limit for it. In a program with loops and branches: of all
    calls of one kernel; the work of each is that of the first step that calls it."""

    step: int
    kernel: str
    nodes: list[str]
    calls: int
    flops: float
    bytes: float  # read and written
    seconds: float  # within the run: the minimum of several
    warm: float  # executed repeatedly, with its data in the cache
    least: float  # the machine's limit
    bound: str  # what limits the machine: FMA, or the level of memory that holds the bytes

    @property
    def share(self) -> float:
        """The share of the machine's limit that the warm kernel reaches."""
        return self.least / self.warm if self.warm > 0 else math.nan


@dataclass
class Row:
    """The results for one model and one number of threads."""

    model: str
    threads: int
    times: dict[str, Times] = field(default_factory=dict)  # by contestant
    faults: dict[str, str] = field(default_factory=dict)  # messages of contestants that do not run the model
    difference: dict[str, float] = field(default_factory=dict)  # relative difference from each peer's outputs
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The fastest peer's best time divided by ours: above 1, ours is faster. NaN without peers."""
        peers = [times.best for name, times in self.times.items() if name != OURS]
        return min(peers) / self.times[OURS].best if peers else math.nan


class Compiled:
    """A model's library and manifest, in a temporary folder."""

    def __init__(self, path: pathlib.Path, options: Options):
        self._folder = tempfile.TemporaryDirectory(prefix="onnx2halide-")
        folder = pathlib.Path(self._folder.name)
        self.manifest = compile_into(folder, path, options, ["--emit", "shared_library"])
        self.library = folder / f"{self.manifest['name']}.so"


def bench(path: pathlib.Path, options: Options, threads: list[int], peers: list[str], seconds: float, kernels: bool, random_weights: bool, sizes: Mapping[str, int]) -> list[Row]:
    """Returns a row for each number of threads. The message of a peer that cannot run the model is in the row's faults. `sizes` are sizes
    for the run of dims that stay open in the compiled model."""
    with tempfile.TemporaryDirectory(prefix="onnx2halide-") as folder:
        source = path
        if random_weights:
            source = pathlib.Path(folder) / path.name
            onnx.save(with_random_weights(_load(path)), source)
        compiled = Compiled(source, options)  # first, since the compiler has the best messages about faults of a model
        proto = _load(source)
        dims = dict(options.dims) | sizes
        sized = sized_inputs(source.read_bytes(), arguments.numbers(dict(options.dims)), sizes) if sizes else None
        others = {peer: Compiled(source, replace(options, schedule=peer)) for peer in peers if peer in SCHEDULES}
        if FIXED in peers:
            others[FIXED] = Compiled(source, replace(options, dims=tuple(sorted(dims.items()))))
    inputs = usual_inputs(path.parent, Model(compiled.library), sized)
    name = path.parent.name if path.stem == "model" else path.stem
    return [_row(name, compiled, proto, inputs, count, peers, others, seconds, kernels) for count in threads]


def _load(path: pathlib.Path) -> onnx.ModelProto:
    try:
        return onnx.load(path)
    except (DecodeError, onnx.checker.ValidationError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None


def _row(name: str, compiled: Compiled, proto: onnx.ModelProto, inputs, threads: int, peers: list[str], others: dict[str, Compiled], seconds: float, kernels: bool) -> Row:
    row = Row(name, threads)
    model = Model(compiled.library, threads)
    got = list(model.run(inputs))
    clocks: dict[str, Callable[[int], list[float]]] = {OURS: RunClock(model, inputs)}
    with ExitStack() as running:
        for peer in peers:
            try:
                if peer in others:
                    other = Model(others[peer].library, threads)
                    outputs, clocks[peer] = list(other.run(inputs)), RunClock(other, inputs)
                else:
                    clocks[peer] = running.enter_context(closing(PeerClock(PEERS[peer], proto.SerializeToString(), inputs, threads)))
                    outputs = clocks[peer].outputs
                results = zip(model.outputs, got, outputs)
                row.difference[peer] = max((Tolerance().compare(port.name, a, b, {}).difference.relative for port, a, b in results), default=0.0)
            except Exception as error:  # noqa: BLE001 - also of protobuf, for models of 2 GiB
                row.faults[peer] = str(error).strip() or type(error).__name__
        # Other programs may disturb one of the measurements of kernels for seconds.
        times = _KernelTimes(compiled, inputs, threads) if kernels else None
        if times:
            times.measure(seconds / 3)
        _interleave(clocks, seconds, row)
    if times:
        times.measure(seconds / 3)
        row.kernels = _kernels(compiled, inputs, threads, times)
    return row


def _interleave(clocks: dict[str, Callable[[int], list[float]]], seconds: float, row: Row) -> None:
    """Times the contestants in turns for about this many seconds. A peer that fails leaves."""
    runs: dict[str, int] = {}
    times: dict[str, list[float]] = {name: [] for name in clocks}

    def take_turn(name: str) -> None:
        clock = clocks[name]
        if name not in runs:
            runs[name] = max(1, round(TURN_SECONDS / max(min(clock(3)), 1e-7)))
        time.sleep(PAUSE_SECONDS)
        clock(1)
        times[name] += clock(runs[name])

    until, turns = time.monotonic() + seconds, 0
    while turns < LEAST_TURNS or time.monotonic() < until:
        for name in list(times):
            try:
                take_turn(name)
            except PeerFault as fault:
                row.faults[name] = str(fault)
                del times[name]
        turns += 1
    row.times = {name: Times(min(found), statistics.median(found)) for name, found in times.items()}


class _KernelTimes:
    """The least times of each kernel call of a run, from rounds of several seconds that may be far apart."""

    def __init__(self, compiled: Compiled, inputs, threads: int):
        self._clock = StepClock()
        self._model, self._inputs = Model(compiled.library, threads, trace=self._clock.trace), inputs
        self.seconds = self._times()
        self.kernels = self._clock.kernels
        try:
            self.warm = self._times(WARM_REPETITIONS)
            self._is_repeatable = True
        except RuntimeError:
            # A step that works in place changes its input each time, and later steps may read it as indices.
            self.warm, self._is_repeatable = self.seconds, False

    def measure(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            self.seconds = _least(self.seconds, self._times())
            # What takes longer warm than within a run was disturbed.
            self.warm = _least(self.warm, self.seconds)
            if self._is_repeatable:
                self.warm = _least(self.warm, self._times(WARM_REPETITIONS))
            if time.monotonic() >= until:
                return

    def _times(self, repetitions: int = 0) -> list[float]:
        return self._clock.run(self._model, self._inputs, repetitions)


def _least(times: list[float], others: list[float]) -> list[float]:
    return [min(pair) for pair in zip(times, others)]


def _kernels(compiled: Compiled, inputs, threads: int, times: _KernelTimes) -> list[Kernel]:
    steps = compiled.manifest["steps"]
    sizes = {dim["name"]: list(inputs.values())[dim["input"]].shape[dim["axis"]] for dim in compiled.manifest["open_dims"]}
    kernels = []
    for index, calls in _calls_of_steps([step["kernels"] for step in steps], times.kernels):
        step = steps[index]
        work = [_number(step[key], sizes) * len(calls) for key in ("flops", "bytes_read", "bytes_written")]
        least, bound = machine().least_seconds(*work, threads)
        taken, taken_warm = (sum(of_calls[call] for call in calls) for of_calls in (times.seconds, times.warm))
        kernels.append(Kernel(index, times.kernels[calls[0]], step["nodes"], len(calls), work[0], work[1] + work[2], taken, taken_warm, least, bound))  # fmt: skip
    return kernels


def _calls_of_steps(steps: list[list[str]], calls: list[str]) -> list[tuple[int, list[int]]]:
    """Assigns calls, given as kernels, to steps, given as the kernels that they choose from: returns indices of steps with those of their
    calls. If steps and calls are not one to one, all calls of a kernel belong to the first step that may call it."""
    if len(steps) == len(calls) and all(call in kernels for kernels, call in zip(steps, calls)):
        return [(index, [index]) for index in range(len(steps))]
    found: dict[str, list[int]] = {}
    for call, kernel in enumerate(calls):
        found.setdefault(kernel, []).append(call)
    return [(next(i for i, kernels in enumerate(steps) if kernel in kernels), numbers) for kernel, numbers in found.items()]


def _number(expression: int | str, sizes: dict[str, int]) -> int:
    """Evaluates a number of the manifest, which is a C expression if it depends on open dims. 0 if it depends on a value that is known only
    at run time."""
    functions = {"floor_div": int.__floordiv__, "floor_mod": int.__mod__, "min_dim": min, "max_dim": max}
    try:
        return expression if isinstance(expression, int) else eval(expression, {"__builtins__": {}}, functions | sizes)  # noqa: S307 - our own text
    except NameError:
        return 0


# ---- Output ----


def text(rows: list[Row], peers: list[str]) -> str:
    width = max(len(row.model) for row in rows)
    lines = [titles(width, peers), *(row_text(row, width, peers) for row in rows)]
    for row in rows:
        lines += ["", kernel_text(row)] if row.kernels else []
    return "\n".join(lines)


def titles(width: int, peers: list[str]) -> str:
    """The header of a table whose first column has this width."""
    names = "".join(f" {name:>22}" for name in [OURS, *peers])
    return f"{'model':<{width}} threads{names}   ratio\n" + " " * (width + 8) + f" {'best / median, ms':>22}" * (1 + len(peers))


def row_text(row: Row, width: int, peers: list[str]) -> str:
    cells = "".join(f" {_cell(row, name):>22}" for name in [OURS, *peers])
    faults = "".join(f"\n{row.model}: {peer}: {fault}" for peer, fault in row.faults.items())
    ratio = "-" if math.isnan(row.ratio) else f"{row.ratio:.2f}"
    return f"{row.model:<{width}} {row.threads:>7}{cells} {ratio:>7}{faults}"


def summary(rows: list[Row]) -> str:
    """The geometric mean of the ratios and the worst one, for each number of threads."""
    lines = []
    for count in sorted({row.threads for row in rows}):
        ratios = {row.model: row.ratio for row in rows if row.threads == count and not math.isnan(row.ratio)}
        if ratios:
            worst = min(ratios, key=ratios.get)
            mean = statistics.geometric_mean(ratios.values())
            lines.append(f"threads {count}: geometric mean of {len(ratios)} models {mean:.2f}, worst {ratios[worst]:.2f} ({worst})")
    return "\n".join(lines)


def _cell(row: Row, name: str) -> str:
    times = row.times.get(name)
    return f"{times.best * 1e3:.4g} / {times.median * 1e3:.4g}" if times else "-"


def kernel_text(row: Row) -> str:
    """A table of the kernels, slowest first."""
    whole = sum(kernel.seconds for kernel in row.kernels)
    lines = [f"{row.model}, threads {row.threads}: {sum(kernel.calls for kernel in row.kernels)} steps, {whole * 1e3:.4g} ms"]
    lines += [f"{'step':>4} {'calls':>5} {'us':>9} {'of run':>7} {'warm us':>9} {'GFLOP/s':>8} {'GB/s':>7} {'of limit':>8} {'bound':<6} kernel (nodes)"]
    for kernel in sorted(row.kernels, key=lambda kernel: -kernel.seconds):
        rates = f"{kernel.flops / kernel.warm * 1e-9:>8.1f} {kernel.bytes / kernel.warm * 1e-9:>7.1f} {kernel.share:>8.0%}"
        nodes = ", ".join(node.split(" ")[0] for node in kernel.nodes)
        lines.append(f"{kernel.step:>4} {kernel.calls:>5} {kernel.seconds * 1e6:>9.1f} {kernel.seconds / whole:>7.1%} {kernel.warm * 1e6:>9.1f} {rates} {kernel.bound:<6} {kernel.kernel} ({nodes})")  # fmt: skip
    return "\n".join(lines)


def as_json(rows: list[Row]) -> str:
    def row_json(row: Row) -> dict:
        return asdict(row) | {"ratio": row.ratio, "kernels": [asdict(kernel) | {"share": kernel.share} for kernel in row.kernels]}

    return arguments.json_text({"machine": asdict(machine()), "rows": [row_json(row) for row in rows]})


def main() -> int:
    options = _parse()
    compile_options = Options(tuple(sorted(dict(options.dim).items())), options.target, options.schedule, None, convolution=options.convolution, pipeline=options.pipeline, tuning=options.tuning)
    rows = bench(options.model, compile_options, options.threads, options.against, options.seconds, options.kernels, options.random_weights, dict(options.size))
    print(as_json(rows) if options.json else text(rows, options.against))
    return arguments.DONE


BENCH_EXAMPLES = """bench model.onnx
bench model.onnx --dim batch=1 --threads 1,2
bench model.onnx --against none --kernels
bench model.onnx --size height=320 --size width=320 --against fixed
bench model.onnx --against auto:mullapudi2016,auto:adams2019,auto:li2018"""


def _parse() -> argparse.Namespace:
    parser = arguments.parser("bench", (
        "Compiles a model and times it against onnxruntime and OpenVINO: in turns, in float32, with the same number of threads. Inputs are data "
        "that ships beside the model, or seeded. The ratio is the time of the faster peer divided by that of the compiled model: above 1, the "
        "compiled model is faster."), BENCH_EXAMPLES)  # fmt: skip
    parser.set_defaults(threads=[1])
    parser.add_argument("--threads", metavar="N,…", type=numbers, help="numbers of threads, one row for each; default: 1")
    parser.add_argument("--against", metavar="PEER,…", type=peer_names, default=list(PEERS), help=f"contestants: {', '.join(PEERS)} (default: both); the same model with schedule {', '.join(SCHEDULES)}; {FIXED}: the same model with its dims fixed at --size; or none")
    arguments.add_size(parser)
    parser.add_argument("--seconds", type=arguments.seconds, default=3, help="how long the contestants take turns for each row; default: 3")
    parser.add_argument("--kernels", action="store_true", help="also print the time of each kernel, and its share of this machine's limit")
    parser.add_argument("--random-weights", action="store_true", help="replace the weights by seeded random ones, for models that come without real ones")
    parser.add_argument("--json", action="store_true", help="print JSON; times are in seconds")
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    if not all(word.isdigit() for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}', expected numbers such as 1,2")
    return [int(word) for word in text.split(",")]


def peer_names(text: str) -> list[str]:
    names = [] if text == "none" else text.split(",")
    if unknown := [name for name in names if name not in (*PEERS, *SCHEDULES, FIXED)]:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}', expected some of {', '.join((*PEERS, *SCHEDULES, FIXED))}, or none")
    return names
