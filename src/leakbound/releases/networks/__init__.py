"""Networks of PyTorch: their training, one or many at once, and the signals that are computed from them."""
