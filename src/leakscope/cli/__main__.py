"""``python -m leakscope.cli``."""

from leakscope.cli.main import main

main()
