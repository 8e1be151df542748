"""Figure 4: three attacks on networks for images, and what Theorem 2 makes of their generalisation gap.

A member and a test image are equally likely. The likelihood attack calls a member who has a probability above .8; the
thresholds of loss and modified entropy, which the paper does not print, are learned from other networks. The rates of
each network are those over all its images, where the paper plays 10,000 games at random. Theorem 2 bounds the best
attacker from below, not these: that one of them falls below it somewhere is no contradiction, as the paper says.

The lower row shows the settings ``code`` and ``trained``, the networks of the paper's public code. Open marks are the
result files that are published with it, 100 networks each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.delgrosso2021 import gap, images
from leakbound.papers.lab import TEXT, Lab, Outcome, mean_of, trials_of
from leakbound.papers.printed import Ours, all_above

# Networks by n: 100 each in print.
FULL = {10: 20, 20: 20, 50: 20, 100: 20, 200: 20, 500: 10, 1000: 10, 2000: 5, 5000: 3, 10_000: 3}
QUICK = {"mnist": {10: 4, 500: 3}, "fashion": {100: 3}, "cifar10": {100: 3}}
FULL_AS_CODE = {100: 20, 200: 20, 500: 20, 1000: 20}
QUICK_AS_CODE = {100: 2}
N_OF_LOSSES = 1000  # images of the networks that are trained by the squared loss and by cross-entropy
QUICK_OF_LOSSES = {"mnist": 10}
THRESHOLDS = np.arange(1, 10) / 10  # of the likelihood attack, with as many digits as printed
RESULT_FILE = {  # published with the code: success, lower bound and accuracy, by n
    "mnist": {
        100: (0.5964, 0.5265, 0.6576),
        200: (0.6185, 0.5176, 0.8428),
        500: (0.5603, 0.5091, 0.9241),
        1000: (0.5309, 0.5055, 0.9429),
    },
    "fashion": {
        100: (0.5484, 0.5272, 0.5639),
        200: (0.6104, 0.5314, 0.6923),
        500: (0.5583, 0.5224, 0.7485),
        1000: (0.5242, 0.5147, 0.7766),
    },
    "cifar10": {
        100: (0.5825, 0.5545, 0.1976),
        200: (0.7160, 0.5826, 0.2472),
        500: (0.6811, 0.5809, 0.2943),
        1000: (0.6414, 0.5665, 0.3385),
    },
}
LINES = {
    "likelihood": "LK: likelihood attack, threshold .8",
    "loss": "LS: loss attack",
    "modified_entropy": "ME: modified entropy attack",
    **gap.TITLES,
}
LOOKS = {
    "likelihood": gap.LOOKS["success"],
    "loss": {**figures.STYLES[2], "markersize": 9, "markerfacecolor": "none"},  # seen around modified entropy's
    "modified_entropy": figures.STYLES[3],
    **gap.LOOKS,
}
IN_FILE = ("likelihood", "bound", "test_accuracy")  # the lines that the public code computes
OPEN = {"linestyle": "none", "markerfacecolor": "none", "markersize": 8}
RESULTS = "result file"


def measure(lab: Lab) -> Outcome:
    """Run the three sets of images, each with its numbers of training images."""
    plan = {name: lab.size(full=FULL, quick=QUICK[name]) for name in images.SHAPES}
    plan_as_code = dict.fromkeys(images.SHAPES, lab.size(full=FULL_AS_CODE, quick=QUICK_AS_CODE))
    n_of_losses = lab.size(full=dict.fromkeys(images.SHAPES, N_OF_LOSSES), quick=QUICK_OF_LOSSES)
    return study(lab, plan, plan_as_code, n_of_losses, lab.size(full=10_000, quick=1000))


def study(
    lab: Lab,
    plan: Mapping[str, Mapping[int, int]],
    plan_as_code: Mapping[str, Mapping[int, int]],
    n_of_losses: Mapping[str, int],
    n_others: int,
) -> Outcome:
    """Networks for some sets of images."""
    settings = lab.settings(*images.SETTINGS)
    rows: list[dict[str, Any]] = []
    each: list[dict[str, Any]] = []
    ours: dict[str, dict[str, Ours]] = {setting: {} for setting in settings}
    for name in plan:
        runs_of = _networks(lab, settings, name, plan[name], plan_as_code[name], n_others)
        for setting, runs in runs_of.items():
            rows += _rows(name, setting, runs)
            each += [row for n, of_n in runs.items() for row in trials(of_n, setting=setting, data=name, n=n)]
            ours[setting] |= claims(name, setting, runs)
        # the text's networks minimise a squared error; one size is trained with cross-entropy for comparison
        if TEXT in settings and name in n_of_losses:
            n = n_of_losses[name]
            by_entropy = accuracy_by_entropy(lab, name, n, len(runs_of[TEXT][n]), n_others)
            each += trials_of(by_entropy, setting=TEXT, data=name, n=n, line="test_accuracy by cross-entropy")
            ours[TEXT][f"mse_{name}"] = effect_of_loss(n, runs_of[TEXT][n], by_entropy)
        if set(settings) & set(images.SETTINGS):
            rows += _rows_of_results(name)
    texts = [f"{n_others:,} test images for each network."]
    if TEXT in settings:
        ours[TEXT] |= _parameters(plan)
        texts.append(f"{_listed(plan)}.")
    if set(settings) & set(images.SETTINGS):
        texts.append(f"As the public code: {_listed(plan_as_code)}.")
    first, *others = settings
    tried = {setting: ours[setting] for setting in others}
    return Outcome(pd.DataFrame(rows), ours[first], " ".join(texts), tried, pd.DataFrame(each))


def trials(runs: Sequence[Mapping[str, Any]], *, setting: str, data: str, n: int) -> list[dict[str, Any]]:
    """Make a row of each number of each network, and of its success with each of the thresholds."""
    of = {"setting": setting, "data": data, "n": n}
    success = success_by_threshold(runs, images.n_members(setting, n))
    by_threshold = [
        row
        for threshold, values in zip(THRESHOLDS, success.T, strict=True)
        for row in trials_of(values, **of, line=f"success at {threshold:.1f}")
    ]
    return by_threshold + gap.Networks.of(runs).trials(**of)


def claims(name: str, setting: str, runs_of: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, Ours]:
    """Compute what the section claims of a set of images."""
    networks_of = {n: gap.Networks.of(runs) for n, runs in runs_of.items()}
    ours = {f"bound_holds_{name}": gap.bound_holds(networks_of, FULL)}
    if len(runs_of) > 1:
        ours[f"approaches_half_{name}"] = approaches_half(networks_of)
    if name == "mnist":
        ours["below_half_mnist"] = smallest(networks_of)
    success = {n: success_by_threshold(runs, images.n_members(setting, n)) for n, runs in runs_of.items()}
    ours[f"threshold_{name}"] = best_threshold(success)
    return ours


def accuracy_by_entropy(lab: Lab, name: str, n: int, n_networks: int, n_others: int) -> np.ndarray:
    """Train the same networks by cross-entropy, and return their accuracy at others."""
    arguments = [(name, n, n_others, number, lab.seed, "cross_entropy") for number in range(n_networks)]
    runs = lab.repeat(images.attacked, arguments, f"{images.TITLES[name]} by cross-entropy, n = {n}", name)
    return gap.Networks.of(runs).test_accuracy


def effect_of_loss(n: int, runs: Sequence[Mapping[str, Any]], by_entropy: np.ndarray) -> Ours:
    """Compare the accuracy by the squared loss with that by cross-entropy, network by network."""
    accuracy = gap.Networks.of(runs).test_accuracy
    smaller = "" if n == N_OF_LOSSES else f"n = {n:,} of {N_OF_LOSSES:,} images"
    detail = f"{accuracy.mean():.3f} and {by_entropy.mean():.3f}, {len(runs)} networks"
    return mean_of(accuracy - by_entropy, smaller=smaller, detail=detail)


def success_by_threshold(runs: Sequence[Mapping[str, Any]], n: int) -> np.ndarray:
    """Compute the success of the likelihood attack with each of `THRESHOLDS`."""
    likelihood = np.exp(np.stack([run["likelihood"] for run in runs]).astype(float))
    called = likelihood[..., None] > THRESHOLDS
    return (called[:, :n].mean(axis=1) + 1 - called[:, n:].mean(axis=1)) / 2


def best_threshold(success_of: Mapping[int, np.ndarray]) -> Ours:
    """Tell whether no other threshold has a larger mean success over n than the printed one."""
    printed_one = int(np.argmin(np.abs(THRESHOLDS - gap.THRESHOLD)))
    leads = []
    for other in set(range(len(THRESHOLDS))) - {printed_one}:
        by_n = [mean_of(success[:, printed_one] - success[:, other]) for success in success_of.values()]
        error = np.linalg.norm([lead.error for lead in by_n]) / len(by_n)
        leads.append(Ours(float(np.mean([lead.value for lead in by_n])), float(error)))
    mean = np.mean([success.mean(axis=0) for success in success_of.values()], axis=0)
    detail = f"largest with {THRESHOLDS[mean.argmax()]:.1f}: {mean.max():.3f}; {mean[printed_one]:.3f} with .8"
    absent = set(FULL) - success_of.keys()
    fewer = f"{len(FULL) - len(absent)} of {len(FULL)} sizes; {detail}" if absent else ""
    return Ours.stated(all_above(leads), smaller=fewer, detail=detail)


def lines(runs: Sequence[Mapping[str, Any]], n: int) -> dict[str, tuple[float, float, float]]:
    """Each line of the figure at one n: a number and the ends of its 95 % interval over networks."""
    networks = gap.Networks.of(runs)
    member = np.tile(np.arange(len(runs[0]["loss"])) < n, (len(runs), 1))
    intervals = {"likelihood": ls.intervals.cluster_t(networks.success)}
    for attack in ("loss", "modified_entropy"):
        score = np.stack([run[attack] for run in runs]).astype(float)
        intervals[attack] = ls.metrics.accuracy(ls.Scores(attack, score, member))
    values = {name: (interval.value, interval.low, interval.high) for name, interval in intervals.items()}
    values |= networks.lines()
    return {name: values[name] for name in LINES}


def approaches_half(networks_of: Mapping[int, gap.Networks]) -> Ours:
    """Tell whether success and gap are smaller at the largest n than where they are largest."""
    last, falls, details = max(networks_of), [], []
    for name in ("success", "gap"):
        means = {n: mean_of(getattr(trained, name)) for n, trained in networks_of.items()}
        top = max(means, key=lambda n, means=means: means[n].value)
        error = float(np.hypot(means[top].error, means[last].error))
        falls.append(Ours(means[top].value - means[last].value, error))
        details.append(f"{name} {means[top].value:.3f} at n = {top:,}, {means[last].value:.3f} at n = {last:,}")
    shorter = "" if last >= max(FULL) else f"n up to {last:,} of {max(FULL):,}"
    return Ours.stated(all_above(falls), smaller=shorter, detail="; ".join(details))


def smallest(networks_of: Mapping[int, gap.Networks]) -> Ours:
    """Find the smallest mean success of the likelihood attack over n."""
    means = {n: mean_of(trained.success) for n, trained in networks_of.items()}
    n = min(means, key=lambda n: means[n].value)
    last = max(networks_of)
    shorter = "" if last >= max(FULL) else f"n up to {last:,} of {max(FULL):,}"
    return Ours(means[n].value, means[n].error, smaller=shorter, detail=f"at n = {n:,}")


def draw(numbers: pd.DataFrame) -> Figure:
    """Success and bounds against n, the accuracy on the right; the networks of the public code in the lower row."""
    numbers = numbers.assign(line=numbers["setting"] + " " + numbers["line"])
    by_text = numbers["setting"] == TEXT
    rows = [part for part in (numbers[by_text], numbers[~by_text]) if len(part)]
    figure, axes = figures.panels(len(numbers["data"].unique()), len(rows), width=3.6, height=3.2)
    panels = iter(axes)
    handles: list[Artist] = []
    for row in rows:
        present = set(row["line"])
        styles = {line: style for line, style in _styles().items() if line in present}
        by_code = f"{TEXT} likelihood" not in present
        of_whom = ", as the public code" if by_code else ""
        xlabel = "images drawn n, of which 2n/3 are trained on" if by_code else "training images n"
        shown: list[Artist] = []
        for name in images.in_print(row["data"]):
            ax = next(panels)
            shown = gap.draw(ax, row.query("data == @name"), styles)
            ax.set(title=f"{images.TITLES[str(name)]}{of_whom}", xlabel=xlabel)
        handles += shown
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _styles() -> dict[str, tuple[str, dict[str, Any]]]:
    """Words and look of each line, by its name with the setting."""
    styles = {f"{TEXT} {line}": (words, LOOKS[line]) for line, words in LINES.items()}
    short = {"likelihood": "LK", "bound": "LB", "test_accuracy": "Acc (right axis)"}
    for line, words in short.items():
        styles[f"code {line}"] = (f"as the code, {words}", LOOKS[line])
    for line in ("likelihood", "bound"):
        styles[f"trained {line}"] = (f"true members alone, {short[line]}", {**LOOKS[line], "color": figures.OURS})
    for line, words in short.items():
        styles[f"{RESULTS} {line}"] = (f"their result file, {words}", {**LOOKS[line], **OPEN})
    return styles


def _networks(
    lab: Lab,
    settings: Collection[str],
    name: str,
    sizes: Mapping[int, int],
    sizes_as_code: Mapping[int, int],
    n_others: int,
) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """Run the networks of a set of images, and give their results by setting and n."""
    runs_of: dict[str, dict[int, list[dict[str, Any]]]] = {setting: {} for setting in settings}
    if TEXT in settings:
        for n, models in sizes.items():
            arguments = [(name, n, n_others, number, lab.seed) for number in range(models)]
            runs_of[TEXT][n] = lab.repeat(images.attacked, arguments, f"{images.TITLES[name]}, n = {n}", name)
    for n, models in sizes_as_code.items():
        for setting, runs in images.runs_as_code(lab, settings, name, n, n_others, models).items():
            runs_of[setting][n] = runs
    return runs_of


def _rows(name: str, setting: str, runs_of: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every line at every n."""
    rows = []
    for n, runs in runs_of.items():
        facts = {"setting": setting, "data": name, "n": n, "models": len(runs)}
        for line, (value, low, high) in lines(runs, images.n_members(setting, n)).items():
            rows.append(facts | {"line": line, "value": value, "low": low, "high": high})
    return rows


def _rows_of_results(name: str) -> list[dict[str, Any]]:
    """Take the lines from the result file, without their errors."""
    rows = []
    for n, values in RESULT_FILE[name].items():
        facts = {"setting": RESULTS, "data": name, "n": n, "models": 100}
        for line, value in zip(IN_FILE, values, strict=True):
            rows.append(facts | {"line": line, "value": value, "low": value, "high": value})
    return rows


def _parameters(names: Collection[str]) -> dict[str, Ours]:
    """Count the parameters of the networks whose number is printed."""
    from leakbound.papers.delgrosso2021 import networks

    counts = {}
    for name in names:
        if name in ("mnist", "cifar10"):
            counts[f"parameters_{name}"] = Ours(networks.n_parameters(networks.deep_cnn(**images.SHAPES[name])))
    return counts


def _listed(plan: Mapping[str, Mapping[int, int]]) -> str:
    texts = []
    for name, sizes in plan.items():
        counts = ", ".join(f"{n:,} ({models} networks)" for n, models in sizes.items())
        texts.append(f"{images.TITLES[name]}: n = {counts}")
    return "; ".join(texts)
