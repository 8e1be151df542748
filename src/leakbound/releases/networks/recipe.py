"""The training recipe of a network, as plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from leakbound.core.checks import count, fraction, non_negative, one_of, positive, probability
from leakbound.releases.specs import canonical, from_words

OPTIMISERS = ("adam", "adamw", "sgd")
LOSSES = ("cross_entropy", "mse")
SCHEDULES = ("constant", "step", "cosine")
DECAY = 0.1  # of the step size in a "step" schedule
AUGMENTATIONS = ("none", "flip", "crop", "flip_crop")
SHIFT = 4  # pixels of a crop
DEVICES = ("cpu", "cuda", "mps", "auto")


Collate = Callable[[list[tuple[Any, Any]]], tuple[Any, Any]]


@dataclass(frozen=True)
class Recipe:
    """The training recipe of a network.

    Parameters
    ----------
    optimiser : {"adam", "adamw", "sgd"}
        With PyTorch's defaults for all constants that are not fields of this class.
    lr : float
        Step size, in the first epoch.
    schedule : {"constant", "step", "cosine"}
        How the step size falls over the epochs. step: it is multiplied by ``decay`` after every ``decay_epochs`` epochs
        (PyTorch's ``StepLR``). cosine: ``lr (1 + cos(pi e/epochs))/2`` in the epoch e = 0, 1, ... (its
        ``CosineAnnealingLR``).
    decay_epochs : int, optional
        Of the schedule "step", which needs it.
    decay : float, optional
        Of the schedule "step", in (0, 1): 0.1 unless given.
    momentum : float
        Of SGD, in [0, 1).
    weight_decay : float
        Added to the gradient as ``weight_decay * parameter`` (adam, sgd), or subtracted in each step (adamw).
    epochs : int
        Passes over the training data; at most so many if ``stop`` is given.
    batch : int
        Number of points in a step; the last batch of an epoch may be smaller.
    loss : {"cross_entropy", "mse"}
        Mean over the batch of the cross-entropy in nats, or of the squared distance of the softmax from the
        one-hot label, averaged over the classes (delgrosso2021, Section 5). A network with one logit for two
        classes or for each of several labels has binary cross-entropies, a regression the mean squared error.
    stop : float, optional
        Training ends after an epoch whose mean training loss differs from that of the epoch before by less than this.
    augment : {"none", "flip", "crop", "flip_crop"}
        Of training images: mirrored left to right with probability 1/2; shifted by up to ``shift`` pixels in each
        direction, with zeros at the edges.
    shift : int, optional
        Of crops, in pixels: 4 unless given.
    device : {"cpu", "cuda", "cuda:N", "mps", "auto"}
        ``cuda:1`` is the second GPU, ``mps`` that of an Apple computer; ``auto``: a GPU of CUDA if there is one.
    mixed_precision : bool
        Products and convolutions in bfloat16, parameters and losses in float32 (``torch.autocast``): for networks that
        are trained in this way. More than twice as fast on processors and GPUs with hardware for bfloat16, and several
        times slower on processors without it, where it is emulated.
    collate : callable, optional
        Makes a batch, as the ``collate_fn`` of a DataLoader: from a list of pairs (x, y) to (inputs, labels), the
        labels in the same order. y is the index of the class, or the response. It is needed for rows of different
        lengths.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> from leakbound.releases.networks.recipe import Recipe
    >>> Recipe(optimiser="sgd", lr=0.1, momentum=0.9).describe()["momentum"]
    0.9
    """

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    lr: float = 1e-3
    schedule: Literal["constant", "step", "cosine"] = "constant"
    decay_epochs: int | None = None
    decay: float | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0
    epochs: int = 30
    batch: int = 64
    loss: Literal["cross_entropy", "mse"] = "cross_entropy"
    stop: float | None = None
    augment: Literal["none", "flip", "crop", "flip_crop"] = "none"
    shift: int | None = None
    device: str = "cpu"
    mixed_precision: bool = False
    collate: Collate | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        one_of("optimiser", self.optimiser, OPTIMISERS)
        one_of("schedule", self.schedule, SCHEDULES)
        one_of("loss", self.loss, LOSSES)
        one_of("augment", self.augment, AUGMENTATIONS)
        if not (isinstance(self.device, str) and re.fullmatch(r"cuda:\d+", self.device)):
            one_of("device", self.device, DEVICES)
        if self.collate is not None and not callable(self.collate):
            raise ValueError(
                "collate must be a function from a list of (x, y) to (inputs, labels), "
                f"got a {type(self.collate).__name__}"
            )
        if not isinstance(self.mixed_precision, bool):
            raise ValueError(f"mixed_precision must be true or false, got {self.mixed_precision!r}")
        # numbers are kept as plain numbers, so that 1 and numpy's 1.0 are the same recipe
        checked = {
            "lr": positive("lr", self.lr),
            "momentum": probability("momentum", self.momentum),
            "weight_decay": non_negative("weight_decay", self.weight_decay),
            "epochs": count("epochs", self.epochs),
            "batch": count("batch", self.batch),
            "shift": self._shift(),
            "decay_epochs": self._decay_epochs(),
            "decay": self._decay(),
            "stop": None if self.stop is None else positive("stop", self.stop),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.momentum == 1:
            raise ValueError("momentum must be < 1, got 1")
        if self.momentum and self.optimiser != "sgd":
            raise ValueError(f"momentum is of optimiser='sgd'; {self.optimiser} takes none, got {self.momentum:g}")

    def _shift(self) -> int | None:
        """Return the shift of crops in pixels; None without crops."""
        if "crop" in self.augment:
            return SHIFT if self.shift is None else count("shift", self.shift)
        if self.shift is not None:
            raise ValueError(f"shift is of augment='crop' or 'flip_crop', got {self.shift} with {self.augment!r}")
        return None

    def _decay_epochs(self) -> int | None:
        """Return the epochs between two falls of the step size; None without them."""
        if self.schedule == "step":
            if self.decay_epochs is None:
                raise ValueError("schedule='step' needs decay_epochs, the epochs after which the step size falls")
            return count("decay_epochs", self.decay_epochs)
        if self.decay_epochs is not None:
            raise ValueError(f"decay_epochs is of schedule='step', got {self.decay_epochs!r} with {self.schedule!r}")
        return None

    def _decay(self) -> float | None:
        """Return the factor of the step size; None without one."""
        if self.schedule == "step":
            return DECAY if self.decay is None else fraction("decay", self.decay, above=True, below=True)
        if self.decay is not None:
            raise ValueError(f"decay is of schedule='step', got {self.decay!r} with {self.schedule!r}")
        return None

    def lr_in(self, epoch: int) -> float:
        """Compute the step size in an epoch.

        Parameters
        ----------
        epoch : int
            From 0 on.

        Returns
        -------
        float

        Examples
        --------
        >>> from leakbound.releases.networks.recipe import Recipe
        >>> imagenet = Recipe(optimiser="sgd", lr=0.1, epochs=90, schedule="step", decay_epochs=30)
        >>> [round(imagenet.lr_in(epoch), 6) for epoch in (0, 29, 30, 89)]
        [0.1, 0.1, 0.01, 0.001]
        """
        if self.schedule == "step" and self.decay_epochs and self.decay:
            return self.lr * self.decay ** (epoch // self.decay_epochs)
        if self.schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        return self.lr

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Recipe:
        """Build a recipe from a mapping: the table ``[model.train]`` of a plan, or ``--train NAME=VALUE``.

        Raises
        ------
        ValueError
            For an unknown name, with the nearest known one, and as the recipe itself.

        Examples
        --------
        >>> from leakbound.releases.networks.recipe import Recipe
        >>> Recipe.of({"batch": 32}).batch
        32
        """
        return from_words(cls, words, "train")

    def describe(self) -> dict[str, Any]:
        """Return every field as plain data; a collate function by its import path and its code.

        Raises
        ------
        NoCanonicalForm
            If the collate function has none, as a lambda.
        """
        words = asdict(replace(self, collate=None))
        del words["collate"]
        if self.collate is not None:
            words["collate"] = canonical(self.collate)
        return words
