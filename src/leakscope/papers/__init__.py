"""Five papers, reproduced and corrected: each experiment is a page of code that reads like the paper's section.

The files of an experiment import leakscope as everybody does, by its public names. `PAPERS` holds what there is;
``leakscope reproduce NAME`` and `leakscope.reproduce` run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope.papers.reproduction import Reproduction, reproduce


@dataclass(frozen=True)
class Experiment:
    """A figure, a table or a statement of a paper.

    Parameters
    ----------
    name : str
        Paper and figure, ``"izzo2022/figure1"``; the module is ``leakscope.papers.izzo2022.figure1``, whose function
        ``measure`` makes the numbers and whose function ``draw`` draws them.
    title : str
        What it shows.
    needs : tuple of str
        Data sets, and ``"torch"`` or ``"opacus"``.

    Examples
    --------
    >>> experiment = Experiment("izzo2022/figure2", "A private covariance for synthetic data")
    >>> experiment.paper, experiment.figure
    ('izzo2022', 'figure2')
    """

    name: str
    title: str
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
        return import_module(f"leakscope.papers.{self.paper}.{self.figure}")


_ALL = (
    Experiment("izzo2022/figure1", "Noise for membership privacy and for differential privacy: one over a sum"),
    Experiment("izzo2022/figure2", "A private covariance for synthetic data"),
    Experiment("izzo2022/theorem5", "Membership privacy without differential privacy"),
    Experiment("azize2024/figure1", "An attacker who tests for another record than the target"),
    Experiment("azize2024/table1", "Leakage scores under noise, sub-sampling and a similar target"),
    Experiment("azize2024/figure2", "How much each record leaks through a mean"),
    Experiment("azize2024/canaries", "Canaries for an audit of DP-SGD in one run", ("mnist", "torch")),
    Experiment("delgrosso2021/figure3", "The Bayes attacker of a linear regression between his bounds"),
    Experiment("delgrosso2021/section33", "A model that generalises and tells everybody who was in"),
    Experiment(
        "delgrosso2021/figure4",
        "Attacks on networks for images, and the bound from their gap",
        ("mnist", "fashion", "cifar10", "torch"),
    ),
    Experiment(
        "delgrosso2021/table1",
        "Precision of three attacks where nearly all members are found",
        ("mnist", "fashion", "cifar10", "torch"),
    ),
    Experiment(
        "delgrosso2021/figure5", "Whose hand wrote this digit: attribute and membership", ("pendigits", "torch")
    ),
    Experiment("sablayrolles2019/figure1", "One threshold for all records, or one for each"),
    Experiment("sablayrolles2019/table1", "Logistic regression on features of a network", ("cifar10", "torch")),
    Experiment("sablayrolles2019/table2", "A small convolutional network", ("cifar10", "torch")),
    Experiment("sablayrolles2019/table3", "What augmentation hides", ("cifar10", "torch")),
    Experiment("lowy2024/figure1", "Exponential mechanism: privacy against the spread of the data"),
    Experiment("lowy2024/figure2", "Exponential mechanism: privacy against the clipping of outliers"),
    Experiment("lowy2024/figure3", "Exponential mechanism: privacy against dimension"),
    Experiment("lowy2024/figure4", "Gaussian mechanism: privacy against epsilon"),
    Experiment("lowy2024/figure5", "Gaussian mechanism: privacy against the clipping of outliers"),
    Experiment("lowy2024/figure6", "Gaussian mechanism: privacy against dimension"),
)
PAPERS = {experiment.name: experiment for experiment in _ALL}

__all__ = ["PAPERS", "Experiment", "Reproduction", "reproduce"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in ("Reproduction", "reproduce"):
        return getattr(import_module(f"{__name__}.reproduction"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
