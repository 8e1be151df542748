"""Where work is done and kept: the store, the pool of workers, and releases observed through both."""
