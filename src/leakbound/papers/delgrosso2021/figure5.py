"""Figure 5: a network that reads digits, asked who wrote them.

PenDigits, with the writer (one of 44, one-hot) among the inputs. The attacker knows a training record but for its
writer, tries all 44 and answers with the one that the network likes best (eq. 36 to 39). Below, the likelihood attack
on membership with the lower bound of Theorem 2, as in Figure 4.

A right answer is no leak if it can be had without the network. The four strategies are shown with two guesses that
never see it: the most frequent writer among n records that are not in the training set (as many as are left, where
these are fewer), and that of a random forest that has learned from these to tell the writer from strokes and digit.

Not printed: the batch, here that of Appendix A.1 (200, or the whole set where that is smaller); the scale of the
coordinates, here 0 to 1 over both of a digit together, as in the paper's published code.

With the setting ``code`` the networks of the attribute attacks are trained as in that code: batches of 50, at most 150
epochs, a stop at a change of 1e-5, and ten of the n records are kept aside, so that at n = 100 the attacked records are
the 90 others. (Its likelihood and accuracy strategies compare outputs before the soft-max; ours compare probabilities
in both settings.) Membership is not attacked there: the code does that with networks of another stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import data, figures
from leakbound.papers.delgrosso2021 import gap
from leakbound.papers.lab import TEXT, Lab, Outcome, mean_of, trials_of
from leakbound.papers.printed import Ours, all_above

WRITERS, DIGITS = 44, 10
ATTACKED = 100  # training records of each network
FULL = dict.fromkeys((100, 200, 500, 1000, 2000, 4000, 8000), 100)  # networks by n
QUICK = {100: 16, 500: 8, 8000: 4}
FULL_AS_CODE, QUICK_AS_CODE = {100: 100, 8000: 10}, {100: 16}
OTHERS = 2992  # what is left of the 10,992 records at n = 8000
RECIPES = {
    TEXT: {"loss": "mse", "lr": 5e-3, "batch": 200, "epochs": 2500, "stop": 1e-4},
    "code": {"loss": "mse", "lr": 5e-3, "batch": 50, "epochs": 150, "stop": 1e-5},
}
ASIDE = {TEXT: 0, "code": 10}  # of the n records, not trained on
STRATEGIES = {
    "likelihood": "likelihood",
    "accuracy": "accuracy",
    "loss": "loss",
    "gradient": "gradient norm",
}
BLIND = {"imputation": "imputation, without the network", "prior": "prior guess, without the network"}
OPEN = {"linestyle": "none", "markerfacecolor": "none", "markersize": 8}  # networks as the public code's
MEMBERSHIP = {"success": "SR: likelihood attack, threshold .8", **gap.TITLES}


def measure(lab: Lab) -> Outcome:
    """Networks for each n, with all that is guessed about each."""
    from leakbound.papers.delgrosso2021 import networks

    plans = {TEXT: lab.size(full=FULL, quick=QUICK), "code": lab.size(full=FULL_AS_CODE, quick=QUICK_AS_CODE)}
    settings = lab.settings("code")
    rows: list[dict[str, Any]] = []
    each: list[dict[str, Any]] = []
    ours: dict[str, dict[str, Ours]] = {}
    texts = []
    for setting in settings:
        # all networks of a setting, then its lines and claims
        runs_of: dict[int, list[dict[str, np.ndarray]]] = {}
        for n, models in plans[setting].items():
            arguments = [(n, number, lab.seed, setting) for number in range(models)]
            what = f"networks for PenDigits, n = {n}" + ("" if setting == TEXT else ", as the public code")
            runs_of[n] = lab.repeat(attacked_writers, arguments, what, "pendigits")
            facts = {"setting": setting, "n": n, "models": models}
            for line, (value, low, high) in lines(runs_of[n], setting).items():
                rows.append(facts | {"line": line, "value": value, "low": low, "high": high})
            each += trials(runs_of[n], setting=setting, n=n)
        ours[setting] = attribute_claims(runs_of)
        counts = ", ".join(f"{n:,} ({models} networks)" for n, models in plans[setting].items())
        texts.append(f"n = {counts}" if setting == TEXT else f"as the public code: n = {counts}")
        if setting == TEXT:
            ours[TEXT] |= {"parameters": Ours(networks.n_parameters(networks.dense())), "chance": Ours(1 / WRITERS)}
            ours[TEXT] |= membership_claims(runs_of)
    # the first setting is judged; the others are tried, and may explain a difference
    first, *others = settings
    run = f"{'; '.join(texts)}; {ATTACKED} records of each attacked, or all that it was trained on."
    tried = {setting: ours[setting] for setting in others}
    return Outcome(pd.DataFrame(rows), ours[first], run, tried, pd.DataFrame(each))


def trials(runs: list[dict[str, Any]], **of: Any) -> list[dict[str, Any]]:
    """Make a row of all that is guessed about each network."""
    guessed = [row for name in (*STRATEGIES, *BLIND) for row in trials_of(_of(runs, name), **of, line=name)]
    return guessed + gap.Networks.of(runs).trials(**of)


def lines(runs: list[dict[str, Any]], setting: str) -> dict[str, tuple[float, float, float]]:
    """Each line of the figure at one n: a number and the ends of its 95 % interval over networks."""
    names = (*STRATEGIES, *BLIND, "success") if setting == TEXT else (*STRATEGIES, *BLIND)
    values = {}
    for line in names:
        interval = ls.intervals.cluster_t(_of(runs, line))
        values[line] = (interval.value, interval.low, interval.high)
    return values | (gap.Networks.of(runs).lines() if setting == TEXT else {})


def attacked_writers(n: int, number: int, seed: int, setting: str = TEXT) -> dict[str, float]:
    """Train a network on n records and guess the writers of 100 of them, and who was in."""
    from leakbound.papers.delgrosso2021 import networks

    x, label, writer = records()
    order = ls.seeds.stream(seed, "writers", n, number).permutation(len(x))
    # the public code trains on ten records fewer, and attacks so many at most
    trained, outside = order[: n - ASIDE[setting]], order[n : n + OTHERS]
    rows, attacked = np.r_[trained, outside], trained[:ATTACKED]
    own = np.r_[rows, np.repeat(attacked, WRITERS)]
    signals = ls.signals_of(
        ls.releases.Network(networks.dense, ls.releases.Recipe.of(RECIPES[setting])),
        ls.data.from_arrays(np.concatenate([x[rows], candidates(x[attacked])]), label[own]),
        ls.games.one_model(len(trained), len(own) - len(trained)),
        ["log_prob", "correct", "gradient_norm"],
        seed=ls.seeds.integer(seed, "network", n, number),
        n_jobs=1,
    )
    log_p, correct, steep = (signals.targets(name)[0] for name in ("log_prob", "correct", "gradient_norm"))
    scores = strategies(*(signal[len(rows) :] for signal in (log_p, correct, steep)))
    scores |= without(label, writer, attacked, outside[:n], ls.seeds.integer(seed, "imputation", n, number))
    guessed = {name: right(score, writer[attacked]) for name, score in scores.items()}
    return guessed | gap.membership_results(log_p[: len(rows)], correct[: len(rows)], len(trained))


@lru_cache(maxsize=1)
def records() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Load what the network reads, digits and writers."""
    pen = data.writers()
    writer = pen["writer"].astype(int) - 1
    series = np.stack([pen["x"], pen["y"]], axis=1).astype(float)
    low, high = (end(series, axis=(1, 2), keepdims=True) for end in (np.min, np.max))
    length = (pen["length"] - pen["length"].min()) / np.ptp(pen["length"])
    drawn = ((series - low) / (high - low)).reshape(len(series), -1)
    # the writer one-hot, x and y at 32 times from 0 to 1, the number of strokes, the length from 0 to 1
    x = np.column_stack([np.eye(WRITERS)[writer], drawn, pen["n_strokes"], length])
    return x.astype(np.float32), pen["label"].astype(int), writer


def candidates(x: np.ndarray) -> np.ndarray:
    """Each record with each of the writers (delgrosso2021, Definition 3)."""
    tried = np.repeat(x, WRITERS, axis=0)
    tried[:, :WRITERS] = np.tile(np.eye(WRITERS), (len(x), 1))
    return tried


def strategies(log_p: np.ndarray, correct: np.ndarray, steep: np.ndarray) -> dict[str, np.ndarray]:
    """How much the network likes each candidate: the four strategies (delgrosso2021, equations 36 to 39)."""
    top = log_p.max(axis=1)
    # Eq. 36, 37, 38 and 39. Where no writer makes the network predict the digit, eq. 37 has no candidate: all are tied.
    scores = {
        "likelihood": top,
        "accuracy": np.where(correct > 0, top, -np.inf),
        "loss": -gap.squared_loss(log_p),
        "gradient": -steep,
    }
    return {name: score.reshape(-1, WRITERS) for name, score in scores.items()}


def without(
    label: np.ndarray, writer: np.ndarray, attacked: np.ndarray, outside: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """How likely each writer is to whoever has not seen the network, but other records with their writers."""
    from sklearn.ensemble import RandomForestClassifier

    known = np.column_stack([records()[0][:, WRITERS:], np.eye(DIGITS)[label]])
    forest = RandomForestClassifier(100, random_state=seed).fit(known[outside], writer[outside])
    imputed = np.zeros((len(attacked), WRITERS))
    imputed[:, forest.classes_] = forest.predict_proba(known[attacked])
    counts = np.bincount(writer[outside], minlength=WRITERS)
    return {"imputation": imputed, "prior": np.tile(counts, (len(attacked), 1))}


def right(score: np.ndarray, writer: np.ndarray) -> float:
    """Fraction of the records whose writer has the best score; of k best ones it counts 1/k.

    >>> right(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([1, 0]))
    0.75
    """
    best = score == score.max(axis=1, keepdims=True)
    return float((best[np.arange(len(writer)), writer] / best.sum(axis=1)).mean())


def attribute_claims(runs_of: Mapping[int, list[dict[str, Any]]]) -> dict[str, Ours]:
    """Compute what the section claims of the writers, from runs of `attacked_writers` by n.

    Claims about an n that was not run are left out.
    """
    best: dict[int, Ours] = {}
    for n, runs in runs_of.items():
        means = {name: mean_of(_of(runs, name), detail=words) for name, words in STRATEGIES.items()}
        best[n] = max(means.values(), key=lambda one: one.value)
    first, last = min(best), max(best)
    ours = {}
    if 100 in best:
        gain = float(best[100].value) - 1 / WRITERS
        ours["gain_100"] = Ours(gain, best[100].error, detail=f"by the {best[100].detail}")
        ours["white_box"] = white_box(runs_of[100])
    if 8000 in best:
        ours["success_8000"] = Ours(best[8000].value, best[8000].error, detail=f"by the {best[8000].detail}")
    if first < last:
        detail = f"{best[first].value:.3f} at n = {first}, {best[last].value:.3f} at {last:,}"
        ours["falls"] = Ours.stated(falls(best), detail=detail)
    return ours


def membership_claims(runs_of: Mapping[int, list[dict[str, Any]]]) -> dict[str, Ours]:
    """Compute what the section claims of membership, from runs of `attacked_writers` by n with 100 and 8,000."""
    member = {n: mean_of(_of(runs, "success")) for n, runs in runs_of.items()}
    above_half = Ours(float(member[100].value) - 0.5, member[100].error)
    return {
        "membership_100": Ours.stated(all_above([above_half]), detail=f"{member[100].value:.3f}"),
        "membership_8000": member[8000],
        "bound_holds": gap.bound_holds({n: gap.Networks.of(runs) for n, runs in runs_of.items()}, FULL),
    }


def white_box(runs: list[dict[str, Any]]) -> Ours:
    """Tell whether the gradient norm beats the strategies that do without the parameters, network by network."""
    gradient = _of(runs, "gradient")
    others = {name: _of(runs, name) for name in STRATEGIES if name != "gradient"}
    leads = {name: mean_of(gradient - other) for name, other in others.items()}
    detail = ", ".join(f"{lead.value:+.3f} +- {lead.error:.3f} ({STRATEGIES[name]})" for name, lead in leads.items())
    return Ours.stated(all_above(leads.values()), detail=f"gradient norm less the others: {detail}")


def falls(success: Mapping[int, Ours]) -> bool | None:
    """Tell whether it is lower at the end than at the start, and rises nowhere between, by three standard errors."""
    ordered = [success[n] for n in sorted(success)]

    def decrease(one: Ours, other: Ours) -> Ours:
        return Ours(float(one.value) - float(other.value), float(np.hypot(one.error, other.error)))

    if any(all_above([decrease(sooner, later)]) is False for sooner, later in pairwise(ordered)):
        return False
    return all_above([decrease(ordered[0], ordered[-1])])


def draw(numbers: pd.DataFrame) -> Figure:
    """Attribute inference on the left, as the public code in open marks; membership inference on the right."""
    of_text = numbers.query("setting == @TEXT")
    has_text = len(of_text) > 0
    figure, axes = figures.panels(2 if has_text else 1, width=4.6, height=4.4)
    looks = dict(zip((*STRATEGIES, *BLIND), figures.STYLES[1:], strict=True))
    looks |= {name: {**looks[name], "color": figures.OURS} for name in BLIND}
    for setting, own in numbers.groupby("setting", sort=False):
        for line, words in (STRATEGIES | BLIND).items():
            part = own[own["line"] == line]
            if setting == TEXT:
                figures.line(axes[0], part, "n", "value", words, **looks[line])
            elif line in STRATEGIES:
                n, value, low, high = (np.asarray(part[column]) for column in ("n", "value", "low", "high"))
                look = {**looks[line], **OPEN}
                axes[0].errorbar(n, value, [value - low, high - value], label=f"{words}, as the public code", **look)
    axes[0].axhline(1 / WRITERS, color=figures.MUTE, linewidth=0.8, label="chance, 1/44")
    label = "correct guesses (fraction of training records)"
    axes[0].set(title="Who wrote it", ylabel=label, xscale="log", ylim=(0, None))
    shown = [axes[0].get_legend_handles_labels()[0]]
    if has_text:
        shown.append(gap.draw(axes[1], of_text, {line: (words, gap.LOOKS[line]) for line, words in MEMBERSHIP.items()}))
        axes[1].set(title="Who was in")
    for ax, handles in zip(axes, shown, strict=True):
        ax.set(xlabel="training records n")
        ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return figure


def _of(runs: list[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([run[name] for run in runs], dtype=float)
