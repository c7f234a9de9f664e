"""`python -m onnx2halide COMMAND …`: what the compiler's commands run, verify, bench and tune become."""

import importlib
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave(number, _frame) -> None:
    """Leaves as the shell expects of a command that a signal ends, and quietly; what is open is closed and temporary folders go."""
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
