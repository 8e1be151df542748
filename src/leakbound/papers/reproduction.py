"""Run experiments, compare them with what is printed, write numbers, figures and one page."""

from __future__ import annotations

import difflib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import PAPERS, Experiment, data, figures
from leakbound.papers.lab import TEXT, Lab, Number, Outcome, Parameter
from leakbound.papers.printed import Claim, Setting, printed, settings

CONTENT = {"name", "title", "scale", "setting", "run", "reason", "settings", "claims"}  # that a page needs of a run
LIBRARIES = {"torch": "torch", "opacus": "dpsgd"}  # and the extra that installs it


@dataclass(frozen=True, eq=False)
class Reproduction:
    """An experiment that was run, or the reason why it was not.

    Parameters
    ----------
    experiment : Experiment
    lab : Lab
        Its scale and seed.
    outcome : Outcome, optional
        None where it was not run.
    reason : str
        Why not.

    Examples
    --------
    >>> from leakbound.papers import reproduce
    >>> found = reproduce("delgrosso2021/section33", quick=True)
    >>> {claim.verdict for claim in found.claims}
    {'identity'}
    """

    experiment: Experiment
    lab: Lab
    outcome: Outcome | None
    reason: str = ""

    @property
    def numbers(self) -> pd.DataFrame:
        """All that the figure shows, a row a number."""
        return self.outcome.numbers if self.outcome else pd.DataFrame()

    @cached_property
    def claims(self) -> list[Claim]:
        """What is printed, ours, and the verdict."""
        if self.lab.set:
            return []  # what is printed is about the paper's values
        known = printed(self.experiment.paper)[self.experiment.figure]
        ours = self.outcome.ours if self.outcome else {}
        tried = self.outcome.tried if self.outcome else {}
        for keys in (ours, *tried.values()):
            if unknown := keys.keys() - known.keys():
                raise ValueError(f"{self.experiment.name}: no printed claim {', '.join(sorted(unknown))}")
        return [
            claim.compared_with(ours.get(key), {name: others[key] for name, others in tried.items() if key in others})
            for key, claim in known.items()
        ]

    def figure(self) -> Figure:
        """Draw the figure from the numbers.

        Raises
        ------
        ValueError
            If the experiment was not run.
        """
        if self.outcome is None:
            raise ValueError(f"{self.experiment.name} was not run: {self.reason}")
        with figures.looking():
            drawn = self.experiment.module.draw(self.outcome.numbers)
            if self.lab.set:
                drawn.suptitle(f"{self._changed()}; what is printed is for the latter".replace(", ", "\n"), fontsize=9)
            return drawn

    def document(self) -> dict[str, Any]:
        """Return the content of its part of the page, as plain values."""
        return {
            "name": self.experiment.name,
            "title": self.experiment.title,
            "scale": "quick" if self.lab.quick else "full",
            "setting": self.lab.setting,
            "set": dict(self.lab.set),
            "seed": self.lab.seed,
            "leakbound": ls.__version__,
            "data": _sources(self.experiment),
            "run": self._run(),
            "reason": self.reason,
            "settings": [asdict(setting) for setting in self._settings_run()],
            "claims": [claim.row() for claim in self.claims],
        }

    def _run(self) -> str:
        """Say what was run, and which values are not the paper's."""
        run = self.outcome.run if self.outcome else ""
        return f"{run} {self._changed()}: nothing in print to compare with." if self.lab.set else run

    def _changed(self) -> str:
        """Say which values were set."""
        return ", ".join(
            f"{parameter.name} = {self.lab.set[parameter.name]:g} in place of the paper's {parameter.value:g}"
            for parameter in parameters_of(self.experiment)
            if parameter.name in self.lab.set
        )

    def _settings_run(self) -> list[Setting]:
        """Return the settings other than the text's that were run, alone or beside it."""
        run = {self.lab.setting, *(self.outcome.tried if self.outcome else ())}
        return [setting for name, setting in settings_of(self.experiment).items() if name in run]

    def same_run(self, document: Mapping[str, Any]) -> bool:
        """Whether a document is that of a run of the same experiment, scale, setting, seed, version and data.

        Data that are not there any more are taken for the same.
        """
        words, own = ("name", "scale", "setting", "set", "seed", "leakbound"), self.document()
        document = {"set": {}, **document}  # older ones have none
        data_of = document.get("data", {})
        same_data = all(data_of.get(name) == source for name, source in own["data"].items())
        return same_data and all(document.get(word) == own[word] for word in words)

    def table(self, width: int = 100, full: bool = False) -> str:
        """Return the answer and some claims, or all of the page, in lines of at most ``width`` columns."""
        return ls.reports.claims_table([self.document()], width, full)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """``numbers.csv``, ``claims.csv``, ``claims.json``, ``figure.png`` and ``figure.svg``, all or none.

        Where the numbers are means over independent trials, ``trials.csv`` has the value of each.

        Raises
        ------
        ValueError
            If the folder exists.
        OSError
            In one line, if it cannot be written.
        """
        target = Path(folder)
        refuse_existing(target)
        with _beside(target) as new:
            text = json.dumps(self.document(), indent=1, allow_nan=False)
            (new / "claims.json").write_text(text + "\n", encoding="utf-8")
            claims_of(self.document()).to_csv(new / "claims.csv", index=False)
            if self.outcome:
                self.numbers.to_csv(new / "numbers.csv", index=False)
                if len(self.outcome.trials):
                    self.outcome.trials.to_csv(new / "trials.csv", index=False)
                for kind in ("png", "svg"):
                    with figures.looking():
                        (new / f"figure.{kind}").write_bytes(figures.as_bytes(self.figure(), kind))


def reproduce(
    name: str,
    *,
    quick: bool = False,
    as_: str = "",
    set: Mapping[str, Number] | None = None,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> Reproduction:
    """Run an experiment of a paper and compare it with what is printed.

    Parameters
    ----------
    name : str
        As ``"izzo2022/figure1"``; all of them are in `leakbound.papers.PAPERS`.
    quick : bool
        Small sizes instead of the paper's own.
    as_ : str
        The one setting to run: ``"text"``, or another that ``leakbound reproduce --list`` names. Unless given, the
        paper's text is followed, and its other settings are run beside it.
    set : mapping of str to float, optional
        Parameters with other values than the paper's, as ``{"C": 20}``; ``leakbound reproduce --list`` names those of
        each experiment. Nothing is then compared with what is printed.
    out : path, optional
        Folder that is made for numbers (CSV), figure (PNG and SVG) and claims (CSV and JSON).
    seed : int
    store : path or URL, optional
        Folder where finished runs stay, so that a run that is killed goes on.
    n_jobs : int, optional
        Worker processes; all cores unless given.

    Returns
    -------
    Reproduction
        Its claims with their verdicts, its numbers and its figure.

    Raises
    ------
    ValueError
        If the name, the setting or a parameter is unknown, with the known ones; if a value is out of range; if data or
        a library is missing, with what to do; if the folder exists.

    Examples
    --------
    >>> import leakbound as ls
    >>> print(ls.reproduce("delgrosso2021/section33", quick=True).claims[0].verdict)
    identity
    """
    experiment = PAPERS.get(name) or _only(name)
    refuse_unknown_setting(experiment, as_)
    values = checked_values(experiment, set or {})
    if reason := lacking(experiment):
        raise ValueError(f"{name}: {reason}")
    if out is not None:
        refuse_existing(Path(out))
    lab = Lab(quick, seed, store, n_jobs, as_, values)
    reproduction = Reproduction(experiment, lab, experiment.module.measure(lab))
    if out is not None:
        reproduction.write(out)
    return reproduction


def settings_of(experiment: Experiment) -> Mapping[str, Setting]:
    """Return the settings of an experiment other than that of the text, by name."""
    return settings(experiment.paper).get(experiment.figure, {})


def refuse_unknown_setting(experiment: Experiment, name: str) -> None:
    """Refuse a setting that an experiment does not have."""
    known = (TEXT, *settings_of(experiment))
    if name and name not in known:
        raise ValueError(f"{experiment.name} has no setting {name!r}; it has {' and '.join(known)}")


def parameters_of(experiment: Experiment) -> tuple[Parameter, ...]:
    """Return the parameters of an experiment that can be set."""
    return getattr(experiment.module, "PARAMETERS", ())


def checked_values(experiment: Experiment, values: Mapping[str, Number]) -> dict[str, Number]:
    """Check values of parameters, and leave out those that are the paper's own."""
    known = {parameter.name: parameter for parameter in (parameters_of(experiment) if values else ())}
    checked: dict[str, Number] = {}
    for name, given in values.items():
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none that can be set"
            raise ValueError(f"{experiment.name} has no parameter {name!r}; {has}")
        value = known[name].checked(given)
        if value != known[name].value:
            checked[name] = value
    return checked


def claims_of(document: Mapping[str, Any]) -> pd.DataFrame:
    """Claims of a document, a row each; below each the same with other settings."""
    rows = []
    for claim in document["claims"]:
        rows.append(
            {name: value for name, value in claim.items() if name != "tried"} | {"setting": document["setting"]}
        )
        rows += [{"experiment": claim["experiment"], "key": claim["key"]} | tried for tried in claim["tried"]]
    return pd.DataFrame(rows, columns=None if rows else ["experiment", "key", "verdict"])


def find(name: str | None = None) -> list[Experiment]:
    """Find the experiments of a name, of a paper, or all."""
    if name is None:
        return list(PAPERS.values())
    matches = [experiment for experiment in PAPERS.values() if name in (experiment.name, experiment.paper)]
    return matches or [_only(name)]


def lacking(experiment: Experiment) -> str:
    """Say what an experiment needs and this machine does not have, with what to do; empty if nothing is missing."""
    for need in experiment.needs:
        if need in LIBRARIES:
            if find_spec(need) is None:
                return f"it needs {need}: pip install 'leakbound[{LIBRARIES[need]}]'"
        elif reason := data.missing(need):
            return reason
    return ""


def finished(folder: Path) -> dict[str, Any] | None:
    """Read the run of an experiment in a folder; None if there is none."""
    file = folder / "claims.json"
    if not file.is_file():
        return None
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError):  # of JSON or of UTF-8
        document = None
    if not isinstance(document, dict) or CONTENT - document.keys():
        raise ValueError(f"{file} is damaged; remove the folder {folder}, and it is made again")
    return document


def refuse_existing(folder: Path) -> None:
    """Refuse to overwrite a result."""
    if os.path.lexists(folder):
        raise ValueError(f"{folder} exists already; remove it, or give another folder (out, --out)")


def _sources(experiment: Experiment) -> dict[str, str]:
    """Where the data of an experiment come from, those that are there."""
    names = [need for need in experiment.needs if need in data.NAMES]
    return {name: data.source(name) for name in names if data.missing(name) is None}


def _only(name: str) -> NoReturn:
    known = [*PAPERS, *(experiment.paper for experiment in PAPERS.values())]
    close = difflib.get_close_matches(name, known, n=1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"no experiment {name!r}{meant}; leakbound reproduce --list names all")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Make a temporary folder next to the target, renamed to it when complete."""
    new = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")  # of this call alone, on every host
    try:
        new.mkdir(parents=True)
        yield new
        new.rename(target)
    except OSError as error:
        raise OSError(f"the folder {target} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
