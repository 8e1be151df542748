"""Attacks: signals in, scores out; higher = member, always.

``ATTACKS`` is the table of them. A row names a function and does not import it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound.core.checks import one_of
from leakbound.core.signals import SCORES
from leakbound.core.types import NotApplicable, Scores, Signals, WrongScores, finite

if TYPE_CHECKING:
    from leakbound.attacks.moments import Moments, in_moments, out_moments

__all__ = [
    "ATTACKS",
    "DEFAULT",
    "Attack",
    "Moments",
    "find",
    "from_function",
    "in_moments",
    "out_moments",
]
Score = Callable[..., np.ndarray]  # of signals and keywords, to scores of shape (T, J)
_IN_MOMENTS = ("Moments", "in_moments", "out_moments")


def __getattr__(name: str) -> Any:
    """Import the helpers for attacks when they are first used (PEP 562)."""
    if name in _IN_MOMENTS:
        return getattr(import_module(f"{__name__}.moments"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class AttackFailed(ValueError):
    """A function of the user's own raised an error on the signals that it was given."""


@dataclass(frozen=True)
class Attack:
    """A row of the table of attacks.

    Parameters
    ----------
    name : str
        Users ask for it by this name, which holds the parameters that were set: ``"lira(variance=pooled)"``.
    title : str
        As a report prints it.
    function : str or callable
        A function ``(signals, *, parameters) -> array (T, J)``, or its import path, ``"package.module:name"``.
    signals : tuple of str
        The signals to ask of a release: all that the attack can use, alternatives included. Those with an axis of
        queries are there only in an audit with ``queries``.
    source : str
        Key of the bibliography and the equation.
    summary : str
        One line.
    needs_references : bool
        Whether it compares the target with other models.
    needs_population : bool
        Whether it compares with points that are in no model; where there are none, with the target points.
    variance_inflation : float, optional
        With leave one out: the variance of an average over the targets, relative to that over independent targets.
        Where the scores depend on the references, every pair of models meets twice, each as the other's reference, so
        that chance counts twice: 2 for means, somewhat more where variances are estimated. Unless given, 1 without
        references, and with them the largest that was measured of any attack, `UNKNOWN_INFLATION`; that also counts
        where a function of your own compares targets with each other although the game has separate references.
    parameters : mapping
        Keywords of the function.
    by_name : bool
        Whether it was asked for by its name (or given as an object), not as one of a group: then an audit in which it
        cannot run is refused.

    Examples
    --------
    >>> from leakbound.attacks import ATTACKS
    >>> ATTACKS["lira"].with_parameters(variance="pooled").name
    'lira(variance=pooled)'
    """

    name: str
    title: str
    function: str | Score
    signals: tuple[str, ...]
    source: str
    summary: str
    needs_references: bool = False
    needs_population: bool = False
    variance_inflation: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    by_name: bool = field(default=False, compare=False)

    def __call__(self, signals: Signals) -> Scores:
        """Attack the targets at their target points.

        Raises
        ------
        NotApplicable
            If the signals or the references do not suffice, with the reason.
        WrongScores
            In one line, if the function returns no array of numbers, another shape, or NaN or infinite scores.
        AttackFailed
            In one line, with what it was given, if a function of the user's own fails.
        """
        from leakbound.attacks.balance import apart, design_of  # here: ATTACKS is read where nothing is attacked

        function = self.function_of_signals()

        def score(part: Signals) -> np.ndarray:
            try:
                value = function(part, **self.parameters)
            except (NotApplicable, MemoryError):
                raise
            except Exception as error:  # a function of the user's may raise anything; those of this table do not
                if self._is_of_the_table:
                    raise
                raise AttackFailed(_why_it_fails(self.name, part, error)) from error
            return checked(self.name, value, part.game.target_member.shape)

        dependent = design_of(signals) if self.needs_references else None
        if dependent is None:
            value = score(signals)
        else:
            # a function of the user's own may read a signal that it does not name
            value = apart(signals.only(self.signals) if self._is_of_the_table else signals, dependent, score)
        game = signals.game
        variance_inflation = 1.0
        if self.needs_references and (
            game.leave_one_out or (dependent is None and self._compares_targets(signals, score, value))
        ):
            variance_inflation = UNKNOWN_INFLATION if self.variance_inflation is None else self.variance_inflation
        return Scores(self.name, value, game.target_member, self.source, variance_inflation, game.target_points)

    @property
    def _is_of_the_table(self) -> bool:
        """Whether the function is one of leakbound's."""
        return isinstance(self.function, str) and self.function.startswith(f"{_HERE}.")

    def _compares_targets(self, signals: Signals, score: Score, value: np.ndarray) -> bool:
        """Whether the first target's scores change when the other targets are taken away.

        The attacks of the table compare with the references of the game alone; a function of the user's own gets the
        signals of all models, and is tried.
        """
        from leakbound.attacks.balance import one_target

        if self._is_of_the_table or self.variance_inflation is not None:
            return False
        if not 1 < signals.game.n_targets < signals.game.n_models:
            return False
        try:
            alone = score(one_target(signals, 0))
        except ValueError:  # that it does not apply, fails or returns another shape with a single target
            return True
        return not np.allclose(alone[0], value[0], rtol=1e-3, atol=1e-6 * float(np.abs(value).max(initial=0.0)))

    def with_parameters(self, **parameters: float | str) -> Attack:
        """Set parameters of the attack; its name lists them.

        Parameters
        ----------
        **parameters
            Keywords of the attack's function: ``temperature=1.0`` of mast and matt; ``variance="shrunk"`` of lira,
            lira_offline and label_only_lira; ``gamma=1.0`` of rmia and rmia_offline; ``vote="mean"`` of rmia and
            rmia_offline; ``a=None`` of rmia_offline, a number from 0 to 1 or None: the references choose it;
            ``references=None`` of quantile, a number or None: all; ``rate=1.0`` of likelihood_ratio; ``signal=None``
            of mast, lira, lira_offline, rmia and rmia_offline: a name of ``leakbound.core.signals.SCORES``, the one
            signal that is then read. The others have none; a user-defined attack has those of its function.

        Returns
        -------
        Attack
            The attack with these parameters, and those that were set before.

        Raises
        ------
        ValueError
            If the function has no parameter of that name.
        """
        known = [
            p.name
            for p in inspect.signature(self.function_of_signals()).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        ]
        for name in parameters:
            if not known:
                raise ValueError(f"the attack {self.name} has no parameters, got {name!r}")
            one_of(f"parameter of {self.name}", name, known)
        merged = dict(sorted({**self.parameters, **parameters}.items()))
        base = self.name.partition("(")[0]
        listed = ", ".join(f"{name}={value}" for name, value in merged.items())
        signals = (str(merged["signal"]),) if merged.get("signal") else self.signals
        title = self.title
        if base in ATTACKS and parameters.get("signal") in ATTACKS:  # one attack on two scores is two rows of a page
            title = f"{ATTACKS[base].title}, {ATTACKS[str(parameters['signal'])].title.lower()}"
        name = f"{base}({listed})" if merged else base
        return replace(self, name=name, title=title, signals=signals, parameters=merged)

    def function_of_signals(self) -> Score:
        """Return the function, imported where it is named by its path."""
        if not isinstance(self.function, str):
            return self.function
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)


_HERE = "leakbound.attacks"
# Of an attack of which nobody has measured it: the largest that was measured of any, that of mast_threshold.
UNKNOWN_INFLATION = 4.5
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
        ("loss", "score"),
        "sablayrolles2019, eq. 29-30, corrected",
        "The loss against the soft minimum over models without the point.",
        needs_references=True,
        variance_inflation=1.0,  # as measured on noise
    ),
    Attack(
        "mast_threshold",
        "MAST (best threshold)",
        f"{_HERE}.mast:mast_threshold",
        ("loss",),
        "sablayrolles2019, Section 6.3",
        "The loss against the value that best separates models with and without the point.",
        needs_references=True,
        variance_inflation=UNKNOWN_INFLATION,  # as measured on noise: a best threshold jumps where a mean moves
    ),
    Attack(
        "lira",
        "LiRA",
        f"{_HERE}.lira:lira",
        ("log_odds", "loss", "query_log_odds", "query_loss", "score"),
        "carlini2022, Algorithm 1",
        "Likelihood ratio of two Gaussians, with and without the point.",
        needs_references=True,
        variance_inflation=3.0,  # as measured on noise, with any of its variances
    ),
    Attack(
        "lira_offline",
        "LiRA (offline)",
        f"{_HERE}.lira:lira_offline",
        ("log_odds", "loss", "query_log_odds", "query_loss", "score"),
        "carlini2022, eq. 4",
        "How unlikely so good a prediction is for models without the point.",
        needs_references=True,
        variance_inflation=1.0,  # as measured on noise
    ),
    Attack(
        "rmia",
        "RMIA",
        f"{_HERE}.rmia:rmia",
        ("loss", "query_loss", "score"),
        "zarifzadeh2024, RMIA score",
        "The fraction of the population whose likelihood ratio is smaller than that of the point.",
        needs_references=True,
        needs_population=True,
        variance_inflation=1.0,  # as measured on noise
    ),
    Attack(
        "rmia_offline",
        "RMIA (offline)",
        f"{_HERE}.rmia:rmia_offline",
        ("loss", "query_loss", "score"),
        "zarifzadeh2024, offline RMIA",
        "RMIA from models without the point alone.",
        needs_references=True,
        needs_population=True,
        variance_inflation=1.2,  # as measured on noise: models choose each other's slope
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
        ("log_odds", "loss", "query_log_odds", "query_loss"),
        "bertran2023, Gaussian form",
        "The prediction against those at unseen points that another model finds equally hard.",
        needs_references=True,
        needs_population=True,
        variance_inflation=1.0,  # as measured on noise
    ),
    Attack(
        "label_only",
        "Label only",
        f"{_HERE}.label_only:label_only",
        ("query_correct",),
        "choquette2021",
        "For how many versions of the record the label is right.",
    ),
    Attack(
        "label_only_lira",
        "Label only (LiRA)",
        f"{_HERE}.label_only:label_only_lira",
        ("query_correct",),
        "choquette2021; carlini2022, Algorithm 1",
        "The number of versions whose label is right, against models with and without the record.",
        needs_references=True,
        variance_inflation=3.0,  # as measured on noise, with 8 queries
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
    Attack(
        "score",
        "Score",
        f"{_HERE}.threshold:given_score",
        ("score",),
        "given by the user",
        "The score, one threshold for all points.",
        parameters={"signal": "score"},
    ),
    Attack(
        "matches",
        "Match",
        f"{_HERE}.threshold:given_score",
        ("matches",),
        "yao2025, with controls",
        "Whether a published row is equal to the point.",
        parameters={"signal": "matches"},
    ),
    Attack(
        "nearest",
        "Nearest row",
        f"{_HERE}.threshold:given_score",
        ("nearest",),
        "yao2025",
        "The distance to the nearest published row.",
        parameters={"signal": "nearest"},
    ),
    Attack(
        "nearest5",
        "Five nearest rows",
        f"{_HERE}.threshold:given_score",
        ("nearest5",),
        "yao2025, of five rows",
        "The mean distance to the five nearest published rows.",
        parameters={"signal": "nearest5"},
    ),
    Attack(
        "density_ratio",
        "Density ratio (DOMIAS)",
        f"{_HERE}.threshold:given_score",
        ("density_ratio",),
        "vanbreugel2023",
        "The density of the published rows at the point, against that of reference rows.",
        parameters={"signal": "density_ratio"},
    ),
    Attack(
        "gen_lra",
        "Gen-LRA",
        f"{_HERE}.threshold:given_score",
        ("gen_lra",),
        "ward2025",
        "How much better the published rows near the point are explained with it.",
        parameters={"signal": "gen_lra"},
    ),
)
ATTACKS: Mapping[str, Attack] = MappingProxyType({row.name: row for row in _ROWS})
# of the files of a generator, beside the thresholds: with the normal scores of ranks lira is the weakest of them
OF_FILES = tuple((row, signal) for row in ("mast", "rmia", "lira") for signal in ("nearest", "nearest5"))
DEFAULT = ("gap", "confidence", "loss", "entropy", "mast", "lira", "rmia")


# Signals that every classifier gives: what a function gets that does not say what it needs.
_USUAL_SIGNALS = ("correct", "log_odds", "log_prob", "loss")


def from_function(
    function: Score,
    *,
    name: str = "",
    title: str = "",
    signals: Sequence[str] = _USUAL_SIGNALS,
    source: str = "given by the user",
    needs_references: bool = True,
    needs_population: bool = False,
    variance_inflation: float | None = None,
) -> Attack:
    """Make an attack of a function of your own, which an audit takes like an attack of the table.

    An audit does this by itself where it gets a function: ``ls.audit(..., attacks=["lira", my_function])``.

    Parameters
    ----------
    function : callable
        From ``Signals`` to scores of shape (T, J), higher = member. Its keywords are the parameters of the attack.
    name : str
        The name of the function unless given.
    title : str
        As a report prints it; the name unless given.
    signals : sequence of str
        What to ask of a release: by default what every classifier gives.
    source : str
        Where the score is defined.
    needs_references : bool
        Whether the score of a target depends on other models. If it does not, intervals are narrower.
    needs_population : bool
        Whether it compares with points that are in no model, which the audit then sets aside.
    variance_inflation : float, optional
        As in `Attack`. Unless given, the largest that was measured of any attack with references, which is safe: it
        counts where all models are attacked, each with the others as its references, and where a game has separate
        references but the score of one target changes when the other targets are taken away, which is tried.

    Returns
    -------
    Attack
        Under the name of the function, with the first line of its docstring as its summary.

    Raises
    ------
    ValueError
        In one line: for what is no function, or has no name of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> def negative_loss(signals):
    ...     return -signals.targets("loss")
    >>> game = ls.Game("signals", np.array([[True, False]]), np.array([True, True]), 1)
    >>> attack = ls.attacks.from_function(negative_loss, needs_references=False)
    >>> attack.name, attack(ls.Signals(game, None, {"loss": np.array([[0.5, 2.0]])})).value.tolist()
    ('negative_loss', [[-0.5, -2.0]])
    """
    if not callable(function):
        raise ValueError(f"expected the name of an attack or a function of signals, got a {type(function).__name__}")
    own_name = name or getattr(function, "__name__", "")
    if not own_name or own_name == "<lambda>":
        raise ValueError(
            "an attack needs a name: define it by def, or use ls.attacks.from_function(function, name=...)"
        )
    if own_name in ATTACKS:
        raise ValueError(f"{own_name!r} is an attack of leakbound; give your own another name")
    return Attack(
        own_name,
        title or own_name,
        function,
        tuple(signals),
        source,
        (inspect.getdoc(function) or "").partition("\n")[0],
        needs_references,
        needs_population,
        variance_inflation,
    )


def find(
    attacks: str | Attack | Score | Iterable[str | Attack | Score], given: Collection[str] = ()
) -> tuple[Attack, ...]:
    """List the attacks that are asked for, each once, in the order of their first mention.

    Parameters
    ----------
    attacks : str, Attack, callable, or iterable of them
        Names of ``ATTACKS``, ``"default"``, ``"all"``, attacks with parameters of their own, or functions: see
        `from_function`.
    given : collection of str
        Signals, where they are scores or little else: ``"default"`` and ``"all"`` are then those that read them.

    Returns
    -------
    tuple of Attack
        Those that were named, or given as objects, have ``by_name`` set.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one, for none at all, and for two functions of one name.

    Examples
    --------
    >>> from leakbound.attacks import find
    >>> [attack.name for attack in find(["lira", "gap", "lira"])]
    ['lira', 'gap']
    >>> [attack.name for attack in find("default", ["score"])]
    ['score', 'mast', 'lira', 'rmia']
    """
    by_their_names: dict[str, Attack] = {}
    for item in listed(attacks):
        by_name = isinstance(item, Attack) or item in ATTACKS
        for attack in [item] if isinstance(item, Attack) else _of_name(item, given):
            known = by_their_names.get(attack.name, attack)
            if known.function != attack.function:
                raise ValueError(f"two attacks have the name {attack.name!r}; give each a name of its own")
            by_their_names[attack.name] = replace(known, by_name=known.by_name or by_name)
    if not by_their_names:
        raise ValueError("no attack is asked for; 'default' asks for the usual ones")
    return tuple(by_their_names.values())


def listed(attacks: str | Attack | Score | Iterable[str | Attack | Score]) -> list[str | Attack]:
    """List what is asked for; a function becomes an attack.

    >>> listed("lira")
    ['lira']
    """
    items = [attacks] if isinstance(attacks, (str, Attack)) or callable(attacks) else attacks
    return [item if isinstance(item, (str, Attack)) else from_function(item) for item in items]


def checked(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Check what the function of an attack returns.

    >>> checked("mine", np.zeros((1, 2), dtype=int), (1, 2)).tolist()
    [[0.0, 0.0]]
    """
    expected = f"expected {shape}: a score for each of {shape[0]:,} attacked models and {shape[1]:,} target points"
    if not isinstance(value, np.ndarray):
        raise WrongScores(f"attack {name!r} returned a {type(value).__name__}, {expected}, as an array of numbers")
    if value.shape != shape:
        raise WrongScores(f"attack {name!r} returned an array of shape {value.shape}, {expected}, higher = member")
    if value.dtype.kind not in "biuf":
        raise WrongScores(f"attack {name!r} returned an array of {value.dtype}, {expected}, as numbers")
    if not finite(value):
        n_bad = int(value.size - np.isfinite(value).sum())
        raise WrongScores(
            f"attack {name!r} returned {n_bad:,} NaN or infinite scores of {value.size:,}, in an array of shape "
            f"{value.shape}; expected finite numbers: give a point that says nothing the score of a guess"
        )
    return value if value.dtype.kind == "f" else value.astype(np.float64)


def _why_it_fails(name: str, signals: Signals, error: Exception) -> str:
    """Name the attack, its error, and the shapes of what it was given."""
    message = (str(error).strip().splitlines() or [""])[0]
    n_targets, n_target_points = signals.game.target_member.shape
    n_models, n_points = signals.game.member.shape
    shapes = ", ".join(f"{signal} {array.shape}" for signal, array in signals.arrays.items())
    return (
        f"attack {name!r} fails with {type(error).__name__}{': ' if message else ''}{message}; it was given "
        f"{shapes or 'no signals'}, of {n_models:,} models and {n_points:,} points, and scores {n_targets:,} attacked "
        f"models at {n_target_points:,} target points"
    )


def _of_name(name: str, given: Collection[str]) -> list[Attack]:
    """Return the attack, or the group of attacks, of this name."""
    predicted = [row for row in ATTACKS if row not in SCORES]
    groups = {"default": [ATTACKS[row] for row in DEFAULT], "all": [ATTACKS[row] for row in predicted]}
    if name not in groups:
        return [ATTACKS[one_of("attack", name, [*ATTACKS, *groups])]]
    if not given:
        return groups[name]
    scores = [ATTACKS[signal] for signal in SCORES if signal in given]
    if "nearest" in given:
        return scores + [ATTACKS[row].with_parameters(signal=signal) for row, signal in OF_FILES]
    return scores + [attack for attack in groups[name] if set(attack.signals) & set(given)]
