"""Audits of signals in files: the findings of `evaluate.judge`, without all signals in memory.

Each attack writes its scores to a temporary file, and the metrics of `leakbound.metrics.stored` read them block by
block. The report has the most exposed records and a histogram of all; the table of all records is written to a file.
"""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from leakbound.attacks import Attack
from leakbound.attacks.by_block import score
from leakbound.auditing.evaluate import Judgement, baseline_finding, facts_of, measure, measured_curve, strongest
from leakbound.auditing.evaluate import finding_without_model as without_model
from leakbound.auditing.groups import no_groups_of_files
from leakbound.auditing.observed import FindingSpec, ObservedFiles
from leakbound.auditing.records import baseline_accuracy_of, games_facts, most_exposed_finding, short
from leakbound.bounds import BOUNDS
from leakbound.bounds.generalisation import gap_bound, gap_of_models
from leakbound.core import temporary
from leakbound.core.block_signals import BlockSignals
from leakbound.core.findings import Finding, Scope
from leakbound.core.on_disk import empty_in
from leakbound.core.system import OWNER_ALONE, open_new
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.quality import held_out_accuracy, held_out_of_models
from leakbound.metrics.records import RecordGames, games_won, limits_of_games
from leakbound.reports.report import MOST_RECORDS

Array = np.ndarray
TABLES = (".parquet", ".csv")
MOST_MODELS = 1024
_BYTES_A_SCORE = 50  # in temporary files, measured


def judge_blocks(
    observed: ObservedFiles,
    attacks: Sequence[Attack],
    fpr: Sequence[float],
    confidence: float,
    prior: float = 0.5,
    *,
    tmp: str | os.PathLike[str] | None = None,
    table: Path | None = None,
) -> Judgement:
    """Attack signals in files and measure how far the attacks get; as `leakbound.auditing.evaluate.judge`."""
    signals = observed.signals
    if signals.game.n_targets > MOST_MODELS:
        raise ValueError(
            f"{signals.folder}: at most {MOST_MODELS:,} models are attacked from files, and it has "
            f"{signals.game.n_targets:,} targets: write it with n_targets={MOST_MODELS}"
        )
    if table is not None:
        table.unlink(missing_ok=True)  # that of an earlier audit, if this one has none
    for blocks in (signals.target_blocks, signals.population_blocks):
        for _ in blocks(signals.names):  # what is wrong is said before the first attack
            pass
    findings: list[Finding] = []
    curves = []
    with temporary.folder(tmp) as folder, _full_disk_in_one_line(folder), ExitStack() as of_best:
        best_scores: Scores | None = None
        for attack in attacks:
            with ExitStack() as open_files:
                try:
                    scores = _scores(attack, signals, folder, open_files)
                    measured = list(measure(observed, attack, scores, fpr, confidence, prior))
                    findings += measured
                    if any(finding.value is not None for finding in measured):
                        curves.append(measured_curve(observed, attack.name, scores, confidence))
                except NotApplicable as reason:
                    spec = FindingSpec("accuracy", "lower", attack.name, attack.source)
                    findings.append(observed.finding(spec, reason))
                    continue
                if strongest(findings) == attack.name:  # the files of the strongest attack stay until the end
                    of_best.close()
                    of_best.push(open_files.pop_all())
                    best_scores = scores
        exposure, games, records = _record_risk(observed, best_scores, confidence, table)
    epsilon_spec = FindingSpec("epsilon", "lower", scope=Scope("every"))
    findings += [exposure, observed.finding(epsilon_spec, NotApplicable("claims_in_files"))]
    findings += [*_of_answers(observed, prior, confidence, baseline_finding(observed, prior))]
    best = "" if best_scores is None else best_scores.attack
    facts = facts_of(
        observed, best, games, groups=no_groups_of_files(signals.game.n_targets, "labels" in signals.files)
    )
    return Judgement(findings, curves, records, facts)


@contextmanager
def _full_disk_in_one_line(folder: Path) -> Iterator[None]:
    """Say where there is no room for scores."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(
            f"scores do not fit into {folder.parent}: {error.strerror}; they take about {_BYTES_A_SCORE} bytes a point "
            "and model; name another place (tmp)"
        ) from error


def _scores(attack: Attack, signals: BlockSignals, folder: Path, open_files: ExitStack) -> Scores:
    """Play an attack; its scores are removed with what is open."""
    file = open_files.enter_context(score(attack, signals, folder))
    inflation = (attack.variance_inflation or 1.0) if attack.needs_references and signals.game.leave_one_out else 1.0
    value = np.memmap(file.path, file.dtype, "r", shape=file.shape)
    member = empty_in(folder, file.shape, bool)
    start = 0
    for block in signals.target_members():
        member[start : start + len(block)] = block
        start += len(block)
    return Scores(attack.name, value.T, member.T, attack.source, inflation)


def _record_risk(
    observed: ObservedFiles, scores: Scores | None, confidence: float, table: Path | None
) -> tuple[Finding, Any, Mapping[str, Sequence[Any]]]:
    """Count the games that the strongest attack wins against each record; write all of them, and keep the worst."""
    baseline_accuracy = baseline_accuracy_of(observed)
    name = "" if scores is None else scores.attack
    try:
        if scores is None:
            raise NotApplicable("no_attack")
        games = games_won(scores, confidence, baseline_accuracy=baseline_accuracy)
    except NotApplicable as reason:
        return most_exposed_finding(observed, name, reason), None, {}
    counts = np.bincount(games.won, minlength=games.games + 1)
    limits = limits_of_games(games.games, len(games.won), 1 - confidence)
    worst = {name: np.empty(0, dtype) for name, dtype in (("record", np.int64), ("won", np.int64), ("margin", float))}
    with closing(_Table(observed.name, games, baseline_accuracy, table)) as writer:
        for record, won, margin in _rows(observed, games):
            writer.add(record, won, margin)
            rows = {"record": record, "won": won, "margin": margin}
            worst = {name: np.concatenate([worst[name], rows[name]]) for name in worst}
            # by correct guesses, ties by the mean margin, and then as they come
            order = np.lexsort((-worst["margin"], -worst["won"]))[:MOST_RECORDS]
            worst = {name: values[order] for name, values in worst.items()}
        writer.finish()
    n_won = int(worst["won"][0])
    low = float(limits[n_won])
    finding = most_exposed_finding(observed, name, (n_won, games.games, low, confidence))
    n_exposed = int(counts[limits > baseline_accuracy].sum())
    facts = games_facts(counts, name, n_exposed, games.smallest_detectable, games.confidence, baseline_accuracy)
    return finding, facts, _table_of(observed, games, worst)


def _rows(
    observed: ObservedFiles, games: RecordGames
) -> Iterator[tuple[Int[Array, " B"], Int[Array, " B"], Float[Array, " B"]]]:
    """Yield the indices of the records, the correct guesses and the margins, block by block."""
    start = 0
    for record in observed.signals.target_indices():
        part = slice(start, start + len(record))
        yield record, games.won[part], games.margin[part]
        start = part.stop


def _table_of(observed: ObservedFiles, games: RecordGames, worst: Mapping[str, Array]) -> dict[str, Sequence[Any]]:
    """Put the most exposed records in the columns of a report, in the order of their indices."""
    order = np.argsort(worst["record"], kind="stable")
    record, won, margin = (worst[name][order] for name in ("record", "won", "margin"))
    limits = limits_of_games(games.games, len(games.won), 1 - games.confidence)
    low = limits[won]
    n = len(record)
    return {
        "release": [observed.name] * n,
        "record": record.tolist(),
        "label": [""] * n,
        "games": [games.games] * n,
        "won": won.tolist(),
        "low": low.tolist(),
        "exposed": (low > baseline_accuracy_of(observed)).tolist(),
        "margin": short(margin),
        "log_odds": [None] * n,
        "member": [None] * n,
        "preview": [None] * n,
    }


class _Table:
    """Writes the games against all records to a file, readable by its owner alone."""

    def __init__(self, release: str, games: RecordGames, baseline_accuracy: float, path: Path | None) -> None:
        self.release, self.games, self.path = release, games, path
        self.baseline_accuracy = baseline_accuracy
        self.limits = limits_of_games(games.games, len(games.won), 1 - games.confidence)
        self.part = None if path is None else temporary.part_of(path)
        self._writer: Any = None
        self._file: Any = None
        if self.part is not None and path is not None:
            import_module("leakbound.reports").make_folder(path.parent, private=True)
            self._file = os.fdopen(open_new(self.part, OWNER_ALONE), "wb")

    def add(self, record: Int[Array, " B"], won: Int[Array, " B"], margin: Float[Array, " B"]) -> None:
        """Write some rows."""
        if self._file is None or self.path is None:
            return
        low = self.limits[won]
        columns = {
            "record": record, "won": won, "low": low, "exposed": low > self.baseline_accuracy, "margin": margin,
        }  # fmt: skip
        if self.path.suffix == ".csv":
            if self._writer is None:
                self._file = open_text(self._file)
                self._writer = csv.writer(self._file)
                self._writer.writerow(["release", "games", *columns])
            rows = zip(*(values.tolist() for values in columns.values()), strict=True)
            self._writer.writerows([self.release, self.games.games, *row] for row in rows)
            return
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        n = len(record)
        batch = arrow.table(
            {"release": [self.release] * n, "games": np.full(n, self.games.games, dtype=np.int32), **columns}
        )
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, batch.schema)
        self._writer.write_table(batch)

    def finish(self) -> None:
        """Give the complete file its name."""
        if self.part is None or self.path is None:
            return
        self._release()
        self.part.replace(self.path)

    def close(self) -> None:
        """Remove a file that was not finished."""
        self._release()
        if self.part is not None:
            self.part.unlink(missing_ok=True)

    def _release(self) -> None:
        if self.path is not None and self.path.suffix == ".parquet" and self._writer is not None:
            self._writer.close()
        self._writer = None
        if self._file is not None:
            self._file.close()
        self._file = None


def open_text(file: Any) -> Any:
    """Write text to a file that is open for bytes."""
    return import_module("io").TextIOWrapper(file, encoding="utf-8", newline="")


def refuse_table(path: str | os.PathLike[str] | None) -> Path | None:
    """Check the name of the file for the table of all records."""
    if path is None:
        return None
    path = Path(path)
    if path.suffix not in TABLES:
        raise ValueError(f"records: {path} must end in {' or '.join(TABLES)}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError(f"records: {path} needs pyarrow, which is not installed; name a file that ends in .csv")
    return path


def _of_answers(observed: ObservedFiles, prior: float, confidence: float, baseline: Finding) -> Iterator[Finding]:
    """Yield what follows from who is classified correctly, and the baseline, in the order of a report."""
    signals = observed.signals
    gap_spec = FindingSpec("accuracy", "lower", source=BOUNDS["gap"].source, operating_point={"prior": prior})
    if "correct" not in signals.names:
        try:
            signals.no_signal("correct")
        except NotApplicable as reason:
            yield observed.finding(gap_spec, reason)
        yield from (baseline, *without_model(observed))
        return
    n_right, n = np.zeros((2, signals.n_targets, 2))
    kept = []  # of a single model
    for block in signals.target_blocks(["correct"]):
        right, member = block.targets("correct"), block.game.target_member
        for side in (0, 1):
            where = member == bool(side)
            n_right[:, side] += (right * where).sum(axis=1)
            n[:, side] += where.sum(axis=1)
        if signals.n_targets == 1:
            kept.append((right, member))
    if (n == 0).any():
        yield observed.finding(gap_spec, NotApplicable("no_members_and_others"))
        yield from (baseline, *without_model(observed))
        return
    test, training = (n_right / n).T
    if kept:
        right, member = (np.concatenate(arrays, axis=1) for arrays in zip(*kept, strict=True))
        gap, quality = (
            gap_bound(1.0 - right, member, 0.0, 1.0, prior, confidence),
            held_out_accuracy(right, member, confidence),
        )
    else:
        gap = gap_of_models(1 - training, 1 - test, 0.0, 1.0, prior, confidence)
        quality = held_out_of_models(training, test, confidence)
    yield observed.finding(gap_spec, gap)
    yield from (baseline, *without_model(observed))
    source = "student1908" if quality.method[0].id in ("cluster_t", "student_t") else "clopper1934"
    detail = {name: float(f"{value:.12g}") for name, value in quality.detail.items()}
    spec = FindingSpec("test_accuracy", "point", source=source, scope=Scope("average"))
    yield observed.finding(spec, replace(quality, detail=detail))
