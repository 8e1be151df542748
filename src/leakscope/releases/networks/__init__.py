"""Networks of PyTorch: how they are trained, one or many side by side, and what is seen of them."""
