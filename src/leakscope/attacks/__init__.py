"""Attacks: signals in, scores out; higher = member, always.

``ATTACKS`` is the table of them. A row names a function and does not import it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from leakscope.core.checks import one_of
from leakscope.core.types import Scores, Signals


@dataclass(frozen=True)
class Attack:
    """A row of the table of attacks.

    Parameters
    ----------
    name : str
        Users ask for it by this name, which holds the parameters that were set: ``"lira(variance=pooled)"``.
    title : str
        As a report prints it.
    function : str
        Import path, ``"package.module:name"``, of a function ``(signals, *, parameters) -> array (T, J)``.
    signals : tuple of str
        The signals to ask of a release: all that the attack can use, alternatives included.
    source : str
        Key of the bibliography and the equation.
    summary : str
        One line.
    needs_references : bool
        Whether it compares the target with other models.
    needs_population : bool
        Whether it compares with points that are in no model; where there are none, with the target points.
    variance_inflation : float
        With leave one out: the variance of an average over the targets, relative to that over independent targets.
        Where the scores depend on the references, every pair of models meets twice, each as the other's reference, so
        that chance counts twice: 2 for means, somewhat more where variances are estimated.
    parameters : mapping
        Keywords of the function.
    by_name : bool
        Whether it was asked for by its name (or given as an object), not as one of a group: then an audit in which it
        cannot run is refused.

    Examples
    --------
    >>> from leakscope.attacks import ATTACKS
    >>> ATTACKS["lira"].with_parameters(variance="pooled").name
    'lira(variance=pooled)'
    """

    name: str
    title: str
    function: str
    signals: tuple[str, ...]
    source: str
    summary: str
    needs_references: bool = False
    needs_population: bool = False
    variance_inflation: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    by_name: bool = field(default=False, compare=False)

    def __call__(self, signals: Signals) -> Scores:
        """Attack the targets at their target points.

        Raises
        ------
        NotApplicable
            If the signals or the references do not suffice, with the reason.
        """
        from leakscope.attacks.balance import apart, design_of  # here, for the table imports no attack

        function = self._function()

        def score(part: Signals) -> np.ndarray:
            return function(part, **self.parameters)

        dependent = design_of(signals) if self.needs_references else None
        if dependent is None:
            value = score(signals)
        else:
            value = apart(signals.only(self.signals), dependent, score)
        variance_inflation = self.variance_inflation if self.needs_references and signals.game.leave_one_out else 1.0
        return Scores(self.name, value, signals.game.target_member, self.source, variance_inflation)

    def with_parameters(self, **parameters: float | str) -> Attack:
        """Set parameters of the attack; its name lists them.

        Parameters
        ----------
        **parameters
            Keywords of the attack's function: ``temperature=1.0`` of mast; ``variance="shrunk"`` of lira and
            lira_offline; ``gamma=1.0`` of rmia and rmia_offline; ``a=0.3`` of rmia_offline; ``references=1`` of
            quantile; ``rate=1.0`` of likelihood_ratio. The others have none; a user-defined attack has those of its
            function.

        Returns
        -------
        Attack
            The attack with these parameters, and those that were set before.

        Raises
        ------
        ValueError
            If the function has no parameter of that name.
        """
        known = [p.name for p in inspect.signature(self._function()).parameters.values() if p.kind is p.KEYWORD_ONLY]
        for name in parameters:
            if not known:
                raise ValueError(f"the attack {self.name} has no parameters, got {name!r}")
            one_of(f"parameter of {self.name}", name, known)
        merged = dict(sorted({**self.parameters, **parameters}.items()))
        base = self.name.partition("(")[0]
        listed = ", ".join(f"{name}={value}" for name, value in merged.items())
        return replace(self, name=f"{base}({listed})" if merged else base, parameters=merged)

    def _function(self) -> Callable[..., np.ndarray]:
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)


_HERE = "leakscope.attacks"
_ROWS = (
    Attack(
        "gap",
        "Gap (0-1)",
        f"{_HERE}.threshold:gap",
        ("correct",),
        "yeom2018, Adversary 1",
        "Whether the model classifies the point correctly.",
    ),
    Attack(
        "confidence",
        "Confidence",
        f"{_HERE}.threshold:confidence",
        ("log_prob",),
        "delgrosso2021, Algorithm 2",
        "The largest class probability.",
    ),
    Attack(
        "loss",
        "Loss (MALT)",
        f"{_HERE}.threshold:loss",
        ("loss",),
        "sablayrolles2019, eq. 31; yeom2018, Adversary 2",
        "The loss, one threshold for all points.",
    ),
    Attack(
        "entropy",
        "Modified entropy",
        f"{_HERE}.threshold:modified_entropy",
        ("log_prob",),
        "song2021, Mentr",
        "The entropy of the prediction, which also uses the true label.",
    ),
    Attack(
        "mast",
        "MAST",
        f"{_HERE}.mast:mast",
        ("loss",),
        "sablayrolles2019, eq. 29-30, corrected",
        "The loss against the soft minimum over models without the point.",
        needs_references=True,
    ),
    Attack(
        "mast_threshold",
        "MAST (best threshold)",
        f"{_HERE}.mast:mast_threshold",
        ("loss",),
        "sablayrolles2019, Section 6.3",
        "The loss against the value that best separates models with and without the point.",
        needs_references=True,
        variance_inflation=4.5,  # as measured on noise: a best threshold jumps where a mean moves
    ),
    Attack(
        "lira",
        "LiRA",
        f"{_HERE}.lira:lira",
        ("log_odds", "loss"),
        "carlini2022, Algorithm 1",
        "Likelihood ratio of two Gaussians, with and without the point.",
        needs_references=True,
        variance_inflation=3.0,  # as measured on noise, with any of its variances
    ),
    Attack(
        "lira_offline",
        "LiRA (offline)",
        f"{_HERE}.lira:lira_offline",
        ("log_odds", "loss"),
        "carlini2022, eq. 4",
        "How unlikely so good a prediction is for models without the point.",
        needs_references=True,
    ),
    Attack(
        "rmia",
        "RMIA",
        f"{_HERE}.rmia:rmia",
        ("loss",),
        "zarifzadeh2024, RMIA score",
        "The fraction of the population whose likelihood ratio is smaller than that of the point.",
        needs_references=True,
        needs_population=True,
    ),
    Attack(
        "rmia_offline",
        "RMIA (offline)",
        f"{_HERE}.rmia:rmia_offline",
        ("loss",),
        "zarifzadeh2024, offline RMIA",
        "RMIA from models without the point alone.",
        needs_references=True,
        needs_population=True,
    ),
    Attack(
        "shadow",
        "Shadow classifier",
        f"{_HERE}.shadow:shadow",
        ("log_odds", "loss", "correct", "log_prob"),
        "shokri2017, Section V; salem2019, Section IV",
        "A classifier of membership, trained on the reference models.",
        needs_references=True,
        variance_inflation=3.0,  # as measured on noise
    ),
    Attack(
        "likelihood_ratio",
        "Likelihood ratio",
        f"{_HERE}.statistic:likelihood_ratio",
        ("step_dot", "step_norm"),
        "azize2024, eq. 10, and Algorithm 7, corrected",
        "The likelihood of what was released, with the point against without it.",
    ),
    Attack(
        "scalar_product",
        "Scalar product",
        f"{_HERE}.statistic:scalar_product",
        ("dot",),
        "homer2008; dwork2015; azize2024, Section 3",
        "How far the released vector points towards the record.",
    ),
    Attack(
        "quantile",
        "Quantile regression",
        f"{_HERE}.quantile:quantile",
        ("log_odds", "loss"),
        "bertran2023, Gaussian form",
        "The prediction against those at unseen points that another model finds equally hard.",
        needs_references=True,
        needs_population=True,
    ),
    Attack(
        "gradient_norm",
        "Gradient norm",
        f"{_HERE}.whitebox:gradient_norm",
        ("gradient_norm",),
        "nasr2019, Section III; delgrosso2021, Section 5",
        "Minus the norm of the gradient of the loss at the point.",
    ),
    Attack(
        "matt",
        "MATT",
        f"{_HERE}.whitebox:matt",
        ("taylor",),
        "sablayrolles2019, eq. 40, with the second term",
        "How far the parameters have moved along the point's gradient.",
    ),
    Attack(
        "glir",
        "GLiR",
        f"{_HERE}.whitebox:glir",
        ("step_dot", "step_norm"),
        "leemann2023, gradient likelihood ratio, along the gradient",
        "How improbable every step is without the point.",
    ),
)
ATTACKS: Mapping[str, Attack] = MappingProxyType({row.name: row for row in _ROWS})
DEFAULT = ("gap", "confidence", "loss", "entropy", "mast", "lira", "rmia")


def find(attacks: str | Attack | Iterable[str | Attack]) -> tuple[Attack, ...]:
    """List the attacks that are asked for, each once, in the order of their first mention.

    Parameters
    ----------
    attacks : str, Attack, or iterable of them
        Names of ``ATTACKS``, ``"default"``, ``"all"``, or attacks with parameters of their own.

    Returns
    -------
    tuple of Attack
        Those that were named, or given as objects, have ``by_name`` set.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one, and for none at all.

    Examples
    --------
    >>> from leakscope.attacks import find
    >>> [attack.name for attack in find(["lira", "gap", "lira"])]
    ['lira', 'gap']
    """
    items = [attacks] if isinstance(attacks, (str, Attack)) else attacks
    by_their_names: dict[str, Attack] = {}
    for item in items:
        by_name = isinstance(item, Attack) or item in ATTACKS
        for attack in [item] if isinstance(item, Attack) else _of_name(item):
            known = by_their_names.get(attack.name, attack)
            by_their_names[attack.name] = replace(known, by_name=known.by_name or by_name)
    if not by_their_names:
        raise ValueError("no attack is asked for; 'default' asks for the usual ones")
    return tuple(by_their_names.values())


def _of_name(name: str) -> list[Attack]:
    """Return the attack, or the group of attacks, of this name."""
    groups = {"default": DEFAULT, "all": tuple(ATTACKS)}
    if name in groups:
        return [ATTACKS[row] for row in groups[name]]
    return [ATTACKS[one_of("attack", name, [*ATTACKS, *groups])]]
