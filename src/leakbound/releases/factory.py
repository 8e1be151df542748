"""Make releases from estimators, networks, trained models, and import paths of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from leakbound.core.types import Points, Release
from leakbound.releases.answers import method_of, predicts_numbers
from leakbound.releases.estimator import Estimator, from_spec, with_parameters
from leakbound.releases.generators.generator import (
    Generator,
    SyntheticFiles,
    generates,
    has_fit_and_sample,
    is_generator,
)
from leakbound.releases.labels import LabelModel, LabelsOnly, ReleasedLabels
from leakbound.releases.networks.recipe import Collate, Recipe
from leakbound.releases.pretrained_model import FittedEstimator, PretrainedModel
from leakbound.releases.scored import Score, Scored, ScoredModel, scored
from leakbound.releases.specs import OR_SCORE, TORCH, first_line, imported, is_network, keywords_of
from leakbound.releases.structure import Structure
from leakbound.releases.training_function import TrainingFunction, is_function, positional, trains
from leakbound.releases.wrapped import Wrapped

Layers = str | tuple[str, ...]


@runtime_checkable
class Described(Release, Protocol):
    """A release with a description in the report."""

    @property
    def description(self) -> str:
        """The release and its parameters, in one line."""
        ...


@runtime_checkable
class Adapting(Protocol):
    """A release that finds out what it needs so that it can be fitted on some points."""

    def for_points(self, points: Points) -> Any:
        """Return the release that is fitted on these points."""
        ...

    @property
    def owner_note(self) -> str:
        """Why that is done, which may quote a value of the data; empty if nothing is."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """A release that changes the points before a model reads them."""

    def prepared(self, points: Points) -> str:
        """Say what is done to the points, in a sentence; empty if nothing is."""
        ...


@runtime_checkable
class Structured(Protocol):
    """A release whose model can be looked at."""

    def structure(self, points: Points, seed: int) -> Structure:
        """Return the structure of the model that would be released: one that is fitted on all points."""
        ...


def adapted(release: Any, points: Points) -> Any:
    """Let a release find out what it needs so that it can be fitted on some points."""
    return release.for_points(points) if isinstance(release, Adapting) else release


def prepared(release: Any, points: Points) -> str:
    """Say in a sentence what a release does to the points before a model reads them; empty if nothing."""
    return release.prepared(points) if isinstance(release, Preparing) else ""


def family(release: Any) -> str:
    """Name the family of a release's models, for advice on how to change them; empty if it is not known."""
    return getattr(release, "family", "")


def owner_notes(releases: Iterable[Any]) -> list[str]:
    """List why that is done, a sentence each, which may quote values of the data."""
    return [release.owner_note for release in releases if isinstance(release, Adapting) and release.owner_note]


def release_of(
    model: Any,
    name: str = "",
    train: Recipe | Mapping[str, Any] | None = None,
    layers: Layers = (),
    settings: Mapping[str, Any] | None = None,
    collate: Collate | None = None,
    score: Any = None,
    has_labels: bool = True,
) -> Described:
    """Make a release from an estimator, a network or a function that trains; or from what a score sees.

    Without labels what can be a generator is one.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> release_of(DecisionTreeClassifier()).name
    'DecisionTreeClassifier'
    """
    if score is not None and isinstance(model, Scored):  # by an import path, with the same score
        return model
    if score is not None:
        _refuse_scored(model, train, layers)
        return scored(model, score, name, settings)
    if is_generator(model, has_labels):
        return _of_generator(model, name, train, layers, settings)
    if isinstance(model, LabelsOnly):
        return _of_labels(model, name, train, layers, settings, collate)
    if trains(model):
        own_collate = _only_collate(model, train, layers)
        return TrainingFunction(model, name, dict(settings or {}), collate=own_collate or collate)
    if is_network(model) or inspect.isfunction(model):
        return _network(model, name, train, settings or {}, layers, collate)
    _refuse_recipe(model, train, layers)
    if isinstance(model, Described):
        if settings:
            raise ValueError(f"the parameters of a {type(model).__name__} cannot be varied; give the estimator itself")
        return model
    return Estimator(with_parameters(model, settings) if settings else model, name)


def release_from(
    spec: str,
    settings: Mapping[str, Any],
    name: str = "",
    train: Mapping[str, Any] | None = None,
    layers: Layers = (),
    score: str | None = None,
    has_labels: bool = True,
) -> Described:
    """Make a release from an import path.

    Parameters
    ----------
    spec : str
        ``module:name`` of an estimator, a network, a function that makes one of them, or a function that trains.
    settings : mapping
        Parameters of the estimator, or keywords of the function or class that makes the network.
    name : str
        The name in the report.
    train : mapping, optional
        How a network is trained: the fields of `Recipe`.
    layers : str or tuple of str
        The layers of a network whose gradients the attacker observes: ``"all"`` (unless given), ``"last"``, or names.
    score : str, optional
        ``module:name`` of a function from what was trained and the records to a number for each, or of a ``Loss``.
    has_labels : bool
        Whether the records have labels; without them, what can be a generator is one.

    Returns
    -------
    Described
        The release.

    Raises
    ------
    ValueError
        In one line, as `release_of`.

    Examples
    --------
    >>> from leakbound.releases.factory import release_from
    >>> release_from("sklearn.tree:DecisionTreeClassifier", {"max_depth": 3}).description
    'DecisionTreeClassifier(max_depth=3)'
    """
    target = imported(spec)
    if score is not None:
        is_training = is_function(target) and bool(positional(target, settings))
        if is_training or is_network(target):
            return release_of(target, name, train, layers, settings, score=imported(score))
        return release_of(from_spec(spec, settings), name, train, layers, score=imported(score))
    if is_generator(target, has_labels):
        return _of_generator(target, name, train, layers, settings)
    if not has_labels and inspect.isclass(target) and has_fit_and_sample(target):
        return _of_generator(from_spec(spec, settings), name, train, layers)
    if isinstance(target, LabelsOnly):
        return _of_labels(target, name, train, layers, settings)
    if trains(target, settings):
        _refuse_recipe(target, train, layers)
        return TrainingFunction(target, name, dict(settings))
    if _makes_network(spec, target, settings):
        return _network(target, name, train or {}, settings, layers)
    _refuse_recipe(target, train, layers)
    return Estimator(from_spec(spec, settings), name)


def trained_from(spec: str, settings: Mapping[str, Any], weights: str | os.PathLike[str]) -> Any:
    """Make a trained network from the import path of its class or function and the file of its weights."""
    target = imported(spec)
    if not is_network(target) and trains(target, settings):
        raise ValueError(
            f"{spec} trains a network, and weights need what makes one, as --model my_package:make_net, a function "
            f"without arguments. References of your own training loop are trained in Python: ls.audit_model(network, "
            f"members, others, references={spec.rpartition(':')[2]})"
        )
    if not _makes_network(spec, target, settings):
        raise ValueError(f"{spec} makes no network, and weights are those of one")
    return _network_module().weighted(target, settings, weights)


def trained_release(
    model: Any,
    classes: Any = None,
    name: str = "model",
    layers: Layers = (),
    collate: Collate | None = None,
    score: Any = None,
) -> Described:
    """Make a release of one trained model: a fitted estimator, a network, a function, or anything that has a score."""
    if score is not None:
        if classes is not None or layers or collate is not None:
            raise ValueError(
                "classes, layers and collate are of predictions, and a score sees this model: leave them out"
            )
        return ScoredModel(model, Score.of(score), name)
    column_labels = None if classes is None else np.asarray(classes)
    if isinstance(model, LabelsOnly) or _predicts_labels(model):
        return _labels_of_trained(model, classes, name, layers, collate)
    if is_network(model):
        network = import_module("leakbound.releases.networks.network")
        return network.Trained(model, column_labels, name, layers or "all", collate=collate)
    return _answering(model, column_labels, name, layers)


def _answering(model: Any, column_labels: Any, name: str, layers: Layers) -> Described:
    """Make a release of one trained model that is no network: a fitted estimator, or a function that answers."""
    if layers:
        raise ValueError("layers are those of a network of PyTorch; a function that answers shows none")
    if inspect.isclass(model):
        raise ValueError(f"give the fitted model, not the class {model.__name__}")
    if method_of(model) is not None and column_labels is None:
        return FittedEstimator(model, name)
    if not callable(model) and callable(getattr(model, "predict", None)):
        return PretrainedModel(model.predict, column_labels, name)
    if not callable(model):
        raise ValueError(
            f"expected a fitted model or a function from features to probabilities, got a {type(model).__name__}; give "
            f"one, {OR_SCORE}"
        )
    if column_labels is None:
        column_labels = getattr(getattr(model, "__self__", None), "classes_", None)
    return PretrainedModel(model, column_labels, name)


def _of_generator(
    model: Any,
    name: str,
    train: Recipe | Mapping[str, Any] | None,
    layers: Layers,
    settings: Mapping[str, Any] | None = None,
) -> Described:
    """Make a release of the files of a generator."""
    _refuse_recipe(model, train, layers)
    generator = model if isinstance(model, Generator) else Generator(model)
    return SyntheticFiles(generator, name, dict(settings or {}))


def _of_labels(
    hidden: LabelsOnly,
    name: str,
    train: Recipe | Mapping[str, Any] | None,
    layers: Layers,
    settings: Mapping[str, Any] | None,
    collate: Collate | None = None,
) -> Described:
    """Make a release of which the labels alone are seen."""
    model = hidden.model
    fits = callable(getattr(model, "fit", None)) and callable(getattr(model, "get_params", None))
    if fits and not inspect.isclass(model) and not isinstance(model, Described):
        _refuse_recipe(model, train, layers)
        return Estimator(with_parameters(model, settings) if settings else model, name, labels_only=True)
    return ReleasedLabels(release_of(model, name, train, layers, settings, collate))


def _predicts_labels(model: Any) -> bool:
    """Tell whether a function is the ``predict`` of a classifier, whose numbers are labels and no probabilities."""
    owner = getattr(model, "__self__", None)
    return (
        getattr(model, "__name__", "") == "predict"
        and callable(getattr(owner, "fit", None))
        and (not predicts_numbers(owner))
    )


def _labels_of_trained(model: Any, classes: Any, name: str, layers: Layers, collate: Collate | None) -> Described:
    """Make a release of one trained model of which the labels alone are seen."""
    inner = model.model if isinstance(model, LabelsOnly) else model
    if classes is not None:
        raise ValueError("classes are of probabilities; the answers of LabelsOnly are the labels themselves")
    if is_network(inner):
        return ReleasedLabels(trained_release(inner, None, name, layers, collate))
    if layers:
        raise ValueError("layers are those of a network of PyTorch; a function that answers shows none")
    predict = getattr(inner, "predict", inner)
    if not callable(predict):
        raise ValueError(f"expected a fitted classifier or a function from features to labels, got {inner!r}")
    return LabelModel(predict, name)


def _network(
    make: Any,
    name: str,
    train: Recipe | Mapping[str, Any] | None,
    parameters: Mapping[str, Any],
    layers: Layers,
    collate: Collate | None = None,
) -> Any:
    recipe = train if isinstance(train, Recipe) else Recipe.of(train or {})
    if recipe.collate is None and collate is not None:
        recipe = replace(recipe, collate=collate)
    return _network_module().Network(make, recipe, name, dict(parameters), layers or "all")


def _network_module() -> Any:
    """Import the module that needs PyTorch."""
    try:
        return import_module("leakbound.releases.networks.network")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ValueError(TORCH) from None


def _makes_network(spec: str, target: Any, settings: Mapping[str, Any]) -> bool:
    """Tell whether the target is a network's class or a function that makes a network."""
    return is_network(target) or (inspect.isfunction(target) and is_network(_call(spec, target, settings)))


def _call(spec: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Call a function with those settings that it takes; the others are parameters of the estimator that it makes."""
    try:
        known = keywords_of(function)
        return function(**{name: value for name, value in settings.items() if known is None or name in known})
    except Exception as error:  # the function is the user's: it may raise anything
        no_torch = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        raise ValueError(f"{spec}: {TORCH if no_torch else first_line(error)}") from None


def collate_in(train: Recipe | Mapping[str, Any] | None) -> Collate | None:
    """Return the collate function of a recipe; None if it has none."""
    recipe = train if isinstance(train, Recipe) else Recipe.of(train or {})
    return recipe.collate


def _only_collate(function: Any, train: Recipe | Mapping[str, Any] | None, layers: Layers) -> Collate | None:
    """Return the collate function for the networks of a function that trains, which has the rest in itself."""
    collate = collate_in(train)
    has_nothing_else = (
        train == Recipe(collate=collate) if isinstance(train, Recipe) else set(train or {}) <= {"collate"}
    )
    _refuse_recipe(function, None if has_nothing_else else train, layers)
    return collate


def renamed(release: Any, name: str) -> Described:
    """Return a release under another name, which one around another release has from that."""
    changed: dict[str, Any] = {"name": name}
    if isinstance(release, Wrapped):
        changed = {"release": renamed(release.release, name)}
    return cast(Any, replace(release, **changed))


def refuse_without_labels(model: Any, name: str = "") -> None:
    """Refuse a model of which predictions are asked, where there are no labels to compare them with."""
    if isinstance(model, Described) or generates(model):
        return  # it knows itself what it shows, or is seen by its files
    what = name or getattr(model, "__name__", type(model).__name__)
    raise ValueError(f"{what} is asked what it predicts, and there are no labels: give y, {OR_SCORE}")


def _refuse_scored(model: Any, train: Recipe | Mapping[str, Any] | None, layers: Layers) -> None:
    """Refuse what a score does not see: networks that leakbound trains, and releases with signals of their own."""
    if is_network(model) or train or layers:
        raise ValueError(
            "a score sees what a function returns: train the network in one of your own, train(X, y, seed), which "
            "returns it, and leave train (--train) out"
        )
    if isinstance(model, LabelsOnly | Generator) or (isinstance(model, Described) and not isinstance(model, Estimator)):
        raise ValueError(f"a {type(model).__name__} says itself what is seen of it: leave score out")


def _refuse_recipe(model: Any, train: Recipe | Mapping[str, Any] | None, layers: Layers) -> None:
    kind = model if inspect.isclass(model) or inspect.isroutine(model) else type(model)
    if train and trains(model):
        raise ValueError(
            f"train says how a network is trained, and {kind.__name__} does that itself; it takes collate alone, for "
            "the network that it returns"
        )
    if train:
        raise ValueError(f"train says how a network is trained; {kind.__name__} is none, its parameters are set")
    if layers:
        raise ValueError(f"layers are those of a network; {kind.__name__} is none")
