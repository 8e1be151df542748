"""How often the intervals of all metrics hold the truth, over the range of audits that users meet.

``python -m tests.metrics.coverage [AUDITS]`` prints what docs/coverage.md sums up, setting by setting, and
``python -m tests.metrics.coverage [AUDITS] tied`` the same for tied scores.

A simulated audit has K models that all judge the same 200 records. A score is the noise of a record, N(0, 1), plus the
shift of its model, plus a distance for members. The spread is the standard deviation of the shifts; they are normal, or
exponential with the long tail upwards (``right``) or downwards (``left``). Truths are computed from the distribution
function of a score, by quadrature or bisection, and never from the code under test.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy import stats
from scipy.special import ndtr

from leakbound.core.intervals import Interval
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics import (
    accuracy,
    advantage,
    auc,
    average_precision,
    fpr_at_tpr,
    ppv,
    precision_at_recall,
    tpr_at_fpr,
)

RECORDS = 200


@dataclass(frozen=True)
class Setting:
    """One kind of simulated audit.

    Parameters
    ----------
    shape : {"normal", "right", "left"}
        Of the distribution of shifts.
    spread : float
    n_models : int
    distance : float
        Between members and non-members.
    members : float
        Fraction of the records that are members.
    step : float
        To which scores are rounded, which makes ties; 0 for none.
    difficulty : float
        Standard deviation of what a record adds to its score in every model.
    """

    shape: str
    spread: float
    n_models: int
    distance: float = 1.0
    members: float = 0.5
    step: float = 0.0
    difficulty: float = 0.0


@dataclass
class Count:
    """Intervals of one metric in one setting."""

    audits: int = 0
    refused: int = 0
    covered: int = 0
    widths: list[float] = field(default_factory=list)

    @property
    def given(self) -> int:
        """Audits with an interval."""
        return self.audits - self.refused

    @property
    def wrong(self) -> int:
        """Audits with an interval that misses the truth."""
        return self.given - self.covered

    def add(self, interval: Interval, truth: float) -> None:
        """Count one audit."""
        self.audits += 1
        if interval.refused:
            self.refused += 1
            return
        assert interval.low <= interval.value <= interval.high
        self.covered += interval.low - 1e-12 <= truth <= interval.high + 1e-12
        self.widths.append(interval.high - interval.low)

    def __str__(self) -> str:
        if not self.given:
            return "refused"
        fraction = self.refused / self.audits
        if fraction > 0.9:  # too few are given to speak of their coverage
            return f"refused {100 * fraction:.3g} %, wrong {100 * self.wrong / self.audits:.2g} %"
        refused = f", refused {100 * fraction:.0f} %" if self.refused else ""
        return f"{self.covered / self.given:.3f} ({np.median(self.widths):.2g}{refused})"


def draw(setting: Setting, rng: np.random.Generator) -> tuple[Scores, np.ndarray]:
    """One simulated audit, and the shifts of its models."""
    shape = (setting.n_models, RECORDS)
    standard = {
        "normal": rng.normal(size=(setting.n_models, 1)),
        "right": rng.exponential(size=(setting.n_models, 1)) - 1,
        "left": 1 - rng.exponential(size=(setting.n_models, 1)),
    }[setting.shape]
    shift = setting.spread * standard
    member = np.tile(np.arange(RECORDS) < setting.members * RECORDS, (setting.n_models, 1))
    hard = setting.difficulty * rng.normal(size=RECORDS)
    value = rng.normal(size=shape) + shift + hard + setting.distance * member
    if setting.step:
        value = np.round(value / setting.step) * setting.step
    return Scores("simulated", value, member), shift[:, 0]


def survival(setting: Setting, threshold: np.ndarray | float) -> np.ndarray:
    """Probability that a non-member of a new model scores at least a threshold."""
    cut = np.asarray(threshold) - setting.step / 2
    if setting.spread == 0 or setting.shape == "normal":
        return stats.norm.sf(cut, scale=np.hypot(1, setting.spread))
    skewed = stats.exponnorm(setting.spread, loc=-setting.spread)
    return skewed.sf(cut) if setting.shape == "right" else skewed.cdf(-cut)


def _grid(setting: Setting) -> np.ndarray:
    """Thresholds, ascending: all that there are where scores have ties, else very many."""
    return np.arange(-40, 40, setting.step) if setting.step else np.linspace(-40, 40, 160_001)


@cache
def true_tpr(setting: Setting, fpr: float) -> float:
    """Rate of members at the smallest threshold whose false positive rate is at most fpr, in the population."""
    at = _grid(setting)
    threshold = at[np.argmax(survival(setting, at) <= fpr)]
    return float(survival(setting, threshold - setting.distance))


@cache
def true_success(setting: Setting) -> float:
    """Largest accuracy of one threshold in the population of models, at prior 1/2."""
    at = _grid(setting)
    return float((survival(setting, at - setting.distance) - survival(setting, at)).max() / 2 + 0.5)


def true_tpr_of(setting: Setting, shift: np.ndarray, fpr: float) -> float:
    """The same of models with these shifts, over other records."""
    noise = np.hypot(1, setting.difficulty)

    def above(threshold: float) -> float:
        """Mean over the models of the probability that a non-member scores at least a threshold."""
        return float(ndtr((shift - threshold + setting.step / 2) / noise).mean())

    low, high = shift.min() - 10 * noise, shift.max() + 10 * noise
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > fpr else (low, middle)
    threshold = np.ceil(high / setting.step - 1e-9) * setting.step if setting.step else high
    return above(threshold - setting.distance)


@cache
def true_areas(setting: Setting) -> tuple[float, float]:
    """Mean area under the ROC and mean average precision of 8,000 models, by scikit-learn."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    rng = np.random.default_rng(1)
    scores, _ = draw(replace(setting, n_models=8000), rng)
    member = scores.member[0]
    areas = [roc_auc_score(member, value) for value in scores.value]
    return float(np.mean(areas)), float(np.mean([average_precision_score(member, value) for value in scores.value]))


def _one_model(setting: Setting) -> Setting:
    """What the areas of one model depend on: not on its shift, unless scores are rounded."""
    return setting if setting.step else replace(setting, shape="normal", spread=0.0, n_models=1)


def _tpr(rate: float) -> Callable[[Setting, Scores, np.ndarray], tuple[Interval, float]]:
    return lambda setting, scores, _: (tpr_at_fpr(scores, rate), true_tpr(setting, rate))


def _tpr_of_these(rate: float) -> Callable[[Setting, Scores, np.ndarray], tuple[Interval, float]]:
    return lambda setting, scores, shift: (
        tpr_at_fpr(scores, rate, target="these_models"),
        true_tpr_of(setting, shift, rate),
    )


def _ppv(setting: Setting, scores: Scores, _: np.ndarray) -> tuple[Interval, float]:
    rate = true_tpr(setting, 0.1)
    return ppv(scores, 0.1), rate / (rate + 0.1)


METRICS: Mapping[str, Callable[[Setting, Scores, np.ndarray], tuple[Interval, float]]] = {
    "TPR at 1 %": _tpr(0.01),
    "TPR at 10 %": _tpr(0.1),
    "these models, 1 %": _tpr_of_these(0.01),
    "these models, 10 %": _tpr_of_these(0.1),
    "PPV at 10 %": _ppv,
    "accuracy": lambda setting, scores, _: (accuracy(scores), true_success(setting)),
    "advantage": lambda setting, scores, _: (advantage(scores), 2 * true_success(setting) - 1),
    "AUC": lambda setting, scores, _: (auc(scores), true_areas(_one_model(setting))[0]),
    "average precision": lambda setting, scores, _: (average_precision(scores), true_areas(_one_model(setting))[1]),
}
MAPPED = ("PPV at 10 %", "advantage")  # increasing functions of another row: the same coverage and refusals


def counts(setting: Setting, audits: int, metrics: tuple[str, ...] = tuple(METRICS), seed: int = 0) -> dict[str, Count]:
    """Simulate audits of a setting and count for each metric."""
    rng = np.random.default_rng(seed)
    found = {name: Count() for name in metrics}
    for _ in range(audits):
        scores, shift = draw(setting, rng)
        for name in metrics:
            interval, truth = METRICS[name](setting, scores, shift)
            found[name].add(interval, truth)
    return found


def settings() -> Iterator[Setting]:
    """The range: spreads, numbers of models, skewed shifts, strong leaks, unequal classes, ties."""
    for n_models in (2, 4, 8, 16, 64):
        yield Setting("normal", 0.0, n_models)
    for shape in ("normal", "right"):
        for spread in (0.5, 1.0, 2.0):
            for n_models in (2, 4, 8, 16, 64):
                yield Setting(shape, spread, n_models)
    for n_models in (4, 16):
        yield Setting("left", 1.0, n_models)
    for shape in ("normal", "right"):
        for n_models in (4, 8, 16, 64):
            yield Setting(shape, 1.0, n_models, distance=2.5)
    for n_models in (4, 16):
        yield Setting("right", 0.3, n_models, distance=2.5)
        yield Setting("normal", 1.0, n_models, members=0.2)
        yield Setting("normal", 0.3, n_models, step=0.25)


def print_table(audits: int) -> None:
    """Coverage, median width and refusals, a row a setting."""
    names = [name for name in METRICS if name not in MAPPED]
    print(f"| shifts | spread | models | {' | '.join(names)} |")
    print("|" + "---|" * (3 + len(names)))
    for seed, setting in enumerate(settings()):
        found = counts(setting, audits, tuple(names), seed)
        extra = [f"distance {setting.distance:g}"] if setting.distance != 1 else []
        extra += [f"{100 * setting.members:.0f} % members"] if setting.members != 0.5 else []
        extra += [f"ties, steps of {setting.step:g}"] if setting.step else []
        shape = ", ".join([setting.shape if setting.spread else "none", *extra])
        cells = " | ".join(str(found[name]) for name in names)
        print(f"| {shape} | {setting.spread:g} | {setting.n_models} | {cells} |", flush=True)


@dataclass(frozen=True)
class Tied:
    """An audit of 200 members and 200 others with few different scores, 0, 1, 2, ...

    Parameters
    ----------
    kind : str
    others, members : tuple of float
        Probability of a score of at least 0, 1, 2, ...
    fpr, recall : float
        At which rates are measured.
    side : float
        The rates as multiples of a rate that a threshold has: that threshold keeps the FPR asked for from 1 on.
    n_models : int
    """

    kind: str
    others: tuple[float, ...]
    members: tuple[float, ...]
    fpr: float
    recall: float
    side: float = 1.0
    n_models: int = 1


def _votes(p: float) -> tuple[float, ...]:
    return tuple(stats.binom.sf(np.arange(6) - 1, 5, p))


ROUNDED = np.arange(-6, 7) * 0.7 - 0.35  # least values that are rounded to each multiple of .7
KINDS = {  # others, members, and which of their probabilities are asked for
    "three values": ((1.0, 0.05, 0.001), (1.0, 0.7, 0.2), 1, 1),
    "rounded to .7": (tuple(stats.norm.sf(ROUNDED)), tuple(stats.norm.sf(ROUNDED - 1)), 8, 7),
    "votes of 5": (_votes(0.3), _votes(0.5), 4, 2),
    "labels": ((1.0, 0.3), (1.0, 0.6), 1, 1),
}


def tied_settings() -> Iterator[Tied]:
    """Yield every kind on both sides of a rate that a threshold has, for 1, 4 and 16 models."""
    for kind, (others, members, at, recalled) in KINDS.items():
        for n_models in (1, 4, 16):
            for side in (0.9, 0.98, 1.0, 1.02, 1.1):
                fpr, recall = others[at] * side, members[recalled] * side
                yield Tied(kind, others, members, fpr, min(recall, 0.97), side, n_models)


def draw_tied(setting: Tied, rng: np.random.Generator) -> Scores:
    """One simulated audit: all scores are independent."""
    member = np.tile(np.arange(2 * RECORDS) < RECORDS, (setting.n_models, 1))
    uniform = rng.random(member.shape)

    def scores(survival: tuple[float, ...]) -> np.ndarray:
        return np.searchsorted(-np.array(survival), -uniform, "right") - 1

    return Scores("tied", np.where(member, scores(setting.members), scores(setting.others)).astype(float), member)


def tied_truths(setting: Tied) -> dict[str, float]:
    """Every number by enumeration of the scores."""
    others, members = np.array(setting.others), np.array(setting.members)
    few_enough = np.flatnonzero(others <= setting.fpr + 1e-12)
    tpr = float(members[few_enough[0]]) if len(few_enough) else 0.0
    highest = np.flatnonzero(members >= setting.recall - 1e-12)[-1]
    fpr, recall = float(others[highest]), float(members[highest])
    of_others, of_members = -np.diff(others, append=0), -np.diff(members, append=0)
    below = 1 - others
    return {
        "TPR": tpr,
        "TPR, these models": tpr,
        "PPV": tpr / (tpr + setting.fpr),
        "FPR at TPR": fpr,
        "precision at recall": recall / (recall + fpr),
        "accuracy": float((members - others).max()) / 2 + 0.5,
        "AUC": float(of_members @ (below + of_others / 2)),
        "average precision": _true_average_precision(setting.others, setting.members),
    }


@cache
def _true_average_precision(others: tuple[float, ...], members: tuple[float, ...]) -> float:
    """Mean average precision of 2,000 models, by scikit-learn."""
    from sklearn.metrics import average_precision_score

    scores = draw_tied(Tied("", others, members, 0.5, 0.5, n_models=2000), np.random.default_rng(1))
    rows = zip(scores.member, scores.value, strict=True)
    return float(np.mean([average_precision_score(member, value) for member, value in rows]))


TIED_METRICS: Mapping[str, Callable[[Tied, Scores], Interval]] = {
    "TPR": lambda setting, scores: tpr_at_fpr(scores, setting.fpr),
    "TPR, these models": lambda setting, scores: tpr_at_fpr(scores, setting.fpr, target="these_models"),
    "PPV": lambda setting, scores: ppv(scores, setting.fpr),
    "FPR at TPR": lambda setting, scores: fpr_at_tpr(scores, setting.recall),
    "precision at recall": lambda setting, scores: precision_at_recall(scores, setting.recall),
    "accuracy": lambda _, scores: accuracy(scores),
    "AUC": lambda _, scores: auc(scores),
    "average precision": lambda _, scores: average_precision(scores),
}


def tied_counts(
    setting: Tied, audits: int, metrics: tuple[str, ...] = tuple(TIED_METRICS), seed: int = 0
) -> dict[str, Count]:
    """Simulate audits with tied scores and count for each metric; a rate that no threshold keeps is refused."""
    rng = np.random.default_rng(seed)
    truths = tied_truths(setting)
    found = {name: Count() for name in metrics}
    for _ in range(audits):
        scores = draw_tied(setting, rng)
        for name in metrics:
            try:
                interval = TIED_METRICS[name](setting, scores)
            except NotApplicable:
                interval = Interval(0.0, 0.0, 1.0, 0.95, refused="too_few_models")
            found[name].add(interval, truths[name])
    return found


def print_tied_table(audits: int) -> None:
    """Coverage, median width and refusals, a row a setting."""
    print(f"| scores | rate asked | models | {' | '.join(TIED_METRICS)} |")
    print("|" + "---|" * (3 + len(TIED_METRICS)))
    for seed, setting in enumerate(tied_settings()):
        cells = " | ".join(str(count) for count in tied_counts(setting, audits, seed=seed).values())
        print(f"| {setting.kind} | {setting.side:g} P | {setting.n_models} | {cells} |", flush=True)


if __name__ == "__main__":
    n_audits = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    if "tied" in sys.argv:
        print_tied_table(n_audits)
    else:
        print_table(n_audits)
