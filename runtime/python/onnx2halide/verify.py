"""onnx2halide verify: compares a compiled model with shipped data, onnxruntime or the ONNX reference, and names the first node that
differs."""

import argparse
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from onnx2halide import arguments
from onnx2halide.compare import Difference, default_floor, default_tolerance, difference
from onnx2halide.compiler import UsageError
from onnx2halide.data import DataSet, data_sets, sample, sized_inputs, with_sizes
from onnx2halide.model import Model
from onnx2halide.references import reference


@dataclass
class Comparison:
    """The comparison of a value with the expected one; for a sequence, that of the item that differs most."""

    name: str
    difference: Difference
    equal: bool
    floor: float = 0.0  # the absolute difference that was allowed

    def text(self) -> str:
        vanishes = not self.difference.mismatch and self.difference.magnitude <= self.floor
        return f"{self.name}: {self.difference.text()}" + (f" (nowhere above {self.floor:.2g}, which says little)" if vanishes else "")


@dataclass
class Report:
    """The result of verify."""

    model: str
    against: dict[str, str] = field(default_factory=dict)  # by data set
    outputs: dict[str, list[Comparison]] = field(default_factory=dict)  # by data set
    values: int = 0  # number of values compared
    unread: list[str] = field(default_factory=list)  # values that no node reads, which are not compared
    first: tuple[str, str, Comparison] | None = None  # data set, node and value of the first difference

    @property
    def equal(self) -> bool:
        return self.first is None and all(comparison.equal for found in self.outputs.values() for comparison in found)


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference: `relative` to the largest magnitude of an array, plus `floor`. None: what rounding may cause."""

    relative: float | None = None
    floor: float | None = None

    def compare(self, name: str, got, expected, inputs: Mapping[str, np.ndarray]) -> Comparison:
        """Compares one result of a run on `inputs`."""
        if mismatch := _mismatch(got, expected):
            return Comparison(name, Difference(mismatch=mismatch), False)
        if expected is None:
            return Comparison(name, Difference(), True)
        if isinstance(expected, list):
            items = [self.compare(f"{name}[{i}]", *pair, inputs) for i, pair in enumerate(zip(got, expected))]
            return max(items, key=lambda item: (not item.equal, item.difference.relative), default=Comparison(name, Difference(), True))
        if isinstance(expected, dict):
            got, expected = (np.array([content[key] for key in expected]) for content in (got, expected))
        relative = default_tolerance(got.dtype) if self.relative is None else self.relative
        floor = default_floor(got.dtype, inputs.values()) if self.floor is None else self.floor
        found = difference(got, expected)
        return Comparison(name, found, not found.exceeds(relative, floor), floor)


def _mismatch(got, expected) -> str:
    """How an absent value, a sequence or a map differs from the expected one, apart from its items."""
    if (got is None) != (expected is None):
        return "nothing, expected a value" if got is None else "a value, expected nothing"
    if isinstance(expected, list) and len(got) != len(expected):
        return f"{len(got)} items, expected {len(expected)}"
    if isinstance(expected, dict) and got.keys() != expected.keys():
        return f"keys {list(got)}, expected {list(expected)}"
    return ""


def verify(path: pathlib.Path, model: Model, sets: list[DataSet], engine: str | None = None, tolerance: Tolerance = Tolerance()) -> Report:
    """Runs the model on each data set and compares the outputs with those of the set or, if it has none, of a reference. Then compares
    every value of the graph that is read with the reference, in the graph's order, until one differs."""
    graph = onnx.load(path, load_external_data=False).graph
    nodes = {name: _label(node) for node in graph.node for name in node.output if name}
    read = set(_read(graph))
    # A value that nothing reads, such as the mask of a Dropout, is not part of the compiled model.
    report = Report(path.name, unread=[name for name in nodes if name not in read])
    for data in sets:
        arguments.progress(f"{path.name}: running on {data.name}")
        expected, report.against[data.name] = data.outputs, "its data"
        if not expected:
            report.against[data.name], expected = reference(path, data.inputs, engine=engine)
        got = model.run_by_name(data.inputs)
        report.outputs[data.name] = [tolerance.compare(name, got[name], array, data.inputs) for name, array in expected.items() if name in got]
    for data in sets:
        arguments.progress(f"{path.name}: comparing every value on {data.name}")
        _, expected = reference(path, data.inputs, all_values=True, engine=engine)
        for name, array in model.run(data.inputs, all_outputs=True).items():
            if name not in expected or name in report.unread:
                continue
            comparison = tolerance.compare(name, array, expected[name], data.inputs)
            report.values += 1
            if not comparison.equal:
                report.first = (data.name, nodes.get(name, "a node of a function"), comparison)
                return report
    return report


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    """The values that nodes read, including those in subgraphs, and the graph's outputs."""
    yield from (output.name for output in graph.output)
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from _read(inner)


def _label(node: onnx.NodeProto) -> str:
    return f"node '{node.name or node.output[0]}' ({node.op_type})"


def text(report: Report) -> str:
    lines = []
    for name, comparisons in report.outputs.items():
        lines.append(f"{report.model}: {name} against {report.against[name]}")
        lines += [f"  {'equal' if found.equal else 'DIFFERS'}  {found.text()}" for found in comparisons]
    if report.first:
        name, node, found = report.first
        lines.append(f"{report.model}: {node} differs first, after {report.values - 1} equal values, on {name}:")
        lines.append(f"  {found.text()}")
    else:
        lines.append(f"{report.model}: all {report.values} values of the graph are equal")
    if report.unread:
        lines.append(f"{report.model}: not compared, because nothing reads them: {', '.join(report.unread)}")
    return "\n".join(lines)


def as_json(report: Report) -> str:
    def comparison(found: Comparison) -> dict:
        values = {"name": found.name, "equal": found.equal, "max_abs": found.difference.max_abs, "relative": found.difference.relative}
        return values | ({"mismatch": found.difference.mismatch} if found.difference.mismatch else {})

    sets = [
        {"name": name, "against": report.against[name], "outputs": [comparison(found) for found in comparisons]}
        for name, comparisons in report.outputs.items()
    ]
    first = report.first and {"data_set": report.first[0], "node": report.first[1]} | comparison(report.first[2])
    counts = {"values": report.values, "unread": report.unread}
    return arguments.json_text({"model": report.model, "equal": report.equal, "data_sets": sets} | counts | {"first_difference": first})


def main() -> int:
    options = _parse()
    if options.size and options.data:
        raise UsageError("--size: the inputs of --data have their sizes")
    sizes, dims = dict(options.size), arguments.numbers(dict(options.dim))
    model = arguments.compile_model(options)
    inputs = with_sizes(model.inputs, sized_inputs(options.model.read_bytes(), dims, sizes)) if sizes else model.inputs
    sets = [] if sizes else data_sets(options.data or options.model.parent, model.inputs, model.outputs)
    if not sets and options.data:
        raise ValueError(f"{options.data}: contains neither test_data_set_N nor io.npz")
    sets = sets or [DataSet(f"seed {options.seed}", sample(inputs, options.seed))]
    report = verify(options.model, model, sets, options.against, Tolerance(options.tolerance, options.floor))
    arguments.progress("")
    print(as_json(report) if options.json else text(report))
    return arguments.DONE if report.equal else arguments.MODEL_AT_FAULT


def _parse() -> argparse.Namespace:
    parser = arguments.parser("verify", (
        "Compiles a model and compares its outputs with data that ships beside it (test_data_set_N, io.npz). Without data, compares with "
        "onnxruntime or, if that cannot run the model, with the ONNX reference, on seeded inputs. Then compares every value of the graph and "
        "names the first node that differs."), (
        "verify mnist.onnx\n"
        "verify mnist.onnx --data test_data_set_0 --target host-opencl\n"
        "verify yunet.onnx --size height=320 --size width=320"))  # fmt: skip
    parser.add_argument("--data", metavar="DIR", type=pathlib.Path, help="folder of test_data_set_N, one such folder, or an .npz file")
    arguments.add_size(parser)
    parser.add_argument("--against", choices=["onnxruntime", "reference"], help="what computes the values to compare with; default: onnxruntime, or the reference if onnxruntime cannot run the model")
    parser.add_argument("--tolerance", type=arguments.tolerance, help="allowed |a - b| / max |b|; default: 1e-4, for 16-bit floats 1e-2, for smaller ones a step, for integers 0")
    parser.add_argument("--floor", type=arguments.tolerance, help="allowed |a - b| on top of that; default: 1e-6, for 16-bit floats 1e-4, for smaller ones 1/100 of a step, for integers 0; less if all inputs are below 1")
    parser.add_argument("--seed", type=arguments.seed, default=0, help="seed of the inputs if no data ships with the model; default: 0")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()
