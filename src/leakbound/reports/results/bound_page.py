"""What ``bound.md.jinja`` is handed: every number as finished text, every sentence by its id."""

from __future__ import annotations

from dataclasses import replace

from leakbound.core import reasons
from leakbound.core.findings import Finding, Term
from leakbound.reports import Report, phrases
from leakbound.reports.about import BoundAbout
from leakbound.reports.numbers import count, near, percent, percent_at_most
from leakbound.reports.phrases import of_cells, place, plural, row_word
from leakbound.reports.publication import is_for_owner
from leakbound.reports.results.bound import BoundResult, bound_result, curve_name
from leakbound.reports.results.curves import SMALL_ADVANTAGE, formula_of
from leakbound.reports.results.dots import Dot
from leakbound.reports.results.findings import (
    FindingRow,
    Text,
    finding_row,
    interval_head,
    quantity_of,
    value_of,
)
from leakbound.reports.results.made import Named, made
from leakbound.reports.results.parts import Part
from leakbound.reports.results.quantities import NO_DIFFERENCE, shown
from leakbound.reports.results.ranking import MOST, Ranking
from leakbound.reports.results.words import capital, cited, listed, several, unit_words
from leakbound.reports.sentences import Sentence, Texts, in_text, sentences

LEAST_ROWS = 20  # of fewer a histogram shows less than the table
LONGEST = 160  # characters of a name in the table
NAME = 48  # of one in a terminal
FIRST = 3  # rows of the ranking that a terminal shows
MOST_ACCURACIES = 6  # in the chart of all
MOST_SHORT = 8  # numbers of the headline's scope that a terminal shows
FOLLOWS = ("eta", "advantage", "ppv")  # from accuracy and TPR: a terminal leaves them out beside an accuracy
COUNTED = {"table", "total", "pmp", "leave-one-out"}  # bounds whose subject says how many records there are
NO_ACCURACY = dict.fromkeys(
    ("drawn", "is_of_everybody", "failure", "baseline", "peers", "rates", "fraction", "meanings"), ()
)  # what is said of an accuracy alone
SIGNS = {"upper": "≤ ", "lower": "≥ ", "point": ""}


def bound_page(report: Report) -> Texts:
    """Write a bound down."""
    result = bound_result(report)
    about = result.about
    size = several(about.data.records, about.unit) if about.data else ""
    return Texts(
        title=about.title or about.question,
        subject=about.subject,
        records="" if _is_counted(about) else size,
        date=about.date,
        **unit_words(about.unit),
        is_for_owner=is_for_owner(report),
        is_all_internal=all(finding.per_record for finding in result.findings),
        was_attacked=any(curve.role == "measured" for curve in result.curves),
        answer=_answer(result),
        theorem=Texts(says=_sentence(result, f"bound.{about.bound}"), source=cited(about.theorem.source)),
        dots=dots_of(result),
        ceiling=_ceiling(result) if result.curves else None,
        ranking=None if result.ranking is None else _exposed(result.ranking, about.unit),
        short=_short(result),
        tables=_tables(result),
        n_findings=several(len(result.findings), "number"),
        interval=interval_head(about.confidence),
        data=about.data and Texts(name=about.data.name, records=size, digest=about.data.digest),
        made=made(report, result.parts),
    )


def _is_counted(about: BoundAbout) -> bool:
    """Whether the subject says how many records there are: of a leakage, unless the mean is of another number."""
    return about.bound in COUNTED or (about.bound == "leakage" and not about.plan.get("released"))


def _sentence(result: BoundResult, name: str, **gaps: Text) -> Sentence:
    """Name a sentence, whose gaps are the words for records and cells, and others."""
    row = row_word(result.about)
    return Sentence(name, {**unit_words(result.about.unit), "row": row, "rows": plural(row), **gaps})


def _answer(result: BoundResult) -> Texts:
    """Say what the theorem allows, in cases of 100 where it bounds an accuracy."""
    head = result.headline
    if head is None:
        return _no_answer(result)
    asymptotic = "_asymptotic" if head.status == "asymptotic" else ""
    if head.quantity != "accuracy":
        gaps = {"quantity": _quantity(result, head), "value": value_of(head)}
        side = _side(f"{head.bound_type}{asymptotic}")
        return Texts(
            sentence=Sentence(f"answer.number_{head.bound_type}", gaps),
            right=value_of(head),
            side=side,
            remarks=_caveat(head),
            **NO_ACCURACY,
        )
    right = shown(head).value
    is_sampled = head.confidence is not None and head.confidence < 1 and head.status == "certified"
    likelier = "out" if result.prior < 0.5 else "in"
    return Texts(
        sentence=Sentence(f"answer.{head.bound_type}{asymptotic}", {"whom": _target(result, head), "right": right}),
        right=right,
        side=_side(f"of_100_{head.bound_type}{asymptotic}"),
        drawn=_drawn(result, head),
        is_of_everybody=_is_of_everybody(head),
        failure=percent(1 - (head.confidence or 0.0)) if is_sampled else "",
        baseline=Sentence(f"baseline.likelier_{likelier}", {"right": _of_100(result.prior_accuracy)}),
        peers=[_peer(result, finding) for finding in result.peers],
        remarks=[*_remarks(result, head), *_caveat(head)],
        rates=_rates(result, head),
        fraction=Sentence("fraction.half") if result.prior == 0.5 else percent(result.prior),
        meanings=_meanings(result),
    )


def _no_answer(result: BoundResult) -> Texts:
    """Say why there is no number."""
    why: list[Text] = [reasons.words(finding.reason) for finding in result.findings if finding.reason]
    reason = why[0] if why else Sentence("answer.no_finding")
    return Texts(
        sentence=Sentence("answer.nothing", {"reason": reason}),
        right="—",
        side=None,
        remarks=(),
        **NO_ACCURACY,
    )


def _side(name: str) -> Sentence | None:
    """Say which side of the number is bounded; nothing of a plain value."""
    return Sentence(f"side.{name}") if f"side.{name}" in sentences() else None


def _of_100(accuracy: float) -> str:
    return near(100 * accuracy, 1).removesuffix(".0")


def _quantity(result: BoundResult, finding: Finding) -> Sentence:
    """Name a quantity, and whom it is about."""
    part = Part(finding.release, (finding,), result.about, finding.scope)
    quantity = quantity_of(finding, result.about.unit)
    if part.of_all:
        return quantity
    whom = phrases.title(part.release, part.scope, row_word(result.about))
    return Sentence("at.whom", {"quantity": quantity, "whom": whom})


def _drawn(result: BoundResult, head: Finding) -> Sentence | None:
    """Say which records are in, where the game draws them: the number is about no other game."""
    data = result.about.data
    if head.game is None or f"drawn.{head.game.id}" not in sentences() or data is None:
        return None
    return _sentence(result, f"drawn.{head.game.id}", **(in_text(head.game.values) | {"n": count(data.records)}))


def _is_of_everybody(head: Finding) -> bool:
    """Tell whether a number holds for all: what holds for the most exposed record does."""
    return head.bound_type == "upper" and head.scope.kind in ("every", "worst")


def _target(result: BoundResult, head: Finding) -> Sentence:
    """Name whose membership is guessed."""
    if head.scope.kind == "average":
        return _sentence(result, "whom.chosen")
    if _is_of_everybody(head):
        return _sentence(result, "whom.given")
    if head.scope.kind == "every":
        return _sentence(result, "whom.some")
    whom = _sentence(result, f"whom.{head.scope.kind}")
    return _sentence(result, "whom.of_cell", cell=whom) if of_cells(result.about) else whom


def _peer(result: BoundResult, finding: Finding) -> Sentence:
    """Write the same number for another record, without its index."""
    whom: Text = _sentence(result, f"whom.{finding.scope.kind}")
    if finding.release:
        whom = phrases.title(finding.release, finding.scope.unnamed, row_word(result.about))
    return Sentence(f"peer.{finding.bound_type}", {"whom": whom, "right": shown(finding).value})


def _remarks(result: BoundResult, head: Finding) -> list[Sentence]:
    """Say that a bound excludes nothing, or leaves nothing."""
    value, baseline = head.value or 0.0, result.prior_accuracy
    name = ""
    if head.scope.kind == "average":
        name = "no_particular"
    elif head.bound_type == "upper" and value >= 1:
        name = "certain" if Term("exact") in head.method else "excludes_nothing"
    elif value <= baseline:
        name = "shows_nothing" if head.bound_type == "lower" else "guessing"
    elif head.bound_type != "lower" and value < baseline + NO_DIFFERENCE:
        name = "hardly"
    return [_sentence(result, f"remark.{name}")] if name else []


def _caveat(head: Finding) -> list[Sentence]:
    return [Sentence(f"remark.{head.status}")] if head.status in ("asymptotic", "estimated") else []


def _rates(result: BoundResult, head: Finding) -> list[Sentence]:
    """State the members found at the false positive rates, for the scope and the kind of the headline."""
    by_fpr: dict[float, Sentence] = {}
    for finding in result.findings:
        is_like_head = (finding.bound_type, finding.status, place(finding)) == (
            head.bound_type,
            head.status,
            place(head),
        )
        if is_like_head and finding.quantity == "tpr" and finding.value is not None and not finding.attack:
            fpr = finding.operating_point.get("fpr", 0.0)
            rate = Sentence(f"rate.{finding.bound_type}", {"fpr": percent(fpr), "found": value_of(finding)})
            by_fpr.setdefault(fpr, rate)
    return list(by_fpr.values())


def _meanings(result: BoundResult) -> list[Sentence]:
    """Explain the bound types that are proved."""
    proved = [finding.bound_type for finding in result.successes if finding.status == "certified"]
    return [Sentence(f"meaning.{bound_type}") for bound_type in dict.fromkeys(proved)]


def dots_of(result: BoundResult) -> list[Dot]:
    """List the accuracies that are drawn; none at another prior than one half, whose axis it is not."""
    if result.prior_accuracy != 0.5:
        return []
    dots = []
    for finding in result.successes[:MOST_ACCURACIES]:
        role = "attack" if finding.attack else "ceiling"
        if finding is result.headline:
            role = "bound"
        text = f"{SIGNS[finding.bound_type]}{shown(finding).value}"
        dots.append(Dot(_accuracy_name(result, finding), 100 * (finding.value or 0.0), text, role))
    return dots


def _accuracy_name(result: BoundResult, finding: Finding) -> str:
    """Name an accuracy: whom it is about, else the attack or the side of the bound."""
    if place(finding):
        return phrases.title(finding.release, finding.scope.unnamed, row_word(result.about))
    return finding.attack or str(Sentence(f"attacker.{finding.bound_type}"))


def _ceiling(result: BoundResult) -> Texts:
    roles = {curve.role for curve in result.ceilings}
    return Texts(
        is_certain=bool(roles & {"certified", "claimed"}),
        is_asymptotic="asymptotic" in roles,
        is_for_large_n=roles == {"asymptotic"},
        is_small=result.advantage < SMALL_ADVANTAGE,
        points=_points(result),
        formulas=_formulas(result),
    )


def _points(result: BoundResult) -> list[Texts]:
    """List what each curve allows at the rates asked for, rounded up."""
    points = []
    for fpr in result.about.fpr:
        for curve in result.curves:
            name = curve_name(curve, row_word(result.about))
            points.append(Texts(fpr=percent(fpr), name=name, found=percent_at_most(float(curve.tradeoff.tpr_at(fpr)))))
    return points


def _formulas(result: BoundResult) -> list[Named]:
    """Write the formula of each ceiling, named where there are several."""
    formulas = []
    for curve in result.ceilings:
        formula = formula_of(curve.tradeoff)
        if formula is not None:
            name = capital(curve_name(curve, row_word(result.about))) if len(result.ceilings) > 1 else ""
            formulas.append(Named(name, formula))
    return formulas


def _exposed(ranking: Ranking, unit: str) -> Texts:
    """Write the most exposed rows of a ranking down."""
    word, n_rows = ranking.row_word, several(ranking.n_rows, ranking.row_word)
    if ranking.n_rows == 1:
        intro = Sentence("ranking.one", {"row": word})
    else:
        kind = "cells" if ranking.of_cells else "records"
        intro = Sentence(f"ranking.{kind}", {"n_rows": n_rows, "n_records": several(ranking.n_records, unit)})
    rows = [list(row.values()) for row in ranking.shown(LONGEST)]
    return Texts(
        row=word,
        row_title=capital(word),
        rows_word=ranking.rows_word,
        n_rows=count(ranking.n_rows),
        intro=intro,
        ties=_ties(ranking),
        heads=[ranking.head(column) for column in ranking.columns],
        rows=[Texts(name=name, cells=cells) for name, *cells in rows],
        first=_first(ranking),
        spread=_spread(ranking),
    )


def _ties(ranking: Ranking) -> Sentence | None:
    """Say how many rows share the first place."""
    if ranking.n_first < 2:
        return None
    gaps = {"n_first": several(ranking.n_first, ranking.row_word), "n_shown": count(min(ranking.n_rows, MOST))}
    return Sentence("ranking.tie_beyond" if ranking.n_first > min(ranking.n_rows, MOST) else "ranking.tie", gaps)


def _first(ranking: Ranking) -> str:
    """List the first rows with their accuracy, where it is known."""
    if ranking.accuracy is None:
        return ""
    names = [row[ranking.names] for row in ranking.shown(NAME)[:FIRST]]
    accuracy = [ranking.of_100(float(value)) for value in ranking.accuracy[:FIRST]]
    return listed(f"{name} ({text})" for name, text in zip(names, accuracy, strict=True))


def _spread(ranking: Ranking) -> Texts | None:
    """Explain the histogram; there is none of few rows."""
    if ranking.accuracy is None or ranking.median is None or ranking.n_rows < LEAST_ROWS:
        return None
    gaps = {"rows": ranking.rows_word, "median": ranking.of_100(ranking.median)}
    half = Sentence(f"ranking.half_{ranking.bound_type}", gaps)
    first = ranking.of_100(float(ranking.accuracy.max()))
    return Texts(first=first, median=ranking.of_100(ranking.median), half=half, is_logarithmic=ranking.logarithmic)


def _tables(result: BoundResult) -> list[Texts]:
    """Write the findings down, a table a part; the only one has no title."""
    is_only = all(part.of_all for part in result.parts)
    tables = []
    for part in result.parts:
        rows = [finding_row(result.about, finding) for finding in part.findings]
        tables.append(Texts(title="" if is_only else part.title, rows=rows))
    return tables


def _short(result: BoundResult) -> Texts:
    """Choose what a terminal shows: all of the headline's scope but what follows from its accuracy; little of others.

    The lede has the accuracies of other scopes.
    """
    title, rows, others = "", [], []
    for part in result.parts:
        if result.headline in part.findings:
            has_accuracy = any(finding.quantity == "accuracy" for finding in part.findings)
            left_out = FOLLOWS if has_accuracy else ()
            chosen = [finding for finding in part.findings if finding.quantity not in left_out]
            title = "" if part.of_all else part.title
            rows = [_short_row(result, finding) for finding in chosen[:MOST_SHORT]]
        else:
            new = [finding for finding in part.findings if finding not in result.peers]
            first = [finding for finding in new if finding.quantity == "accuracy"] or part.findings[:1]
            others += [_with_whom(result, finding) for finding in first if finding in new]
    return Texts(title=title, rows=[*rows, *others])


def _with_whom(result: BoundResult, finding: Finding) -> FindingRow:
    """Write a finding with whom it is about."""
    return replace(_short_row(result, finding), quantity=_quantity(result, finding))


def _short_row(result: BoundResult, finding: Finding) -> FindingRow:
    """Write a finding for a terminal, which has no columns for its side and its interval: both are at the value."""
    row = finding_row(result.about, finding)
    if finding.value is None:
        return row
    value = Sentence(f"value.{finding.bound_type}", {"value": row.value})
    if row.value == Sentence("value.at_least", {"value": shown(finding).value}):  # it has its sign already
        value = row.value
    if not isinstance(row.interval, Sentence):  # which says why there is none
        value = Sentence("value.with_interval", {"value": value, "interval": row.interval})
    return replace(row, value=value)
