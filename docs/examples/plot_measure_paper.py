"""
Figure for a paper
==================

On axes of your own, ``report.plot(ax)`` draws labelled lines in the style of Matplotlib that is in force, told apart by
their dashes. This one is as wide as a column, in grey. ``fig.savefig("roc.pdf")`` writes it for a paper, as does the
ending ``.pgf``, for which TeX must be installed.
"""

import tempfile
from pathlib import Path

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import leakbound as ls
from leakbound.attacks import in_moments, out_moments


def mean_difference(signals):
    """How much nearer the log-odds are to those of models with the record."""
    own = signals.targets("log_odds")
    return abs(own - out_moments(signals, "log_odds").mean) - abs(own - in_moments(signals, "log_odds").mean)


X, y = load_digits(return_X_y=True)
forest = RandomForestClassifier(n_estimators=10)
report = ls.audit(forest, X[:500], y[:500], n_models=16, attacks=["loss", "lira", "rmia", mean_difference])

with plt.rc_context({"axes.prop_cycle": plt.cycler(color=["0", "0.35", "0.6"]), "font.size": 8}):
    fig, ax = plt.subplots(figsize=(3.4, 2.6), layout="constrained")
    report.plot(ax, attacks=["lira", "loss", "mean_difference"])
fig.savefig(Path(tempfile.mkdtemp()) / "roc.pdf")
