"""The list of cases that are known to fail, with the reasons, and the record of each case's outcome in a run."""

import os
import pathlib
import re

import suite

LIST = pathlib.Path(__file__).with_name("unsupported.txt")
OUTCOMES = "ONNX2HALIDE_OUTCOMES"  # names the folder in which a run records the outcomes of its cases


def listed() -> dict[str, str]:
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return dict(line.split("\t", 1) for line in lines)


def write_list(reasons: dict[str, str]) -> None:
    LIST.write_text("".join(f"{case}\t{reason}\n" for case, reason in sorted(reasons.items())))


def note(case: str, error: str | None) -> None:
    if folder := os.environ.get(OUTCOMES):
        (pathlib.Path(folder) / case).write_text(error or "")


def reason(error: str) -> str:
    """An error in short, without the names of model and nodes."""
    if "unsupported operators in " in error:
        operators = re.findall(r"^  ([\w.]+) \(version \d+\):", error, re.MULTILINE)
        return f"unsupported operator{'s' if len(set(operators)) > 1 else ''} " + ", ".join(sorted(set(operators)))
    if "Mismatched elements" in error:
        return "wrong result"
    text = " ".join(error.split())
    text = re.sub(r"^\w+\.onnx: ", "", text)
    text = re.sub(r"node '[^']*' \(([\w.]+)\)", r"\1", text)
    return text[:120]
