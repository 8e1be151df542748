"""From what a person names, an estimator or a network, to a release."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from leakscope.core.types import Release
from leakscope.releases.estimator import Estimator, Fixed, from_spec
from leakscope.releases.networks.recipe import Recipe
from leakscope.releases.specs import TORCH, first_line, imported, is_network

Layers = str | tuple[str, ...]
OF_TRAINED = {"classes", "name", "layers"}  # words of `trained_release`


@runtime_checkable
class Described(Release, Protocol):
    """A release with a description for people."""

    @property
    def description(self) -> str: ...


def release_of(
    model: Any, name: str = "", train: Recipe | Mapping[str, Any] | None = None, layers: Layers = ()
) -> Described:
    """The release that an object stands for.

    Parameters
    ----------
    model : scikit-learn estimator, class of a network, function that makes a network, or release
    name : str
        What the report calls it.
    train : Recipe or mapping, optional
        How a network is trained.
    layers : "all", "last", a name, or tuple of names
        Of a network: whose gradients are seen; all unless given.

    Returns
    -------
    Described
        A release is returned as it is.

    Raises
    ------
    ValueError
        If it is none of these, PyTorch is needed and not there, or an estimator comes with a recipe.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakscope.releases.making import release_of
    >>> release_of(DecisionTreeClassifier()).name
    'DecisionTreeClassifier'
    """
    if is_network(model) or inspect.isfunction(model):
        return _network(model, name, train, {}, layers)
    _refuse_recipe(model, train, layers)
    return model if isinstance(model, Described) else Estimator(model, name)


def release_from(
    spec: str,
    settings: Mapping[str, Any],
    name: str = "",
    train: Mapping[str, Any] | None = None,
    layers: Layers = (),
) -> Described:
    """The release that an import path leads to.

    Parameters
    ----------
    spec : str
        ``module:name`` of an estimator, a network, or a function that makes one of them.
    settings : mapping
        Parameters of the estimator, or keywords of the function or class that makes the network.
    name, train, layers
        As in `release_of`.

    Returns
    -------
    Described

    Raises
    ------
    ValueError
        In one line, as `release_of`.

    Examples
    --------
    >>> from leakscope.releases.making import release_from
    >>> release_from("sklearn.tree:DecisionTreeClassifier", {"max_depth": 3}).description
    'DecisionTreeClassifier(max_depth=3)'
    """
    found = imported(spec)
    if is_network(found) or (inspect.isfunction(found) and is_network(_called(spec, found, settings))):
        return _network(found, name, train or {}, settings, layers)
    _refuse_recipe(found, train, layers)
    return Estimator(from_spec(spec, settings), name)


def trained_from(spec: str, settings: Mapping[str, Any], weights: str | os.PathLike[str]) -> Any:
    """A trained network from the import path of what makes it and the file of its weights.

    Parameters
    ----------
    spec, settings
        As in `release_from`.
    weights : path
        A file with the state dict.

    Returns
    -------
    nn.Module

    Raises
    ------
    ValueError
        In one line, if the path leads to no network, or the file does not fit.
    """
    found = imported(spec)
    if not (is_network(found) or (inspect.isfunction(found) and is_network(_called(spec, found, settings)))):
        raise ValueError(f"{spec} makes no network, and weights are those of one")
    return _room().weighted(found, settings, weights)


def trained_release(model: Any, classes: Any = None, name: str = "model", layers: Layers = ()) -> Described:
    """One model that is there already: a network of PyTorch, or a function that answers.

    Parameters
    ----------
    model : nn.Module, or callable
        Features of n points in, probabilities of shape (n, K) out; the method of a fitted scikit-learn classifier
        brings its classes along.
    classes : array of shape (K,), optional
        The label of each column.
    name : str
    layers : "all", "last", a name, or tuple of names
        As in `release_of`.

    Returns
    -------
    Described

    Raises
    ------
    ValueError
        If it is neither.
    """
    known = None if classes is None else np.asarray(classes)
    if is_network(model):
        return import_module("leakscope.releases.networks.network").Trained(model, known, name, layers or "all")
    if layers:
        raise ValueError("layers are those of a network of PyTorch; a function that answers shows none")
    if not callable(model):
        raise ValueError(f"predict_proba must be callable, got a {type(model).__name__}")
    owner = getattr(model, "__self__", None)
    return Fixed(model, getattr(owner, "classes_", None) if known is None else known, name)


def _network(
    make: Any, name: str, train: Recipe | Mapping[str, Any] | None, parameters: Mapping[str, Any], layers: Layers
) -> Any:
    recipe = train if isinstance(train, Recipe) else Recipe.of(train or {})
    return _room().Network(make, recipe, name, dict(parameters), layers or "all")


def _room() -> Any:
    """The files that need PyTorch."""
    try:
        return import_module("leakscope.releases.networks.network")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ValueError(TORCH) from None


def _called(spec: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """What a function makes; parameters that it does not take are those of the estimator that it makes."""
    try:
        known = inspect.signature(function).parameters.values()
        takes_all = any(each.kind is each.VAR_KEYWORD for each in known)
        return function(**{name: settings[name] for name in settings if takes_all or name in {k.name for k in known}})
    except Exception as error:  # the function is the user's: it may raise anything
        no_torch = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        raise ValueError(f"{spec}: {TORCH if no_torch else first_line(error)}") from None


def _refuse_recipe(model: Any, train: Recipe | Mapping[str, Any] | None, layers: Layers) -> None:
    kind = model if inspect.isclass(model) or inspect.isroutine(model) else type(model)
    if train:
        raise ValueError(f"train says how a network is trained; {kind.__name__} is none, its parameters are set")
    if layers:
        raise ValueError(f"layers are those of a network; {kind.__name__} is none")
