"""Five papers, reproduced and corrected: each experiment is a page of code that reads like the paper's section.

The files of an experiment import leakbound as everybody does, by its public names. `PAPERS` holds what there is;
``leakbound reproduce NAME`` and `leakbound.reproduce` run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.papers.reproduction import Reproduction, reproduce


@dataclass(frozen=True)
class Experiment:
    """A figure, a table or a statement of a paper.

    Parameters
    ----------
    name : str
        Paper and figure, ``"izzo2022/figure1"``; the module is ``leakbound.papers.izzo2022.figure1``, whose function
        ``measure`` makes the numbers and whose function ``draw`` draws them.
    title : str
        What it shows.
    use : str
        What the idea is good for.
    needs : tuple of str
        Data sets, and ``"torch"`` or ``"opacus"``.

    Examples
    --------
    >>> experiment = Experiment("izzo2022/figure2", "A private covariance", "Whether that pays for a matrix")
    >>> experiment.paper, experiment.figure
    ('izzo2022', 'figure2')
    """

    name: str
    title: str
    use: str
    needs: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """Its key in the bibliography."""
        return self.name.partition("/")[0]

    @property
    def figure(self) -> str:
        """The part of the name after the paper."""
        return self.name.partition("/")[2]

    @property
    def module(self) -> Any:
        """Where it is written."""
        return import_module(f"leakbound.papers.{self.paper}.{self.figure}")


_ALL = (
    Experiment(
        "izzo2022/figure1",
        "Noise for membership privacy and for differential privacy: one over a sum",
        "Less noise where one rare half of the data has all the sensitivity",
    ),
    Experiment("izzo2022/figure2", "A private covariance for synthetic data", "Whether that pays for a covariance"),
    Experiment(
        "izzo2022/theorem5",
        "Membership privacy without differential privacy",
        "A promise about membership is weaker than differential privacy",
    ),
    Experiment(
        "azize2024/figure1",
        "An attacker who tests for another record than the target",
        "How much an attacker loses who knows the target only roughly",
    ),
    Experiment(
        "azize2024/table1",
        "Leakage scores under noise, sub-sampling and a similar target",
        "Which defences protect the most exposed record, and by how much",
    ),
    Experiment(
        "azize2024/figure2",
        "How much each record leaks through a mean",
        "Which records of a published mean are exposed",
    ),
    Experiment(
        "azize2024/canaries",
        "Canaries for an audit of DP-SGD in one run",
        "Canaries that are easy to find make an audit tighter",
        ("mnist", "torch"),
    ),
    Experiment(
        "delgrosso2021/figure3",
        "The Bayes attacker of a linear regression between his bounds",
        "The best possible attack is computed, not guessed",
    ),
    Experiment(
        "delgrosso2021/section33",
        "A model that generalises and tells everybody who was in",
        "No gap between training and test error does not mean no leak",
    ),
    Experiment(
        "delgrosso2021/figure4",
        "Attacks on networks for images, and the bound from their gap",
        "The error gap alone proves a least leak of a network",
        ("mnist", "fashion", "cifar10", "torch"),
    ),
    Experiment(
        "delgrosso2021/table1",
        "Precision of three attacks where nearly all members are found",
        "How few false alarms an attack has that finds everybody",
        ("mnist", "fashion", "cifar10", "torch"),
    ),
    Experiment(
        "delgrosso2021/figure5",
        "Whose hand wrote this digit: attribute and membership",
        "Whether a model tells a property of its training records",
        ("pendigits", "torch"),
    ),
    Experiment(
        "sablayrolles2019/figure1",
        "One threshold for all records, or one for each",
        "Why records are attacked with thresholds of their own",
    ),
    Experiment(
        "sablayrolles2019/table1",
        "Logistic regression on features of a network",
        "White-box access brings little where the loss is known",
        ("cifar10", "torch"),
    ),
    Experiment(
        "sablayrolles2019/table2",
        "A small convolutional network",
        "How much shadow models bring for a network",
        ("cifar10", "torch"),
    ),
    Experiment(
        "sablayrolles2019/table3", "What augmentation hides", "How much augmentation hides", ("cifar10", "torch")
    ),
    Experiment(
        "lowy2024/figure1",
        "Exponential mechanism: privacy against the spread of the data",
        "Alike records need less protection from one another",
    ),
    Experiment(
        "lowy2024/figure2",
        "Exponential mechanism: privacy against the clipping of outliers",
        "A clip far beyond the data makes a large epsilon look bad",
    ),
    Experiment("lowy2024/figure3", "Exponential mechanism: privacy against dimension", "The same in many dimensions"),
    Experiment(
        "lowy2024/figure4",
        "Gaussian mechanism: privacy against epsilon",
        "What a large epsilon means for an attacker who is not sure who is in",
    ),
    Experiment(
        "lowy2024/figure5",
        "Gaussian mechanism: privacy against the clipping of outliers",
        "The same with outliers, who keep the risk",
    ),
    Experiment(
        "lowy2024/figure6", "Gaussian mechanism: privacy against dimension", "The same in many dimensions, for a mean"
    ),
)
PAPERS = {experiment.name: experiment for experiment in _ALL}

__all__ = ["PAPERS", "Experiment", "Reproduction", "reproduce"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in ("Reproduction", "reproduce"):
        return getattr(import_module(f"{__name__}.reproduction"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
