"""Canaries planted in a training: where the data, a release and the game of an audit in one run meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from inspect import isclass, isfunction
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from jaxtyping import Float

from leakbound.attacks import ATTACKS, Attack, Score, find, listed
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.setup import refuse_scored, wanted
from leakbound.core import games
from leakbound.core.checks import one_of
from leakbound.core.signals import DIAGNOSTICS
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Game, Release, Signals
from leakbound.data import Data
from leakbound.dpsgd.canaries import CANARIES, Canaries
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.plans.audits import ModelPlan
from leakbound.plans.games import Canaries as PlannedCanaries
from leakbound.releases.factory import Described, family, prepared, release_from, renamed
from leakbound.releases.forgetting import Forgetting
from leakbound.releases.scored import is_scored
from leakbound.releases.specs import TORCH, imported, is_network, own
from leakbound.reports.about import DataFacts

if TYPE_CHECKING:
    from leakbound.dpsgd.network import PrivateNetwork

Array = np.ndarray
STEPS = {"step_dot", "step_norm"}
HOOKS = (
    "aggregate",
    "train",
)  # words of a private network in addition to those of DpSgd: functions or their import paths,
HOW = ("references", "gradients", "device")  # and plain values
OF_RECORDS = ("mislabelled", "random")  # canaries that any release can be trained on


def private_network(
    make: str | Callable[..., Any],
    dpsgd: DpSgd | Mapping[str, Any],
    name: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> PrivateNetwork:
    """Make a network that is trained by DP-SGD from the fields of a plan."""
    # besides the fields of DpSgd a plan may name what PrivateNetwork takes: references, gradients, device, hooks
    words = dpsgd.describe() if isinstance(dpsgd, DpSgd) else dict(dpsgd)
    field_names = [field.name for field in fields(DpSgd)]
    for word in words:
        one_of("word of DP-SGD", word, (*field_names, *HOW, *HOOKS))
    # a wrong word is refused before anything is imported, and a wrong factory before PyTorch is
    factory = imported(make) if isinstance(make, str) else make
    kind = factory if isclass(factory) else type(factory)
    if not isfunction(factory) and not (isclass(factory) and is_network(factory)):
        raise ValueError(
            f"dpsgd trains networks; give a class of networks or a function that makes one, not {_name(kind)}"
        )
    try:
        room = import_module("leakbound.dpsgd.network")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ValueError(TORCH) from None
    return room.PrivateNetwork(
        factory,
        DpSgd.of({word: words[word] for word in field_names if word in words}),
        dict(parameters or {}),
        name=name or _name(factory),
        **{word: words[word] for word in HOW if word in words},
        **{word: _function(word, words[word]) for word in HOOKS if word in words},
    )


def planned(model: ModelPlan, score: str | None = None, labelled: bool = True) -> Described:
    """Make the release of one model table of a plan, seen by its score if there is one.

    >>> planned(ModelPlan(spec="sklearn.tree:DecisionTreeClassifier")).name
    'DecisionTreeClassifier'
    """
    if model.dpsgd is None or score is not None:
        how = model.recipe or model.dpsgd or {}
        return release_from(model.spec, model.set, model.name, how, model.layers, score, labelled)
    return private_network(model.spec, model.dpsgd, model.name, model.set)


def all_planned(models: Sequence[ModelPlan], score: str | None = None, labelled: bool = True) -> list[Described]:
    """Make the releases of a plan, each with a name of its own.

    Models of one class that the plan does not name are named by the parameters in which they differ; the same model
    twice keeps its name twice, which is refused where the audit begins.

    >>> trees = [ModelPlan(spec="sklearn.tree:DecisionTreeClassifier", set={"max_depth": depth}) for depth in (2, 5)]
    >>> [release.name for release in all_planned(trees)]
    ['DecisionTreeClassifier max_depth=2', 'DecisionTreeClassifier max_depth=5']
    """
    releases = [planned(model, score, labelled) for model in models]
    names = _distinct_names(models, [release.name for release in releases])
    return [
        release if release.name == name else renamed(release, name)
        for release, name in zip(releases, names, strict=True)
    ]


def _distinct_names(models: Sequence[ModelPlan], names: Sequence[str]) -> list[str]:
    """Rename the models that have the name of another one, apart from those that the plan names."""
    distinct = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        places = [place for place, model in enumerate(models) if names[place] == name and not model.name]
        for place, title in zip(places, _by_differences(name, [models[place] for place in places]), strict=True):
            distinct[place] = title
    return distinct


def _by_differences(name: str, models: Sequence[ModelPlan]) -> list[str]:
    """Name models of one class by what they do not share: the import path, then their parameters."""
    several_paths = len({model.spec for model in models}) > 1
    tables = [_parameters(model) for model in models]
    titles = []
    for model, table in zip(models, tables, strict=True):
        own = [
            f"{parameter}={_written(value)}"
            for parameter, value in table.items()
            if any(parameter not in other or other[parameter] != value for other in tables)
        ]
        titles.append(" ".join([model.spec if several_paths else name, ", ".join(own)]).strip())
    return titles


def _parameters(model: ModelPlan) -> dict[str, Any]:
    """List the parameters of a model, those of its training as ``train.epochs``."""
    of_training = {f"train.{name}": value for name, value in model.recipe.items()}
    of_layers = {"layers": ", ".join(model.layers)} if model.layers else {}
    return {**model.set, **of_training, **(model.dpsgd or {}), **of_layers}


def _written(value: Any) -> str:
    """Write a value as it is typed."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def is_private(release: Release) -> TypeGuard[PrivateNetwork]:
    """Whether a release is trained by DP-SGD with its steps in sight; does not import PyTorch."""
    return isinstance(getattr(release, "dpsgd", None), DpSgd)


def attacks_on(
    releases: Sequence[Release],
    attacks: str | Attack | Score | Sequence[str | Attack | Score],
    one_run: bool = False,
    planted: str | None = None,
) -> tuple[Attack, ...]:
    """Choose the attacks, given that some releases show the steps of DP-SGD.

    The likelihood ratio of the steps takes the rate of the batches from the release (with several rates, each of
    them), and is one of the attacks by default.

    >>> [attack.name for attack in attacks_on([], "default", one_run=True)]
    ['gap', 'confidence', 'loss', 'entropy']
    """
    rates = sorted({release.dpsgd.sample_rate for release in releases if is_private(release)})
    asked = listed(attacks)
    given = {name for release in releases for name in getattr(release, "signals", ())}
    rows = find(asked, given)
    likelihood_ratio = ATTACKS["likelihood_ratio"]
    if asked == ["default"]:
        rows = tuple(attack for attack in rows if not (one_run and attack.needs_references))
        if rates:
            # Dirac canaries are gradients, not records: attacks that ask a model about a record are left out
            rows = (likelihood_ratio,) if planted == "dirac" else (likelihood_ratio, *rows)
    chosen: list[Attack] = []
    for attack in rows:
        # one with parameters of its own has another name, and stays as it is
        if attack.name == likelihood_ratio.name and rates:
            chosen += [attack.with_parameters(rate=rate) for rate in rates]
        else:
            chosen.append(attack)
    return tuple(chosen)


@dataclass(frozen=True)
class Setting:
    """A release with the data and the game that it is audited in."""

    release: Described
    data: Data
    game: Game
    planted: str = ""

    def wanted(self, attacks: Sequence[Attack]) -> list[str]:
        """List the signals to observe: of Dirac canaries, without a loss, the steps; with steps also their noise.

        For Dirac canaries at coordinates that nothing else of unknown size reaches, also the batches that they are in.
        """
        names = [name for name in wanted(attacks) if self.planted != "dirac" or name in STEPS]
        if is_private(self.release) and STEPS & {*names}:
            names += DIAGNOSTICS
            # where the others are not known, their gradients reach the coordinates of several canaries at once
            others_apart = self.release.knowledge == "others" or self.release.train is not None
            if self.planted == "dirac" and others_apart:
                names.append("step_in")
        return names

    def observed(self, arrays: Mapping[str, Float[Array, "M ..."]], claims: Sequence[Claim]) -> ObservedRelease:
        """Return the release with its signals; a Dirac canary has no label and no picture."""
        name, points, dirac = self.release.name, self.data.points, self.planted == "dirac"
        facts: dict[str, Any] = {
            "description": self.release.description,
            "prepared": prepared(self.release, points),
            "family": family(self.release),
        }
        if isinstance(self.release, Forgetting):
            facts["kept"] = self.release.kept
        if self.planted:
            facts["description"] += f"; {self.game.n_target_points:,} {self.planted} canaries"
        # the tests of the noise say whose code computed the noisy gradients
        if is_private(self.release) and STEPS & arrays.keys():
            facts["knowledge"] = self.release.knowledge
            facts["steps_by"] = "leakbound"
            if self.release.train is not None:
                facts["steps_by"] = "own_loop"
            elif self.release.aggregate is not own("leakbound.dpsgd.clipping:noisy_sum"):
                facts["steps_by"] = "own_sum"
        # the data of a Dirac canary are the records without it: it has no features that a page could show
        if dirac:
            n_records = len(points) - self.game.n_target_points
            facts["data"] = DataFacts(name=self.data.name, digest=points.digest[:16], records=n_records)
        of_points = {name: array for name, array in arrays.items() if name not in DIAGNOSTICS}
        signals = Signals.observed(self.game, None if dirac else points, of_points)
        slices = {} if dirac else self.data.slices
        diagnostics = StepDiagnostics.of(arrays)
        return ObservedRelease(
            name,
            signals,
            None if dirac else self.data,
            claims,
            facts,
            slices=slices,
            is_scored=is_scored(self.release),
            diagnostics=diagnostics,
        )


def plant(asked: PlannedCanaries, n_models: int, release: Described, loaded: Data, seed: int = 0) -> Setting:
    """Choose the canaries of a release and toss a fair coin for each.

    >>> from leakbound import data
    >>> forest = release_from("sklearn.ensemble:RandomForestClassifier", {})
    >>> plant(PlannedCanaries("mislabelled", 100), 1, forest, data.load("digits")).game.member.shape
    (1, 1797)
    """
    points, kind = loaded.points, asked.kind
    if points.group is not None:
        raise ValueError("the game canaries is played by single records; use half_split with a group column")
    if kind == "mislabelled":
        refuse_scored([release], "mislabelled canaries", "plant kind = random, or name them by targets")
    watched = release
    if is_private(release):
        gradients_of = {} if kind in OF_RECORDS else {"release": release}
        canaries = _canaries(kind)(points, asked.n, seed, **gradients_of)
        # a training loop of the user's shows no batches, so that the others in them are known to nobody
        knowledge = asked.knowledge or ("others" if kind == "dirac" and release.train is None else "distribution")
        watched = replace(canaries.watched_by(release), knowledge=knowledge)
    elif kind not in OF_RECORDS or asked.knowledge is not None:
        what = f"{kind} canaries need" if kind not in OF_RECORDS else "knowledge is of"
        raise ValueError(
            f"{what} the steps of DP-SGD, and {release.name} shows none: give dpsgd, or leave that out and plant "
            "kind = mislabelled or random, or name them by targets"
        )
    else:
        canaries = _canaries(kind)(points, asked.n, seed)
    game = games.canaries(len(canaries.points), canaries.numbers, n_models, references=asked.references, seed=seed)
    return Setting(watched, replace(loaded, points=canaries.points), game, kind)


def _canaries(kind: str) -> Callable[..., Canaries]:
    return own(CANARIES[kind])


def _function(word: str, value: Any) -> Any:
    """Import a hook that is given by its path; return any other one as it is."""
    function = imported(value) if isinstance(value, str) else value
    if function is not None and not callable(function):
        raise ValueError(f"{word} must be a function or the import path of one, got a {type(function).__name__}")
    return function


def _name(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__)
