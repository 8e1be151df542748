"""``python -m leakscope``."""

from leakscope.cli.main import main

if __name__ == "__main__":
    main()
