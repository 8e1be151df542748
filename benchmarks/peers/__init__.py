"""Other packages on the same arrays as leakscope: ``python -m benchmarks.peers``."""
