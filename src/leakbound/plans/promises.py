"""What a release promises: to anyone, to the records of this file, or about which of them were drawn.

Each promise has the fields that it alone knows. What two of them have in common has the same name in both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, field, fields
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from leakbound.core.checks import one_of
from leakbound.plans.bounds import Scales
from leakbound.plans.choices import choice, choose
from leakbound.plans.limits import Limit
from leakbound.plans.plan import Inside, Names, columns

Design = Literal["dp", "leave-one-out", "half"]  # how a promise is kept, as ledgers and reports name it
PromiseName = Literal["anyone", "file", "drawn"]
Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]
GAUSSIAN = ("gaussian", "gaussian_diagonal", "gaussian_isotropic")
NOISES = (*GAUSSIAN, "laplace", "norm", "ball")
Seed = Annotated[int, Field(ge=0)]
Games = Annotated[int, Field(ge=0)]
Number = int | float  # as it was given: what a ledger remembers of a range are its digits


def _range(name: str, ends: Any) -> tuple[Number, Number]:
    """Read the least and the largest value of a column, as ``"0:80"`` or ``(0, 80)``."""
    parts = ends.split(":") if isinstance(ends, str) else ends
    try:
        low, high = (_number(part) for part in parts)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not name or not (math.isfinite(low) and math.isfinite(high) and low < high):
        shown = ends if isinstance(ends, str) else repr(ends)
        raise ValueError(f"a range is a column with its least and its largest value, as wage=0:80; got {name}={shown}")
    return low, high


def _number(part: Any) -> Number:
    if not isinstance(part, str):
        return part if isinstance(part, int) else float(part)
    return int(part) if part.strip().isdigit() else float(part)


def ranges_of(given: Any) -> Any:
    """Read ranges: a mapping of columns to their ends, or texts as ``"wage=0:80"``."""
    if isinstance(given, Mapping):
        return {name: _range(str(name), ends) for name, ends in given.items()}
    ranges: dict[str, tuple[Number, Number]] = {}
    for text in columns(given):
        name, _, ends = text.rpartition("=")
        if name in ranges:
            raise ValueError(f"the range of {name} is given twice")
        ranges[name] = _range(name, ends)
    return ranges


def _limits(limits: tuple[str, ...]) -> tuple[str, ...]:
    rates = []
    for text in limits:
        limit = Limit.parse(text, "at_most", ("tpr",))
        rates.append(limit.fpr or 0.0)
        if limit.limit <= rates[-1]:
            raise ValueError(
                f"at_most {text}: a guess by chance is right as often at {rates[-1]:g} false positives; give a "
                "larger limit"
            )
    if len(set(rates)) < len(rates):
        raise ValueError(f"at_most has two limits at one rate: {', '.join(limits)}")
    return limits


def _family(noise: Any) -> Any:
    if not isinstance(noise, str) or "(" in noise:  # a noise as it is, from Python, or what a page says of one
        return noise
    return one_of("noise", noise, NOISES)


@choice
class Anyone:
    """Differential privacy: nobody can tell whether somebody's record is in the file, whatever the file holds.

    Parameters
    ----------
    ranges : mapping of str to (float, float)
        The least and the largest value of each column that is used, declared and not taken from the file, as
        ``{"wage": (0, 80)}``. Values outside are moved to the nearer end.
    others : tuple of str
        Columns of a table or of groups with one more level, called others: it takes every value without a level of
        its own, and missing ones. With one for every column the counts of a table add up to n.
    delta : float
        At which epsilon is printed.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Anyone(ranges={"wage": (0, 80)})
    Anyone(ranges={'wage': (0, 80)}, others=(), delta=1e-05)
    """

    ranges: Annotated[dict[str, tuple[Number, Number]], BeforeValidator(ranges_of)] = field(default_factory=dict)
    _: KW_ONLY
    others: Annotated[tuple[str, ...], BeforeValidator(columns)] = ()
    delta: Inside = 1e-5

    design: ClassVar[Design] = "dp"
    seed: ClassVar[int] = 0  # nothing is simulated
    confidence: ClassVar[float] = 0.95


@choice
class File:
    """Nobody who knows all other records of this file can tell whether a given one was left out of it.

    Parameters
    ----------
    noise : {"gaussian", "gaussian_diagonal", "gaussian_isotropic"}
        Family and shape of the noise.
    scale : float or tuple of float, optional
        Scale of the noise, declared before looking at the data, or one for each number. It is refused unless it
        keeps the promise. The least that does unless given.
    allow_exact : bool
        Release numbers exactly that are the same whoever is left out, or for so many of them that the promise needs
        no noise. What they tell of the file is outside of the promise.
    at_most : str or tuple of str
        Limits, declared beforehand, on how often the record left out is recognised, as ``"tpr@0.001=0.003"``: in at
        most 0.3 % of cases at 0.1 % false positives. The noise keeps them as well.
    games : int
        Simulated releases on which the best attack is tried; 0 for none.
    confidence : float
        Of the interval of that attack.
    seed : int
        Of the simulated releases and of a function with an argument rng, never of a real release.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.File(at_most="tpr@0.001=0.003").limits
    {0.001: 0.003}
    """

    noise: Literal["gaussian", "gaussian_diagonal", "gaussian_isotropic"] = "gaussian"
    scale: Scales | None = None
    _: KW_ONLY
    allow_exact: bool = False
    at_most: Annotated[Names, AfterValidator(_limits)] = ()
    games: Games = 2000
    confidence: Inside = 0.95
    seed: Seed = 0

    design: ClassVar[Design] = "leave-one-out"

    @property
    def limits(self) -> dict[float, float]:
        """The largest true positive rate that is allowed, by false positive rate."""
        parsed = [Limit.parse(text, "at_most", ("tpr",)) for text in self.at_most]
        return {limit.fpr or 0.0: limit.limit for limit in parsed}


@choice
class Drawn:
    """Nobody can tell whether a given record is among the k of the n records that were drawn.

    Parameters
    ----------
    k : int, optional
        Records that are drawn; half of all unless given.
    about : {"every", "average"}
        The promise is to every record, or to a record drawn at random.
    noise : str, Noise or callable
        One of gaussian, gaussian_diagonal, gaussian_isotropic, laplace, norm, ball; or from Python a noise as it is,
        which is refused unless it keeps the promise, or the noise of each scale.
    scale : float or tuple of float, optional
        As of `File`.
    coupling : {"auto", "swap", "mixture_swap", "complement", "average_swap"}
        The proof of the promise.
    fits : int
        Fits of the statistic that the calibration may take.
    games : int
        Simulated releases on which the best attack is tried; 0 for none.
    delta : float
        Of the epsilon of practical membership privacy.
    confidence : float
        Of a certificate from sampled pairs.
    seed : int
        Of the pairs and the simulated releases, never of a real one.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Drawn(100, games=0).k
    100
    """

    k: Annotated[int, Field(ge=1)] | None = None
    about: Literal["every", "average"] = "every"
    _: KW_ONLY
    noise: Annotated[Any, AfterValidator(_family)] = "gaussian"
    scale: Scales | None = None
    coupling: Coupling = "auto"
    fits: Annotated[int, Field(ge=2)] = 2000
    games: Games = 2000
    delta: Inside = 1e-5
    confidence: Inside = 0.95
    seed: Seed = 0

    design: ClassVar[Design] = "half"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.about == "every" and self.coupling == "average_swap":
            raise ValueError("coupling average_swap promises nothing to every record; it needs about = average")
        if self.scale is not None and self.noise not in NOISES:
            raise ValueError(f"scale is that of a noise by name ({', '.join(NOISES)})")
        return self


Promise = Anyone | File | Drawn
PROMISES: tuple[type[Promise], ...] = (Anyone, File, Drawn)
PROMISE_OF: Mapping[str, type[Promise]] = {kind.design: kind for kind in PROMISES}
NAME_OF: Mapping[str, PromiseName] = {"dp": "anyone", "leave-one-out": "file", "half": "drawn"}
P = TypeVar("P", bound=Promise)


def as_promise(value: Any) -> Promise:
    """Read a promise: an object, its name, ``"drawn,k=100"``, or a table."""
    return choose(PROMISES, value, "promise")


def promise_like(kind: type[P], promise: Promise | None) -> P:
    """Return a promise of another kind with the fields that both have."""
    if promise is None:
        return kind()
    common = {each.name for each in fields(kind)} & {each.name for each in fields(promise)}  # pyright: ignore[reportArgumentType] -- choices are dataclasses
    return kind(**{name: getattr(promise, name) for name in common})
