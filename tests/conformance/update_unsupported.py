"""Runs the suite and writes unsupported.txt anew: without the cases that pass now, and with those that fail. Arguments go to pytest, as in
"-k softmax"; cases that do not run keep their lines. Prints how often each reason occurs."""

import collections
import pathlib
import shutil
import subprocess
import sys

import suite
import unsupported


def main() -> None:
    shutil.rmtree(unsupported.OUTCOMES, ignore_errors=True)
    here = pathlib.Path(__file__).parent
    cache = suite.BUILD.parent / "pytest_cache"
    subprocess.run([sys.executable, "-m", "pytest", here, "--quiet", "--numprocesses=auto", "--tb=no", "-o", f"cache_dir={cache}", *sys.argv[1:]])
    outcomes = {file.name: file.read_text() for file in unsupported.OUTCOMES.iterdir()}
    reasons = {case: reason for case, reason in unsupported.listed().items() if case not in outcomes}
    reasons |= {case: unsupported.reason(error) for case, error in outcomes.items() if error}
    unsupported.write_list(reasons)
    for reason, count in collections.Counter(reasons.values()).most_common():
        print(f"{count:5}  {reason}")
    print(f"{len(suite.cases()) - len(reasons)} of {len(suite.cases())} cases pass")


if __name__ == "__main__":
    main()
