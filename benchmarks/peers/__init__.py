"""Other packages on the same arrays as leakbound: ``python -m benchmarks.peers``."""
