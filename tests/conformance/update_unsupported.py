"""Runs the suite and writes unsupported.txt anew: without the cases that pass now, and with those that fail. Prints how often each reason
occurs. With --listed it runs only the cases in the list; further arguments go to pytest, as in "-k softmax". Cases that do not run keep
their lines."""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import suite
import unsupported


HERE = pathlib.Path(__file__).parent


def main() -> None:
    words = sys.argv[1:]
    tests = [HERE]
    if "--listed" in words:
        words.remove("--listed")
        tests = [f"@{listed_tests()}"]
    outcomes = run_suite([*tests, *words])
    reasons = {case: reason for case, reason in unsupported.listed().items() if case not in outcomes}
    reasons |= {case: unsupported.reason(error) for case, error in outcomes.items() if error}
    unsupported.write_list(reasons)
    for reason, count in collections.Counter(reasons.values()).most_common():
        print(f"{count:5}  {reason}")
    print(f"{len(suite.cases()) - len(reasons)} of {len(suite.cases())} cases pass")


def listed_tests() -> pathlib.Path:
    """Writes a file of arguments for pytest that names the tests of listed cases."""
    suite.BUILD.mkdir(parents=True, exist_ok=True)
    file = suite.BUILD / "listed.txt"
    file.write_text("".join(f"{HERE / 'test_suite.py'}::test_case[{case}]\n" for case in unsupported.listed()))
    return file


def run_suite(arguments: list) -> dict[str, str]:
    """The error of each case that ran; empty if it passed."""
    command = [sys.executable, "-m", "pytest", *arguments, "--quiet", "--numprocesses=auto", "--tb=no", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command, env=os.environ | {unsupported.OUTCOMES: folder})
        return {file.name: file.read_text() for file in pathlib.Path(folder).iterdir()}


if __name__ == "__main__":
    main()
