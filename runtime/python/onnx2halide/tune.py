"""onnx2halide tune: tries other schedule parameters of a model's kernels, and keeps faster ones in a file that compile reads."""

import argparse
import itertools
import json
import os
import pathlib
import time
from dataclasses import asdict, dataclass

from onnx2halide import arguments
from onnx2halide.compiler import CompileError, Options
from onnx2halide.trials import Kernel, Params, Trials, Variant

FORMAT = 1
# The gain that parameters need to be kept, and how often it must be confirmed: a smaller one may be chance.
LEAST_GAIN = 0.02
CONFIRMATIONS = 3
# Kernels that take less than this share of the run are not tuned.
LEAST_SHARE = 0.005


@dataclass
class Tuned:
    """The result for a kernel whose parameters have changed."""

    kernel: str
    nodes: list[str]
    default_seconds: float  # within the run
    seconds: float
    defaults: Params
    params: Params  # those that differ from the defaults


@dataclass
class Report:
    file: str
    kernels: int  # number of kernels that have parameters and take enough of the run
    tried: int  # number of these that were tried
    variants: int  # number of variants that were timed
    default_seconds: float | None  # of a run; None if nothing changed
    seconds: float | None
    changed: list[Tuned]


class TuningFile:
    """The file that compile --tuning reads. It is rewritten atomically after each change, so that an interrupted search keeps what it has."""

    def __init__(self, path: pathlib.Path):
        """Raises CompileError if the folder is not writable."""
        self.path = path
        self._entries = {}
        if not os.access(path.absolute().parent, os.W_OK):
            raise CompileError(f"{path}: cannot be written: its folder is missing or read-only")

    def read(self) -> None:
        """Reads the existing entries, which the compiler has already checked."""
        if self.path.exists():
            self._entries = json.loads(self.path.read_text())["kernels"]

    def keep(self, key: str, entry: dict) -> None:
        self._entries[key] = entry
        self._write()

    def drop(self, key: str) -> None:
        if self._entries.pop(key, None) is not None:
            self._write()

    def _write(self) -> None:
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            part.write_text(json.dumps({"format": FORMAT, "kernels": self._entries}, indent=2, sort_keys=True) + "\n")
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)  # if a signal came in between


class Tuner:
    """Hill-climbs to better parameters, kernel by kernel, until no neighbour is better or the time is over."""

    def __init__(self, trials: Trials, file: TuningFile, model: str, threads: int, budget: float):
        self._trials, self._file, self._model, self._threads = trials, file, model, threads
        self._until = time.monotonic() + budget
        self._own: list[tuple[Kernel, Variant]] = []  # of the kernels that were tried: the variants that the schedules chose
        self._best: list[tuple[Kernel, Variant]] = []  # of the same kernels: the fastest
        self._timed = 0

    def run(self) -> Report:
        seconds = self._trials.kernel_seconds()
        least = LEAST_SHARE * sum(seconds.values())
        kernels = [kernel for kernel in self._trials.kernels if kernel.own and seconds[kernel.name] >= least]
        kernels.sort(key=lambda kernel: -seconds[kernel.name])
        changed = []
        for number, kernel in enumerate(kernels, 1):
            if not self._has_time():
                break
            arguments.progress(f"tuning {kernel.name} ({number} of {len(kernels)}), {self._until - time.monotonic():.0f} s left")
            if found := self._tune(kernel):
                changed.append(found)
        arguments.progress("timing the run")
        before, after = self._trials.run_seconds([self._own, self._best]) if changed else (None, None)
        return Report(str(self._file.path), len(kernels), len(self._best), self._timed, before, after, changed)

    def _has_time(self) -> bool:
        return time.monotonic() < self._until

    def _tune(self, kernel: Kernel) -> Tuned | None:
        """Tunes a kernel. Returns the result if its entry in the file has changed."""
        best = own = self._trials.compiled(kernel)
        candidates = []
        if kernel.value != kernel.own:
            candidates = self._trials.variants(kernel, [kernel.own], self._until)
            if not candidates:
                return None
            own = candidates[0]
        tried, changed = [kernel.value, kernel.own], None
        self._own.append((kernel, own))
        self._best.append((kernel, best))
        while self._has_time():
            choices = [params for params in neighbours(best.params) if params not in tried]
            tried += choices
            candidates += self._trials.variants(kernel, choices, self._until)
            if not self._has_time():
                break
            better = self._fastest(kernel, best, [variant for variant in candidates if self._is_right(kernel, variant, own)])
            times = self._confirm(kernel, best, better, own) if better else None
            if times is None:
                break
            best, candidates = better, []
            self._best[-1] = kernel, best
            changed = self._note(kernel, best, *times)
        self._trials.use(kernel, best)
        return changed

    def _is_right(self, kernel: Kernel, variant: Variant, own: Variant) -> bool:
        return variant is own or self._trials.fault(kernel, variant, own) is None

    def _fastest(self, kernel: Kernel, best: Variant, candidates: list[Variant]) -> Variant | None:
        """The fastest of the candidates, if its gain over `best` is large enough."""
        self._timed += len(candidates)
        if not candidates:
            return None
        least, *others = self._trials.seconds(kernel, [best, *candidates])
        return candidates[others.index(min(others))] if wins(min(others), least) else None

    def _confirm(self, kernel: Kernel, best: Variant, better: Variant, own: Variant) -> tuple[float, float] | None:
        """Times `better` against `best` again. Returns the seconds of the schedule's own variant and of `better`, if it wins each time."""
        found = []
        for _ in range(CONFIRMATIONS):
            found.append(self._trials.seconds(kernel, [best, better, own]))
            if not wins(found[-1][1], found[-1][0]):
                return None
        return min(times[2] for times in found), min(times[1] for times in found)

    def _note(self, kernel: Kernel, best: Variant, default_seconds: float, seconds: float) -> Tuned:
        default_seconds, seconds = (float(f"{number:.4g}") for number in (default_seconds, seconds))
        params = {role: value for role, value in best.params.items() if value != kernel.own[role]}
        tuned = Tuned(kernel.name, kernel.nodes, default_seconds, seconds, {role: kernel.own[role] for role in params}, params)
        if params:
            self._file.keep(kernel.key, asdict(tuned) | {"model": self._model, "target": self._trials.target, "threads": self._threads})
        else:
            self._file.drop(kernel.key)
        return tuned


def wins(seconds: float, others: float) -> bool:
    return seconds <= (1 - LEAST_GAIN) * others


def neighbours(params: Params) -> list[Params]:
    """Each parameter halved, doubled, slightly decreased and slightly increased; and each pair with one halved and the other doubled, for
    tiles of the same size."""
    alone = [params | {role: value} for role, old in params.items() for value in _neighbours(old)]
    pairs = itertools.permutations(params, 2)
    return alone + [params | {a: params[a] // 2, b: 2 * params[b]} for a, b in pairs if params[a] > 1]


def _neighbours(value: int) -> list[int]:
    step = max(1, value // 4) if value > 16 else 1
    return sorted({value // 2, value - step, value + step, 2 * value} - {0, value})


# ---- Output ----


def text(report: Report) -> str:
    if not report.changed:
        return f"{_tried(report)}: none is faster by {LEAST_GAIN:.0%}, nothing is written"
    rows = [("kernel", "default us", "tuned us", "gain", "parameters (default)")]
    rows += [_row(tuned.kernel, tuned.default_seconds, tuned.seconds, _params_text(tuned)) for tuned in report.changed]
    rows.append(_row("whole run", report.default_seconds, report.seconds, f"{len(report.changed)} of {report.kernels} kernels changed"))
    width = max(len(row[0]) for row in rows)
    lines = [f"{name:<{width}} {default:>11} {tuned:>11} {gain:>6}  {params}" for name, default, tuned, gain, params in rows]
    return "\n".join([*lines, f"{_tried(report)}; use them with --tuning {report.file}"])


def _row(name: str, default: float, tuned: float, params: str) -> tuple[str, ...]:
    return name, f"{default * 1e6:.1f}", f"{tuned * 1e6:.1f}", f"{1 - tuned / default:.0%}", params


def _params_text(tuned: Tuned) -> str:
    return ", ".join(f"{role} {value} ({tuned.defaults[role]})" for role, value in tuned.params.items()) or "the defaults again"


def _tried(report: Report) -> str:
    return f"{report.variants} variants of {report.tried} of {report.kernels} kernels were tried"


def main() -> int:
    options = _parse()
    file = TuningFile(options.tuning or pathlib.Path(f"{options.model.stem}.tuning.json"))
    known = str(file.path) if file.path.exists() else None
    compile_options = Options(tuple(sorted(dict(options.dim).items())), options.target, convolution=options.convolution, tuning=known)
    arguments.progress(f"compiling {options.model.name}")
    with Trials(options.model, compile_options, options.threads) as trials:
        file.read()
        report = Tuner(trials, file, options.model.name, options.threads or os.cpu_count(), options.budget).run()
    arguments.progress("")
    print(arguments.json_text(asdict(report)) if options.json else text(report))
    return arguments.DONE


EXAMPLES = """tune model.onnx
tune model.onnx --budget 300 --threads 2 --tuning here.json
compile model.onnx --tuning here.json -o out"""


def _parse() -> argparse.Namespace:
    parser = arguments.parser("tune", (
        "Searches for faster parameters of the kernels' schedules, starting with the kernel that takes most of a run: halves and doubles each "
        "parameter, and continues from variants that are faster. Only generators run again; no C++ is compiled. A variant is written to the tuning "
        f"file as soon as it has computed the same as the default and has been {LEAST_GAIN:.0%} faster in {1 + CONFIRMATIONS} comparisons, so an interrupted command "
        "keeps what it has. An existing file is extended. Nothing else should run meanwhile."), EXAMPLES, chooses_schedule=False)  # fmt: skip
    parser.add_argument("--tuning", metavar="FILE", type=pathlib.Path, help="file to write; default: MODEL.tuning.json in the working folder")
    parser.add_argument("--budget", metavar="SECONDS", type=arguments.seconds, default=60, help="how long to search, once the model is compiled; default: 60")
    parser.add_argument("--json", action="store_true", help="print JSON; times are in seconds")
    return parser.parse_args()
