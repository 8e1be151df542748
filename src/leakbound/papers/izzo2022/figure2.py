"""Section 5.2, Figure 2: a private covariance matrix, from which synthetic data are made.

n records are drawn from N(0, Sigma) in three dimensions; half of them, drawn at random, train. A is found by gradient
descent on ||A - mean of x x^T||_F^2 and is released raw, or

* by DP-SGD with full batches: gradients are clipped to the median length that they have along the raw training. Theorem
  4 turns eta into epsilon; delta is 1e-6. The composition of the steps is exact (all of them together are one Gaussian
  mechanism) for data sets of equal size that differ in one record. Such a clip moves the minimum itself, and that is
  nearly all of the error; ten times the clip is shown with it. With the setting ``undivided``, the same noise is
  added to the mean of the clipped gradients, not to their sum, and is k = n/2 times as large there: then the text's
  comparisons of the two promises hold (erratum 23);
* by Corollary 8 with M = 2, 4, 6, the moments from 128 random halves of all records (erratum 1). The lines are those of
  the printed radius, a Laplace number, so as to repeat the experiment; a radius from the Gamma distribution, which the
  proof of the corollary needs (erratum 2), makes the noise nine times larger, and is shown for M = 6;
* with ours: Gaussian noise calibrated to the swap of one record, for the worst record (proved), and for a record drawn
  at random (at a confidence of 95 %).

Not printed, and chosen here: Sigma, 50 steps of rate 0.1 from A = 0, and delta. Each run draws data and half anew, and
its errors are means over 200 draws of the noise, the same ones at each eta (one training by DP-SGD at each eta).

The generator is G(z) = W z with z normal, so that its covariance is W W^T. With W = (A + A^T)^(1/2), as printed, that
is twice A; with half of A + A^T it is A.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, Parameter, mean_of, trials_of
from leakbound.papers.printed import Ours, all_above

SIGMA = np.array([[2.0, 0.6, 0.2], [0.6, 1.0, 0.3], [0.2, 0.3, 0.5]])
N = Parameter("n", 500_000, "number of records, half of which train", least=100, most=10_000_000, even=True)
QUICK_N = 20_000  # every line can be seen, and that of Corollary 8 is five times as high: its noise falls with sqrt(n)
PARAMETERS = (N,)
STEPS, RATE = 50, 0.1
DELTA = 1e-6
MOMENTS = (2, 4, 6)
N_SPLITS, N_DRAWS = 128, 200
ETAS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.49)
DP = {"text": "DP-SGD", "undivided": "DP-SGD, noise not divided by k"}  # by setting
WIDE = "DP-SGD, ten times the clip"
ZOOMS = ((0.01, 0.1), (0.1, 0.25), (0.25, 0.5))  # of eta; the paper shows three ranges and does not print them
ERRORS = ("A", "generator as printed", "generator")  # relative Frobenius errors


def measure(lab: Lab) -> Outcome:
    """Errors of all methods at each eta, over independent runs."""
    is_smaller = lab.quick and "n" not in lab.set
    n, n_runs = QUICK_N if is_smaller else N.of(lab), lab.size(full=10, quick=3)
    smaller = f"{n:,} of {N.value:,} records" if is_smaller else ""
    runs = lab.repeat(run, [(n, number, lab.seed) for number in range(n_runs)], "runs")
    error = {method: np.array([one[method] for one in runs]) for method in runs[0]}  # (runs, etas, errors)
    text, *others = lab.settings("undivided")
    run_text = f"n = {n:,}, {n_runs} runs, {N_DRAWS} draws of the noise in each."
    tried = {setting: claims(error, DP[setting], smaller) for setting in others}
    return Outcome(table(error), claims(error, DP[text], smaller), run_text, tried, trials(error))


def claims(error: dict[str, np.ndarray], dp_method: str = DP["text"], smaller: str = "") -> dict[str, Ours]:
    """Compute what the section claims of the errors of A; those of shape (runs, etas, errors) by method."""
    of_A = {method: values[..., 0] for method, values in error.items()}
    mean = {method: values.mean(axis=0) for method, values in of_A.items()}
    later, dp = np.array(ETAS) >= 0.1, mean[dp_method]
    lead = {M: of_A[dp_method] - of_A[f"M = {M}"] for M in MOMENTS}  # (runs, etas)
    below = {M: where(mean[f"M = {M}"] < dp) for M in MOMENTS}
    best = np.min([of_A[f"M = {M}"] for M in MOMENTS], axis=0)
    first = [crossing(values) for values in best]
    return {
        **{f"beats_dp_{M}_from_0.1": Ours.stated(beats(lead[M][:, later]), smaller, below[M]) for M in MOMENTS},
        **{f"beats_dp_{M}_everywhere": Ours.stated(beats(lead[M]), smaller, below[M]) for M in MOMENTS[1:]},
        "dp_above_1": mean_of(of_A[dp_method][:, dp.argmin()], smaller),
        "mip_below_1": mean_of(first, smaller),
    }


def beats(lead: np.ndarray) -> bool | None:
    """Whether the lead over differential privacy, of shape (runs, etas), is above zero at every eta."""
    return all_above(mean_of(one) for one in lead.T)


def where(below: np.ndarray) -> str:
    """At which eta it is so."""
    if below.all():
        return "at every eta"
    return f"at eta = {', '.join(f'{eta:g}' for eta, true in zip(ETAS, below, strict=True) if true) or 'none'}"


def crossing(values: np.ndarray) -> float:
    """Find the eta from which on an error is below 1, interpolated on logarithmic axes; at most the last one."""
    last = np.flatnonzero(values >= 1)[-1]
    return float(np.exp(np.interp(0, -np.log(values[last : last + 2]), np.log(ETAS[last : last + 2]))))


def table(error: dict[str, np.ndarray]) -> pd.DataFrame:
    """Means and standard errors over the runs."""
    rows = []
    for method, values in error.items():
        for place in np.ndindex(values.shape[1:]):
            mean = mean_of(values[:, *place])
            rows.append({"method": method, "error of": ERRORS[place[1]], "eta": ETAS[place[0]]})
            rows[-1] |= {"mean": mean.value, "standard_error": mean.error}
    return pd.DataFrame(rows)


def trials(error: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return the errors of each run."""
    rows = []
    for method, values in error.items():
        for eta_number, which in np.ndindex(values.shape[1:]):
            of = {"method": method, "error of": ERRORS[which], "eta": ETAS[eta_number]}
            rows += trials_of(values[:, eta_number, which], **of)
    return pd.DataFrame(rows)


def run(n: int, number: int, seed: int) -> dict[str, np.ndarray]:
    """Compute the three errors of each method at each eta, shape (etas, errors)."""

    def stream(*path: str | int) -> np.random.Generator:
        return ls.seeds.stream(seed, "covariance", number, *path)

    x = stream("data").normal(size=(n, len(SIGMA))) @ np.linalg.cholesky(SIGMA).T
    outer = (x[:, :, None] * x[:, None, :]).reshape(n, -1)  # x x^T; the Euclidean norm is the Frobenius norm
    half = outer[half_of(n, stream("half"))]
    path = descend(half.mean(axis=0))
    n_pairs = 20_000 if n <= QUICK_N else 100_000
    ours = our_noises(outer, ls.seeds.integer(seed, "pairs", number), n_pairs)
    noises = mip_noises(outer, stream("splits")) | ours
    clip = median_length(half, path)
    error = {"raw": np.tile(errors(path[-1:]), (len(ETAS), 1))}
    for method, wide, divided in ((DP["text"], clip, True), (WIDE, 10 * clip, True), (DP["undivided"], clip, False)):
        private = (private_descent(half, wide, eta, stream("dp", str(eta)), divided) for eta in ETAS)
        error[method] = np.array([errors(A[None]) for A in private])
    for method, noise in noises.items():
        released = (noise_at_eta.sample(np.tile(path[-1], (N_DRAWS, 1)), stream(method)) for noise_at_eta in noise)
        error[method] = np.array([errors(A) for A in released])
    return error


def half_of(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the members of a random half, as truth values."""
    half = np.zeros(n, dtype=bool)
    half[rng.permutation(n)[: n // 2]] = True
    return half


def descend(mean: np.ndarray) -> np.ndarray:
    """Compute gradient descent on ||A - mean||^2 from A = 0, shape (STEPS + 1, 9) (izzo2022, Section 5.2)."""
    path = [np.zeros_like(mean)]
    for _ in range(STEPS):
        path.append(path[-1] - RATE * 2 * (path[-1] - mean))
    return np.array(path)


def lengths(A: np.ndarray, outer: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Of the gradients 2 (A - x x^T) of all records."""
    return 2 * np.sqrt(np.maximum(A @ A - 2 * (outer @ A) + squares, 0))


def median_length(outer: np.ndarray, path: np.ndarray) -> float:
    """Of the gradients of all records at all steps of the raw training (izzo2022, Section 5.2)."""
    squares = (outer**2).sum(axis=1)
    return float(np.median([lengths(A, outer, squares).astype(np.float32) for A in path[:-1]]))


def private_descent(
    outer: np.ndarray, clip: float, eta: float, rng: np.random.Generator, divided: bool = True
) -> np.ndarray:
    """Compute A by DP-SGD with full batches: replacing a record moves the clipped sum of a step by at most 2 clip.

    The noise is added to the sum, which is then divided by the number of records; or, not divided, to the mean
    (izzo2022, Section 5.2).
    """
    n, squares = len(outer), (outer**2).sum(axis=1)
    multiplier = ls.bounds.analytic_gaussian_scale(ls.bounds.dp_from_mip(eta), DELTA, sensitivity=2 * STEPS**0.5)
    descent = ls.releases.PrivateDescent(STEPS, RATE, clip, multiplier if divided else n * multiplier)

    def clipped_sum(A: np.ndarray, clip: float) -> np.ndarray:
        factor = clip / np.maximum(lengths(A, outer, squares), clip)
        return 2 * (factor.sum() * A - factor @ outer)

    return descent.path_of_sums(clipped_sum, n, np.zeros(outer.shape[1]), rng)[-1]


def mip_noises(outer: np.ndarray, rng: np.random.Generator) -> dict[str, list[ls.Noise]]:
    """Corollary 8: the moments of each entry of A over random halves, and the noise that follows (izzo2022)."""
    theta = np.array([descend(half_of(len(outer), rng) @ outer / (len(outer) // 2))[-1] for _ in range(N_SPLITS)])
    noises = {}
    for M in MOMENTS:
        sigma = (np.abs(theta - theta.mean(axis=0)) ** M).mean(axis=0) ** (1 / M)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the printed radius, which promises less than its corollary
            noises[f"M = {M}"] = [ls.noise.izzo(sigma, eta, M, "laplace-literal") for eta in ETAS]
        noises[f"M = {M}, Gamma"] = [ls.noise.izzo(sigma, eta, M) for eta in ETAS]
    return noises


def our_noises(outer: np.ndarray, seed: int, n_pairs: int = 100_000) -> dict[str, list[ls.Noise]]:
    """Gaussian noise by the swap of one record: A is the mean of x x^T, times a number that depends on no data."""
    features = descend(np.ones(1))[-1] * outer
    worst = ls.noise.swap_linear(features, len(outer) // 2)
    average = ls.noise.average_linear(features, len(outer) // 2, n_pairs=n_pairs, seed=seed)
    return {
        "ours, worst record": [ls.noise.calibrate(worst, eta) for eta in ETAS],
        "ours, average record": [ls.noise.calibrate(average, eta, confidence=0.95) for eta in ETAS],
    }


def errors(released: np.ndarray) -> np.ndarray:
    """Relative errors of A, and of the covariance of the generator with W as printed and as it should be.

    The square root of A + A^T is that of its part with eigenvalues above 0 (izzo2022, Section 5.2).
    """
    A = released.reshape(-1, *SIGMA.shape)
    value, vector = np.linalg.eigh((A + A.transpose(0, 2, 1)) / 2)
    generated = (vector * np.maximum(value, 0)[:, None, :]) @ vector.transpose(0, 2, 1)
    off = [np.linalg.norm(estimate - SIGMA, axis=(1, 2)).mean() for estimate in (A, 2 * generated, generated)]
    return np.array(off) / np.linalg.norm(SIGMA)


def draw(numbers: pd.DataFrame) -> Figure:
    """Draw the error of A, and that of the covariance of what the generator makes; below, A as the paper shows it."""
    figure, axes = figures.panels(3, 2, width=4.4, height=3.9)
    axes[2].set_axis_off()  # the legend of the lines of A
    theirs, ours = iter(figures.STYLES[1:]), {"color": figures.OURS}
    looks = {
        "DP-SGD": next(theirs),
        **{f"M = {M}": next(theirs) for M in MOMENTS},
        "M = 6, Gamma": next(theirs),
        WIDE: next(theirs),
        DP["undivided"]: {"color": figures.THEIRS, "marker": "*", "linestyle": (0, (3, 1))},
        "raw": {"color": figures.MUTE, "linewidth": 3.5},
        "ours, worst record": ours,
        "ours, average record": ours | {"linestyle": ":"},
    }
    for method, style in looks.items():
        label = method.replace("Gamma", "Gamma radius")
        line(axes[0], numbers, method, "A", label=label, **style)
        for ax in axes[3:]:
            line(ax, numbers, method, "A", label=label, **style)
    for method, error, name in (
        ("M = 6", "generator as printed", "W W^T = A + A^T, printed"),
        ("M = 6", "generator", "W W^T = (A + A^T)/2"),
        ("raw", "generator as printed", "W W^T = A + A^T, printed"),
        ("raw", "generator", "W W^T = (A + A^T)/2"),
        ("ours, worst record", "generator", "W W^T = (A + A^T)/2"),
    ):
        dash = {"linestyle": ":"} if error == "generator as printed" else {}
        line(axes[1], numbers, method, error, label=f"{method}: {name}", **looks[method] | dash)
    axes[0].set(title="A", ylabel="|A - Sigma| / |Sigma|, Frobenius norm")
    axes[1].set(title="covariance of the synthetic data", ylabel="|W W^T - Sigma| / |Sigma|, Frobenius norm")
    for ax in axes[:2]:
        ax.axhline(1, color=figures.MUTE, linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="eta: accuracy of any attacker above one half")
    axes[1].legend(fontsize=7)
    axes[2].legend(*axes[0].get_legend_handles_labels(), loc="center left", title="error of A")
    for ax, (low, high) in zip(axes[3:], ZOOMS, strict=True):
        ax.axhline(1, color=figures.MUTE, linewidth=0.8)
        ax.set(xlim=(low, high), ylim=(0, highest(numbers, low, high)), title=f"A, eta from {low:g} to {high:g}")
        ax.set(xlabel="eta", ylabel="|A - Sigma| / |Sigma|, linear")
    return figure


def highest(numbers: pd.DataFrame, low: float, high: float) -> float:
    """End of a linear axis that shows the printed lines of membership privacy with M = 4 and 6 in a range of eta."""
    in_range = (numbers["eta"] >= low) & (numbers["eta"] <= high)
    is_shown = numbers["method"].isin(["M = 4", "M = 6"]) & (numbers["error of"] == "A") & in_range
    return 1.1 * float(np.max(numbers.loc[is_shown, "mean"].to_numpy()))


def line(ax: Axes, numbers: pd.DataFrame, method: str, error: str, label: str, **style: object) -> None:
    """Means with one standard error on each side."""
    part = numbers[(numbers["method"] == method) & (numbers["error of"] == error)]
    figures.line(ax, part, "eta", "mean", label, error="standard_error", n_errors=1, **style)
