"""Networks trained by DP-SGD: their outputs, and their steps as an attacker observes them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from leakbound.core.checkpoints import current_place
from leakbound.core.checks import one_of
from leakbound.core.seeds import integer, stream
from leakbound.core.signals import DIAGNOSTICS
from leakbound.core.types import Points
from leakbound.dpsgd.attacker import Attacker
from leakbound.dpsgd.canary_layer import marked
from leakbound.dpsgd.clipping import (
    Gradients,
    How,
    blocks,
    clipped_sum,
    gradients_of,
    noisy_sum,
    trained_parameters,
)
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.equal_records import EqualRecords, chosen_record
from leakbound.dpsgd.followed_steps import FollowedStep, Rounding, followed
from leakbound.dpsgd.gradient_rows import CoordinateRows, Rows
from leakbound.dpsgd.observer import CanaryCoordinates, Watch, batch_size
from leakbound.releases.networks.architecture import Architecture, built, columns_of, refuse_own_step
from leakbound.releases.networks.checkpoints import TrainingCheckpoint
from leakbound.releases.networks.devices import clear_of_memory, working
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.signals import signals_of
from leakbound.releases.networks.tensors import Inputs, inputs_of, labels_of, what_is_done
from leakbound.releases.networks.training import TrainingData
from leakbound.releases.source_code import digest_of_classes
from leakbound.releases.specs import canonical, first_line, printed, versions
from leakbound.releases.structure import Structure
from leakbound.releases.wrapped import KnownByRecipe

Array = np.ndarray
STEPS = ("step_dot", "step_norm", "step_in", *DIAGNOSTICS)
LENGTH = 100.0  # of a Dirac canary's gradient before clipping, in clipping norms: more than all others of a batch
Aggregate = Callable[[Iterable[Rows], DpSgd, Tensor, float], Tensor]


@runtime_checkable
class Follow(Protocol):
    """What a user-supplied training loop calls around its steps."""

    def __call__(
        self, optimizer: Any, normaliser: float, *, batch: Callable[[], ArrayLike | Tensor] | None = None
    ) -> AbstractContextManager[None]:
        """Observe the steps of an optimizer; ``batch`` returns which rows of ``x`` were in the batch of a step."""
        ...


@runtime_checkable
class Train(Protocol):
    """A user-supplied training loop."""

    def __call__(
        self, module: nn.Module, x: Float[Tensor, "n ..."], y: Int[Tensor, " n"], follow: Follow, seed: int
    ) -> None:
        """Train the module, in place, on n records, with the steps inside of ``follow(optimizer, normaliser)``.

        Where ``follow`` also gets ``batch``, a function that returns the rows of x in the batch of the step that was
        just made (indices or a mask), Dirac canaries are audited step by step.
        """
        ...


@dataclass(frozen=True)
class PrivateNetwork(KnownByRecipe):
    """A network that is trained by DP-SGD anew for each row of a game.

    It gives ``loss``, ``log_odds``, ``correct``, ``log_prob`` and ``gradient_norm`` of every point, and for attackers
    who observe the parameters after every step ``step_dot`` and ``step_norm``, from which the attack `likelihood_ratio`
    with the rate q of the batches computes the best score, and ``step_in``, the batches that a point is in, for
    `leakbound.dpsgd.step_level`. The last one is missing if a user-supplied training loop does not tell its batches.
    Of the training itself it gives the numbers of `leakbound.dpsgd.diagnostics`, without an axis of points.

    Parameters
    ----------
    make : callable
        Returns an ``nn.Module`` whose output has one column for each class, without batch normalisation and dropout.
    dpsgd : DpSgd
        How it is trained, or claimed to be trained.
    parameters : mapping
        Keywords of ``make``.
    watched : tuple of int
        Indices of the points at which the steps are observed, as the canaries of a game; all unless given. The
        signals of the steps are 0 at the others.
    coordinates : tuple of int
        Makes the watched points Dirac canaries, given by their gradients alone: 100 c at one coordinate each and 0
        elsewhere, clipped to c. Their features and labels are not read in training. In a user-supplied loop they are
        records of a network with an additional layer, see `leakbound.dpsgd.canary_layer`.
    knowledge : {"distribution", "others"}
        What the attacker knows of the members that are not watched: their gradients, or also which batches they are
        in. Of the watched points: their gradients, and that each is in with probability 1/2.
    references : int
        Number of records from whose gradients the attacker estimates the distribution of a step, at most 256.
    gradients : {"auto", "layers", "vmap", "opacus"}
        How they are computed, see `leakbound.dpsgd.clipping.gradients_of`.
    aggregate : callable
        Computes the noisy sum of the gradients of a batch, as `leakbound.dpsgd.clipping.noisy_sum`: another one is
        audited against the claims of ``dpsgd``.
    train : callable, optional
        A user-supplied training loop (module, x, y, follow, seed), to be audited in the same way. Its Dirac canaries
        only reach an additional layer; its own layers are tested by a short training on copies of one record.
    device : {"cpu", "cuda", "auto"}
    name : str
    chunk : int
        Rows that are trained and stored together.

    Raises
    ------
    ValueError
        In one line.

    Notes
    -----
    The normaliser is ``B = q n``, rounded for batches of fixed size. It must not depend on who is in, so n is
    public: the number of members that are not watched, plus half of the watched records. Batches, noise and initial
    parameters come from the seed of the row; the noise of a real release must not.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from leakbound.dpsgd.config import DpSgd
    >>> from leakbound.dpsgd.network import PrivateNetwork
    >>> from leakbound.core.types import Points
    >>> points = Points(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2)
    >>> release = PrivateNetwork(lambda: nn.Linear(3, 2), DpSgd(steps=5), watched=(0, 1))
    >>> signals = release.observe(points, np.ones((1, 40), dtype=bool), np.array([0]), ["loss", "step_dot"])
    >>> {name: array.shape for name, array in signals.items()}
    {'loss': (1, 40), 'step_dot': (1, 40, 5)}
    """

    family: ClassVar[str] = "dpsgd"

    make: Callable[..., nn.Module]
    dpsgd: DpSgd
    parameters: Mapping[str, Any] = field(default_factory=dict)
    watched: tuple[int, ...] = ()
    coordinates: tuple[int, ...] = ()
    knowledge: Literal["distribution", "others"] = "distribution"
    references: int = 256
    gradients: How = "auto"
    aggregate: Aggregate = noisy_sum
    train: Train | None = None
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    name: str = "dpsgd"
    chunk: int = 1

    def __post_init__(self) -> None:
        one_of("knowledge", self.knowledge, ("distribution", "others"))
        if len(set(self.watched)) < len(self.watched):
            raise ValueError("a point is watched twice; name each once")
        if self.coordinates and len(self.coordinates) != len(self.watched):
            raise ValueError(
                f"{len(self.coordinates):,} coordinates for {len(self.watched):,} watched points; give one each"
            )
        if self.coordinates and self.dpsgd.batches == "fixed":
            raise ValueError("Dirac canaries take nobody's place: they need batches='poisson'")
        if self.train is not None and self.knowledge == "others":
            raise ValueError(
                "nobody knows the batches of a user-supplied training loop: knowledge must be 'distribution'"
            )

    def _description(self) -> Mapping[str, Any]:
        fields = ("parameters", "watched", "coordinates", "knowledge", "references", "gradients", "device")
        network = {name: canonical(getattr(self, name)) for name in ("make", "aggregate", "train", *fields)}
        module = self._built(0)
        network["architecture"] = Architecture.of(module, Recipe(device=self.device)).digest
        network["classes"] = digest_of_classes({type(part) for part in module.modules()})
        return {"private_network": network, "dpsgd": self.dpsgd.describe(), "versions": versions({"torch", "numpy"})}

    @property
    def description(self) -> str:
        """The factory and its parameters, and how it is trained."""
        parameters = ", ".join(f"{name}={printed(value)}" for name, value in self.parameters.items())
        return f"{getattr(self.make, '__name__', self.name)}({parameters}), {self.dpsgd!r}"

    def structure(self, points: Points, seed: int) -> Structure:
        """Return the number of parameters of the network, which training does not change."""
        return Structure(len(points), self.n_parameters(), has_leaves=False, stores_records=False)

    def n_parameters(self) -> int:
        """Count the parameters of a network: the length of a gradient."""
        return sum(parameter.numel() for parameter in trained_parameters(self._built(0)))

    def tensor_names(self) -> list[str]:
        """Return the names of the parameter tensors whose noise is tested, in order."""
        named = self._built(0).named_parameters()
        names = [name for name, parameter in named if parameter.requires_grad]
        if self.train is not None and self.coordinates:
            names.append("the layer added for the canaries")
        return names

    def prepared(self, points: Points) -> str:
        """Say what is done to the points before the network reads them, in a sentence; empty if nothing is."""
        return what_is_done(points.x, self.name)

    def _built(self, seed: int) -> nn.Module:
        module = built(self.make, self.parameters, seed)
        if self.train is None:  # a loop of the user's may call what it likes
            refuse_own_step(module, "give the loop that does as dpsgd={..., 'train': loop}")
        return module

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m ..."]]:
        """Train one network for each row and return its signals, and those of its steps if they are wanted."""
        if self.knowledge == "others" and not self.watched:
            raise ValueError("knowledge='others' is of all records that are not watched; name the watched ones")
        if any(not 0 <= number < len(points) for number in self.watched):
            raise ValueError(f"watched points must be from 0 to {len(points) - 1}, got {max(self.watched, key=abs)}")
        # one training after another, each from its own seed
        recipe = Recipe(device=self.device)
        classes, label = labels_of(points, self.name)
        with working(recipe) as device, clear_of_memory(self._too_large):
            inputs = inputs_of(points.x).on(device)
            if not isinstance(inputs, Inputs):
                raise ValueError(f"{self.name}: DP-SGD takes features in one array, got a {type(points.x).__name__}")
            rows = []
            for inside, seed in zip(member, seeds, strict=True):
                module = self._built(integer(int(seed), "init")).to(device)
                column = torch.from_numpy(columns_of(module, inputs, classes, label, self.name)).to(device)
                training = _Training(self, TrainingData(inputs, column, recipe, device, self.name), inside, int(seed))
                rows.append(training.signals(module, want))
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    @property
    def _too_large(self) -> str:
        return (
            f"{self.name}: memory does not suffice for {self.references:,} reference gradients and a batch's, each of "
            f"{self.n_parameters():,} numbers; give fewer references, or a smaller sample_rate"
        )


@dataclass(frozen=True, eq=False)
class _Training:
    """One training, on the records of one row."""

    release: PrivateNetwork
    data: TrainingData
    inside: Bool[Array, " N"]
    seed: int

    def signals(self, module: nn.Module, want: Sequence[str]) -> dict[str, Float[Array, "_ ..."]]:
        """Train the network, and return the wanted signals."""
        network, inputs, label = module, self._inputs, self.data.label
        # the training changes the network: what needs its first parameters keeps a copy
        at_first = deepcopy(module) if "step_records" in want else None
        # a user-supplied loop computes its own gradients: a layer of the network makes those of Dirac canaries
        if self.release.train is not None and self.release.coordinates:
            watched = np.array(self.release.watched)
            network, inputs, label = marked(network, inputs, label, watched, LENGTH * self.release.dpsgd.clip)
        # who sees the steps, if any signal is about them
        gradients, attacker = gradients_of(network, self.release.gradients), self._attacker()
        watch = None
        if any(name in STEPS for name in want):
            tensors = [parameter.numel() for parameter in trained_parameters(network)]
            canaries = self._canary_coordinates(sum(tensors))
            watch = Watch(
                gradients,
                inputs,
                label,
                self.release.dpsgd,
                attacker,
                tensors=tensors,
                canaries=canaries,
                ratios="step_dot" in want or "step_norm" in want,
            )
        # by the loop here, or by the user's, whose optimizer is followed
        if self.release.train is None:
            self._descend(module, gradients, attacker, watch)
        else:
            self._run_user_loop(self.release.train, network, inputs, label, watch)
        if not all(bool(parameter.isfinite().all()) for parameter in module.parameters()):
            raise ValueError(f"{self.release.name}: training ended with NaN or infinite parameters; give a smaller lr")
        # what the trained network says, then what its steps have shown
        signals = dict(signals_of(module.eval(), self.data, want))
        if watch is not None:
            step_signals = watch.signals(len(self.inside))
            if at_first is not None:
                step_signals["step_records"] = self._of_equal_records(at_first)
            signals |= {name: array for name, array in step_signals.items() if name in want}
        return signals

    def _attacker(self) -> Attacker:
        release = self.release
        watched = np.array(release.watched or range(len(self.inside)), dtype=int)
        coordinates = np.array(release.coordinates if release.train is None else (), dtype=int)
        known = self.inside.copy()
        known[watched] = False
        return Attacker(watched, np.flatnonzero(known), release.knowledge, coordinates, release.references, self.seed)

    def _canary_coordinates(self, n_parameters: int) -> CanaryCoordinates | None:
        """Return the coordinates of Dirac canaries; in a user-supplied loop the last ones are theirs alone."""
        release = self.release
        if not release.coordinates:
            return None
        coordinates = np.array(release.coordinates)
        if release.train is not None:
            coordinates = n_parameters - len(coordinates) + np.arange(len(coordinates))
        is_in = self.inside[list(release.watched)]
        alone = release.train is not None or release.knowledge == "others"
        # there a canary's gradient is that of its loss, which falls where its weight grows
        sign = 1 if release.train is None else -1
        return CanaryCoordinates(coordinates[~is_in], coordinates[is_in], alone, sign)

    def _run_user_loop(
        self, train: Train, module: nn.Module, inputs: Inputs, label: Tensor, watch: Watch | None
    ) -> None:
        """Train by the user-supplied loop, on a copy, and take over its parameters."""
        indices, trained = np.flatnonzero(self.inside), deepcopy(module)
        parameters = trained_parameters(trained)
        x, y = inputs.batch(indices, self.data.device), label[torch.from_numpy(indices)]

        def follow(
            optimizer: Any, normaliser: float, *, batch: Callable[[], ArrayLike | Tensor] | None = None
        ) -> AbstractContextManager[None]:
            if watch is None:
                return nullcontext()
            if batch is None:
                return watch.follow(optimizer, normaliser, parameters=parameters)

            def numbers() -> Int[Array, " _"]:
                return indices[_rows(batch(), len(indices))]

            return watch.follow(optimizer, normaliser, batch=numbers, parameters=parameters)

        try:
            with without_opacus_warnings():
                train(trained, x, y, follow, integer(self.seed, "train"))
        except Exception as error:  # the function is the user's: it may raise anything
            raise RuntimeError(f"{self.release.name} cannot be trained: {first_line(error)}") from error
        _refuse_changed_frozen(module, trained, self.release.name)
        module.load_state_dict(trained.state_dict())

    def _of_equal_records(self, module: nn.Module) -> Float[Array, " P"]:
        """Train on copies of one record, and return what a record adds to a step, see `EqualRecords`.

        A user-supplied loop is ended by an error after the steps that are looked at. If it cannot be trained on these
        records, no step is seen.
        """
        release, n_copies = self.release, int(self.inside.sum())
        seed = integer(self.seed, "equal records")
        x, y = chosen_record(module, self._inputs, release.dpsgd.clip, seed)
        copies, labels = x.repeat(n_copies, *[1] * (x.ndim - 1)), y.repeat(n_copies)
        equal = EqualRecords(module, x, y, n_copies, release.dpsgd)
        if release.train is None:
            self._descend_on(module, copies, labels, equal, seed)
            return equal.numbers()
        parameters = trained_parameters(module)

        def follow(
            optimizer: Any, normaliser: float, *, batch: Callable[[], ArrayLike | Tensor] | None = None
        ) -> AbstractContextManager[None]:
            def observe(step: FollowedStep) -> None:
                n_passed = passed.pop_all()
                try:
                    equal.step(step, n_passed if batch is None else len(np.unique(_rows(batch(), n_copies))))
                except Exception as error:
                    errors.append(error)
                    raise
                if equal.is_finished:
                    raise _EnoughSeen

            return followed(optimizer, normaliser, observe, parameters)

        passed, errors = _RowsPassed(module, tuple(x.shape[1:])), list[Exception]()
        # the function is the user's: it may raise anything, or wrap what is raised here
        with suppress(Exception), without_opacus_warnings():
            release.train(module, copies, labels, follow, seed)
        if errors:  # of the observer, not of the function
            raise errors[0]
        return equal.numbers()

    def _descend_on(
        self, module: nn.Module, x: Float[Tensor, "n ..."], y: Int[Tensor, " n"], equal: EqualRecords, seed: int
    ) -> None:
        """Make the first steps of a training on given records, by Poisson batches."""
        dpsgd, aggregate = self.release.dpsgd, self.release.aggregate
        gradients, theta = gradients_of(module, self.release.gradients), _flat(module)
        generator, rng = torch.Generator().manual_seed(integer(seed, "noise")), stream(seed, "batches")
        normaliser = dpsgd.sample_rate * len(x)
        rounding = Rounding.of([theta])
        while not equal.is_finished:
            batch = torch.from_numpy(np.flatnonzero(rng.random(len(x)) < dpsgd.sample_rate)).to(theta.device)
            parts = (gradients.rows(theta, x[block], y[block]) for block in batch.split(gradients.block))
            noise = torch.randn(len(theta), generator=generator).to(theta)
            before, theta = theta, theta - dpsgd.lr / normaliser * aggregate(parts, dpsgd, noise, normaliser)
            equal.step(FollowedStep(before, before, theta, normaliser / dpsgd.lr, rounding), len(batch))

    def _descend(self, module: nn.Module, gradients: Gradients, attacker: Attacker, watch: Watch | None) -> None:
        """Train by DP-SGD (Abadi et al. 2016, algorithm 1)."""
        dpsgd, theta = self.release.dpsgd, _flat(module)
        normaliser = dpsgd.sample_rate * attacker.n_records
        if dpsgd.batches == "fixed":
            normaliser = batch_size(dpsgd.sample_rate, attacker.n_records)
        generator = torch.Generator().manual_seed(integer(self.seed, "noise"))
        rng = stream(self.seed, "batches")
        first = 0
        # the sum of a user's own may remember what it did before, which is in no checkpoint
        place = current_place() if self.release.aggregate is noisy_sum else None
        checkpoint = TrainingCheckpoint(place, [self.seed], "dpsgd", [module])
        state = checkpoint.load()
        if state is not None:
            first, theta = state["step"], state["theta"].to(theta)
            generator.set_state(state["noise"])
            rng.bit_generator.state = json.loads(state["batches"])
            if watch is not None:
                watch.restore(state["watch"])
        for step in range(first, dpsgd.steps):
            # theta_{t+1} = theta_t - lr/normaliser (sum of clipped gradients + noise)
            batch = self._drawn_batch(rng, round(normaliser))
            parts = chain(self._records(gradients, theta, batch), self._canaries(theta, batch))
            noise = torch.randn(len(theta), generator=generator).to(theta)
            total = self.release.aggregate(parts, dpsgd, noise, normaliser)
            before, theta = theta, theta - dpsgd.lr / normaliser * total
            if watch is not None:
                known = None
                # this attacker subtracts the gradients of all others in the batch
                if attacker.knowledge == "others":
                    others = self._records(gradients, before, np.setdiff1d(batch, attacker.watched))
                    known = clipped_sum(others, dpsgd.clip, start=torch.zeros_like(theta))
                watch.step(before, theta, normaliser / dpsgd.lr, known, batch=batch)
            checkpoint.save_if_due(partial(_state, step + 1, theta, generator, rng, watch))
        vector_to_parameters(theta, trained_parameters(module))

    def _drawn_batch(self, rng: np.random.Generator, size: int) -> Int[Array, " b"]:
        """Draw the members in the batch of a step; whether a record is drawn does not depend on who else is in."""
        if self.release.dpsgd.batches == "poisson":
            return np.flatnonzero((rng.random(len(self.inside)) < self.release.dpsgd.sample_rate) & self.inside)
        members = np.flatnonzero(self.inside)
        if size > len(members):
            raise ValueError(
                f"{self.release.name}: batches of {size:,} from {len(members):,} members; lower sample_rate"
            )
        return rng.choice(members, size, replace=False)

    @cached_property
    def _coordinate(self) -> Int[Array, " N"]:
        """The coordinate of each Dirac canary, and -1 for records."""
        coordinate = np.full(len(self.inside), -1)
        if self.release.coordinates:
            coordinate[list(self.release.watched)] = self.release.coordinates
        return coordinate

    def _records(self, gradients: Gradients, theta: Float[Tensor, " d"], batch: Int[Array, " b"]) -> Iterator[Rows]:
        """Yield the gradients of the records of a batch, some at a time."""
        for block in blocks(batch[self._coordinate[batch] < 0], gradients.block):
            inputs = self._inputs.batch(block, self.data.device)
            yield gradients.rows(theta, inputs, self.data.label[torch.from_numpy(block)])

    def _canaries(self, theta: Float[Tensor, " d"], batch: Int[Array, " b"]) -> Iterator[Rows]:
        """Yield the gradients of the Dirac canaries of a batch, before clipping."""
        where = torch.from_numpy(self._coordinate[batch[self._coordinate[batch] >= 0]]).to(theta.device)
        if len(where):
            yield CoordinateRows(where, theta.new_full((len(where),), LENGTH * self.release.dpsgd.clip), len(theta))

    @property
    def _inputs(self) -> Inputs:
        """The features, which are in one array."""
        assert isinstance(self.data.inputs, Inputs)
        return self.data.inputs


class _RowsPassed:
    """Counts the rows that pass through a network between two steps.

    Where the gradients of single rows are computed one by one, or by `torch.func.vmap`, each call is of one row, and
    says nothing of the batch.
    """

    def __init__(self, module: nn.Module, shape: tuple[int, ...]) -> None:
        self._shape, self._n_rows, self._by_batch = shape, 0, True
        module.register_forward_pre_hook(self._count)

    def _count(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        x = inputs[0] if inputs else None
        if isinstance(x, Tensor) and tuple(x.shape[1:]) == self._shape and len(x) > 1:
            self._n_rows += len(x)
        elif not (isinstance(x, Tensor) and not len(x)):
            self._by_batch = False

    def pop_all(self) -> int | None:
        """Return the number of rows since the last time, None if it does not tell the batch."""
        n_rows, by_batch = self._n_rows, self._by_batch
        self._n_rows, self._by_batch = 0, True
        return n_rows if by_batch else None


class _EnoughSeen(Exception):
    """Ends a user-supplied training loop after the steps that are looked at."""


def _refuse_changed_frozen(module: nn.Module, trained: nn.Module, name: str) -> None:
    """Refuse a training that changed parameters which are frozen, and so not observed."""
    pairs = zip(module.named_parameters(), trained.parameters(), strict=True)
    changed = [path for (path, one), two in pairs if not one.requires_grad and not torch.equal(one, two)]
    if changed:
        raise ValueError(
            f"{name}: the training changed the frozen parameters {', '.join(changed)}, which are not observed; train "
            "them in its steps (requires_grad = True), or leave them as they are"
        )


def _flat(module: nn.Module) -> Float[Tensor, " d"]:
    """Return the parameters that are trained as one vector."""
    return parameters_to_vector(trained_parameters(module)).detach()


def _state(
    step: int, theta: Float[Tensor, " d"], noise: torch.Generator, batches: np.random.Generator, watch: Watch | None
) -> dict[str, Any]:
    """Return what the steps from this one on depend on."""
    return {
        "step": step,
        "theta": theta,
        "noise": noise.get_state(),
        "batches": json.dumps(batches.bit_generator.state),
        "watch": {} if watch is None else watch.state(),
    }


def _rows(batch: ArrayLike | Tensor, n: int) -> Int[Array, " b"]:
    """Read which of n rows a user-supplied training loop says were in a batch: indices, or a mask."""
    rows = torch.as_tensor(batch).detach().cpu().numpy()
    if not rows.size:
        return np.zeros(0, dtype=int)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or not 0 <= rows.min() <= rows.max() < n:
        raise ValueError(
            f"batch() must return the rows of x in the batch of the step: indices from 0 to {n - 1:,} or a mask of "
            f"shape ({n},), got {rows.dtype} of shape {rows.shape}"
        )
    return rows


@contextmanager
def without_opacus_warnings() -> Iterator[None]:
    """Keep back what Opacus says in each training: that its noise is not cryptographic, and that hooks are called."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"opacus\b")
        for message in ("Secure RNG turned off", "Full backward hook is firing", "Optimal order is the"):
            warnings.filterwarnings("ignore", message=message)
        yield
