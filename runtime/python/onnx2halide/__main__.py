"""`python -m onnx2halide COMMAND …`: the implementation of the compiler's commands run, verify, bench and tune."""

import importlib
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave(number, _frame) -> None:
    """Exits quietly with the status that the shell expects of a command that a signal ends. Files are closed and temporary folders removed."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, leave)
    command = sys.argv.pop(1)
    module = importlib.import_module(f"onnx2halide.{command}")
    importlib.import_module("onnx2halide.arguments").run_command(module.main)


if __name__ == "__main__":
    main()
