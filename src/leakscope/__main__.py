"""``python -m leakscope``."""

import os
import sys
from importlib import import_module


def main() -> None:
    """Run a command as ``leakscope`` does; Python has put the current folder first, where any library may be shadowed."""
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
        del sys.path[0]
    import_module("leakscope.cli.main").main()


if __name__ == "__main__":
    main()
