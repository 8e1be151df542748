"""``leakbound`` and ``python -m leakbound``."""

import os
import signal
import sys

INTERRUPTED = 130


def main() -> None:
    """Run a command; Ctrl-C while its modules are imported ends it like Ctrl-C afterwards, without a traceback."""
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
        del sys.path[0]  # ``python -m`` puts the current folder first, where any library may be shadowed
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not what a shell starts in the background
        signal.signal(signal.SIGINT, _leave)  # no exception, which the code around an import may catch
    from leakbound.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(number: int, frame: object) -> None:
    """End the process at once: nothing is open yet."""
    os.write(2, b"leakbound: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
