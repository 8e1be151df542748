"""One record is changed and the released value is held: what else differs in what is published is listed here.

The true noise depends on the value, so that a test needs a source of its own: `held` releases the same numbers whatever
the file. What is published may then differ in nothing under promise ``anyone``, and under ``file`` and ``drawn`` in the
numbers that the certificate names under "Tells of the data": scale and shape of a noise that was not declared, and
under ``file`` the certified curve, rounded up to steps of 1, 2 and 5.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.protection import of_all
from leakbound.protection.promises.drawn import half
from leakbound.reports import Report
from leakbound.reports.render.csv_table import released_csv
from tests.marks import nightly
from tests.promising import protect_file

pytestmark = pytest.mark.usefixtures("as_users_run_it")

# What may differ, by its path in the JSON; numbers of lists are *.
DIGESTS = ("sha256", "about.certificate.entry.digest")
TELLS_OF_THE_DATA = (
    "about.certificate.noise.scale",
    "about.certificate.noise.deviations.*",
    "about.certificate.noise.correlations.*.*",
    "about.certificate.noise.rms.*",
    "about.certificate.noise.grid.*",
    "about.values.*.noise_std",
    "about.table.cells.*.noise_std",
    "about.table.cells.*.low",  # of the interval of the noise
    "about.table.cells.*.high",
    "about.statistics.*.noise.scale",
    "about.statistics.*.noise.deviations.*",
    "about.statistics.*.noise.correlations.*.*",
    "about.statistics.*.noise.rms.*",
    "about.statistics.*.noise.grid.*",
    "about.statistics.*.table.cells.*.noise_std",
    "about.statistics.*.table.cells.*.low",
    "about.statistics.*.table.cells.*.high",
    "findings.*.value(noise_rms)",
)
TELLS_BY_ITS_CURVE = (  # of a left-out record: the mean over pairs of this file
    "findings.*.value(tpr)",
    "curves.*.tradeoff.fpr.*",
    "curves.*.tradeoff.fnr.*",
)
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "anyone": DIGESTS,
    "file": (*DIGESTS, *TELLS_OF_THE_DATA, *TELLS_BY_ITS_CURVE),
    "drawn": (*DIGESTS, *TELLS_OF_THE_DATA),
}
N = 90
RANGES = "pay=0:20000,hours=0:60"
LEVELS = {"sector": ["care", "trade"], "ill": ["0", "1"]}
EDGES = {"edges": [0, 20, 40, 60]}
SEVERAL = [
    {"statistic": "mean", "drop": ["hours", "sector"]},
    {"statistic": "table", "by": "sector", "levels": {"sector": LEVELS["sector"]}},
]
LOGISTIC = {"statistic": "logistic", "drop": ["sector"], "label": "ill"}
MEANS = {"statistic": "mean", "by": "sector", "levels": {"sector": LEVELS["sector"]}}
FEW = {"drop": ["sector", "ill"]}
OF_FILE: Mapping[str, dict[str, Any]] = {
    "mean": {"statistic": "mean", **FEW},
    "sum": {"statistic": "sum", **FEW},
    "second_moment": {"statistic": "second_moment", **FEW},
    "covariance": {"statistic": "covariance", "drop": ["sector", "ill", "pay"]},
    "correlation": {"statistic": "correlation", **FEW},
    "ratio": {"statistic": "ratio", **FEW},
    "histogram": {"statistic": "histogram", "by": "hours", "set": EDGES},
    "table": {"statistic": "table", "by": "sector", "levels": {"sector": LEVELS["sector"]}},
    "means": {**MEANS, "drop": ["ill"]},
    "quantiles": {"statistic": "quantiles", "drop": ["sector", "ill", "hours"], "eta": 0.3},
    "ols": {"statistic": "ols", **FEW, "label": "pay"},
    "standard_errors": {"statistic": "standard_errors", **FEW, "label": "pay"},
    "ridge": {"statistic": "ridge", **FEW, "label": "pay"},
    "logistic": LOGISTIC,
    "poisson": {"statistic": "poisson", "drop": ["sector", "pay"], "label": "ill"},
    "huber": {"statistic": "huber", **FEW, "label": "pay", "set": {"threshold": 500.0}},
    "function": {"statistic": "numpy:mean", **FEW},
}
OPTIONS: Mapping[str, dict[str, Any]] = {
    "several": {"statistic": SEVERAL, "drop": []},
    "declared scale": {**OF_FILE["mean"], "scale": [900.0, 20.0]},
    "diagonal": {**OF_FILE["ols"], "noise": "gaussian_diagonal"},
    "declared columns": {**LOGISTIC, "set": {"centre": [2000, 30], "spread": [1500, 15]}},
    "groups": {**OF_FILE["mean"], "group": "person", "drop": ["sector", "ill", "id"]},
    "table of groups": {**OF_FILE["table"], "group": "person", "drop": ["id"]},
    "merged, not below 0": {
        "statistic": "table",
        "by": ["sector", "ill"],
        "levels": LEVELS,
        "merge": {"sector": ["care:trade"]},
        "non_negative": True,
    },
    "compared": {**OF_FILE["mean"], "compare": True},
    "rules": {**OF_FILE["means"], "rules": {"minimum": 40}},
    "missing": {**OF_FILE["mean"], "drop_missing": True},
    "budget": {**OF_FILE["mean"], "budget": 0.4},
    "attacked": {**OF_FILE["mean"], "games": 50},
}
UNDER: Mapping[str, dict[str, Any]] = {"anyone": {"ranges": RANGES}, "file": {}, "drawn": {"n_jobs": 1}}
EVERY_CASE = [
    *(("anyone", name) for name in ("mean", "sum", "second_moment", "covariance", "histogram", "table", "means")),
    *(("anyone", name) for name in ("several", "merged, not below 0", "compared", "rules", "budget")),
    *(("file", name) for name in (*OF_FILE, *OPTIONS)),
    *(("drawn", name) for name in OF_FILE if name not in ("means", "table")),
    *(("drawn", name) for name in ("diagonal", "declared columns", "compared", "declared scale", "attacked")),
]
WITH_CHARTS = [("anyone", "mean"), ("file", "mean"), ("drawn", "mean")]
# By day each promise and each statistic once, most without charts, which take two thirds of the time.
WITHOUT_CHARTS = [
    *(("anyone", name) for name in ("second_moment", "covariance", "table", "means")),
    *(("file", name) for name in ("correlation", "ratio", "quantiles", "ols", "standard_errors", "ridge")),
    *(("file", name) for name in ("logistic", "poisson", "huber", "function", "declared scale")),
    *(("drawn", name) for name in ("sum", "histogram")),
]
AT_NIGHT = [nightly(*case) for case in EVERY_CASE if case not in WITH_CHARTS]


def people(change: bool, several: bool) -> pd.DataFrame:
    """Ninety records of thirty people; the changed one is far from all others, of another level, another person's."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"id": np.arange(N), "person": np.arange(N) % 30})
    frame["pay"] = rng.lognormal(7.5, 0.5, N).round(2)
    frame["hours"] = rng.integers(5, 56, N)
    frame["sector"] = rng.choice(["care", "trade"], N)
    frame["ill"] = (rng.uniform(size=N) < 0.5).astype(int)
    if change:
        is_care = frame.loc[7, "sector"] == "care"
        frame.loc[7, ["pay", "hours"]] = [19_000.0, 59]
        frame.loc[7, "ill"] = 1 - frame.loc[7, "ill"]
        frame.loc[7, "sector"] = "trade" if is_care else "care"
        frame.loc[7, "person"] = 8
        if several:  # how many rows a person has is theirs, too
            frame = pd.concat([frame, frame[7:8].assign(id=N)])
    return frame


def test_by_day_every_promise_and_every_statistic_is_run() -> None:
    by_day = [*WITH_CHARTS, *WITHOUT_CHARTS]
    assert {promise for promise, _ in by_day} == set(UNDER)
    assert {case for _, case in by_day} >= set(OF_FILE)
    assert set(by_day) <= set(EVERY_CASE)


@pytest.fixture
def held(monkeypatch) -> None:
    """Release the same numbers whatever the file."""

    def of_ledger(ledger, prepared, exact, digest):
        return 1000.0 + np.arange(len(exact))

    def of_draw(mechanism, found, member, rng):
        return 1000.0 + np.arange(mechanism.d)

    monkeypatch.setattr(of_all, "_with_noise", of_ledger)
    monkeypatch.setattr(half, "_released", of_draw)


def made(promise: str, words: Mapping[str, Any], folder: Path, change: bool) -> Any:
    folder = folder / str(change)
    folder.mkdir()
    people(change, "group" in words).to_csv(folder / "people.csv", index=False)
    fields = {"eta": 0.2, "games": 0, "insecure_seed": 5, **UNDER[promise], **words}
    statistic = fields["statistic"]
    if "group" not in fields:
        fields["id"] = "id"
        if isinstance(statistic, str):
            fields["drop"] = [*fields.get("drop", []), "person"]
        else:
            fields["statistic"] = [{**each, "drop": [*each.get("drop", []), "person"]} for each in statistic]
            fields.pop("drop")
    if promise == "anyone":
        dropped = fields.get("drop", []) if isinstance(statistic, str) else ["hours"]
        fields["ranges"] = ",".join(each for each in RANGES.split(",") if each.partition("=")[0] not in dropped)
        if statistic in ("table", "histogram"):
            fields.pop("ranges")
        fields.pop("games")
    if promise == "drawn":
        fields.setdefault("fits", 60)
        if statistic in ("mean", "sum", "second_moment", "histogram"):
            fields.pop("fits")
        fields["eta"] = 0.35
        if fields.get("noise") == "gaussian_diagonal":
            fields["noise"] = "gaussian"
    else:
        fields["ledger"] = str(folder / "ledger")
    return protect_file(data=str(folder / "people.csv"), promise=promise, **fields)


def differing(one: Any, two: Any, path: str = "", kind: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths of what differs, with both values; a finding's value is named by its quantity."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for name in one:
            kind = one.get("quantity", "") if path == "findings.*" and name == "value" else ""
            yield from differing(one[name], two[name], f"{path}.{name}" if path else name, kind)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for first, second in zip(one, two, strict=True):
            yield from differing(first, second, f"{path}.*")
    elif one != two:
        yield (f"{path}({kind})" if kind else path), one, two


def with_those_of(one: Any, two: Any, path: str, allowed: tuple[str, ...]) -> Any:
    """Return the second with what may differ from the first."""
    if isinstance(one, dict) and isinstance(two, dict):
        content = {}
        for name, value in two.items():
            inner = f"{path}.{name}" if path else name
            inner += f"({two['quantity']})" if inner == "findings.*.value" else ""
            content[name] = with_those_of(one.get(name), value, inner, allowed)
        return content
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [with_those_of(first, second, f"{path}.*", allowed) for first, second in zip(one, two, strict=True)]
    return one if path in allowed else two


def certified_rates(document: Mapping[str, Any]) -> set[tuple[float, float]]:
    """False and true positive rate of every published limit."""
    limits = [each for each in document["findings"] if each["quantity"] == "tpr"]
    return {(each["operating_point"]["fpr"], round(each["value"], 12)) for each in limits}


def allowed_rates(document: Mapping[str, Any]) -> set[tuple[float, float]]:
    """The steps 1, 2 and 5 times a power of ten, and what follows from eta or from the budget of the ledger alone."""
    certificate = document["about"]["certificate"]
    declared = (certificate["eta"], certificate["entry"]["budget"])
    steps = [round(digit * 10.0**power, 12) for digit in (1, 2, 5) for power in range(-6, 1)]
    rates = (0.01, 0.001)
    by_steps = {(fpr, value) for fpr in rates for value in steps}
    return by_steps | {(fpr, round(fpr + 2 * eta, 12)) for fpr in rates for eta in declared}


def compare(promise: str, case: str, folder: Path) -> None:
    """Compare the public files of the data and of those with one record changed."""
    words = OF_FILE[case] if case in OF_FILE else OPTIONS[case]
    one, two = (made(promise, words, folder, change).certificate for change in (False, True))
    first, second = json.loads(one.to_json()), json.loads(two.to_json())
    allowed = DIGESTS if "scale" in words else ALLOWED[promise]
    assert not [each for each in differing(first, second) if each[0] not in allowed]
    if promise == "file" and "scale" not in words:
        assert certified_rates(first) <= allowed_rates(first)
        assert certified_rates(second) <= allowed_rates(second)
    # with what may differ taken from the first, page and CSV are the same bytes
    second = with_those_of(first, second, "", allowed)
    second["sha256"] = first["sha256"]
    file = folder / "second.json"
    file.write_text(json.dumps(second))
    again = Report.from_json(file)
    assert again.to_html() == one.to_html()
    assert released_csv(again) == released_csv(one)
    # and page and CSV are functions of the JSON
    file.write_text(two.to_json())
    assert Report.from_json(file).to_html() == two.to_html()
    assert released_csv(Report.from_json(file)) == released_csv(two)


@pytest.mark.by_day("anyone-mean")
@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(("promise", "case"), [*WITH_CHARTS, *AT_NIGHT])
def test_one_record_changes_nothing_else(promise, case, tmp_path) -> None:
    compare(promise, case, tmp_path)


@pytest.mark.by_day("anyone-second_moment", "drawn-histogram")
@pytest.mark.usefixtures("held", "without_charts")
@pytest.mark.parametrize(("promise", "case"), WITHOUT_CHARTS)
def test_one_record_changes_nothing_else_beside_charts(promise, case, tmp_path) -> None:
    compare(promise, case, tmp_path)
