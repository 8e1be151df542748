"""``python -m leakscope.cli``."""

from leakscope.__main__ import main

if __name__ == "__main__":
    main()
