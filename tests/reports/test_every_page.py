"""What holds for the page of every kind of report: it asks no other server, has one title, and folds what is long."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import leakbound as ls
from leakbound.core.tradeoff import Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.plans.bounds import BOUND_PLANS
from leakbound.reports import Verdict, claims_page
from leakbound.reports.comparison import compare
from leakbound.reports.results.audit.advice import advice
from leakbound.reports.results.audit.claims import claims, counted
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.audit.result import results
from leakbound.reports.sentences import Sentence, sentences
from tests.reports import made_bounds, made_designs, made_guesses, made_protected, samples
from tests.reports.abouts import changed
from tests.reports.made import made, spread
from tests.reports.page_reading import Page
from tests.reports.page_reading import said as text_of

CLAIM = {
    "says": "Accuracy", "where": "Table 1", "kind": "about", "printed": 1.0, "ours": 1.0, "error": 0.0,
    "difference": 0.0, "verdict": "agrees", "erratum": None, "note": "", "explained_by": "", "because": "", "tried": [],
}  # fmt: skip
EXPERIMENT = {
    "name": "paper/figure", "title": "A title", "scale": "quick", "run": "1,000 games.", "reason": "", "setting": "",
    "settings": [], "claims": [CLAIM],
}  # fmt: skip
DRAWN = b'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300"></svg>'


def reproduced(*names: str) -> str:
    documents = [{**EXPERIMENT, "name": name, "title": f"What {name} shows"} for name in names]
    return claims_page(documents, {names[0]: DRAWN})


PAGES: dict[str, Callable[[], str]] = {
    "one model": lambda: samples.one_model_no_claim().to_html(),
    "one model, no leak": lambda: samples.no_leak().to_html(),
    "two models, a claim": lambda: samples.two_models().to_html(),
    "candidates": lambda: samples.judged().to_html(),
    "attribute": lambda: made_guesses.made(made_guesses.of("net", 0.42, (0.3, 0.26, 0.34))).to_html(),
    "bound": lambda: made_bounds.dp().to_html(),
    "bound of records": lambda: made_bounds.leakage().to_html(),
    "bound of cells": lambda: made_bounds.many_cells().to_html(),
    "protected, for the owner": lambda: made_protected.means().to_html(),
    "protected, another design": lambda: made_designs.exact().to_html(),
    "comparison": lambda: compare(samples.two_models(), samples.no_leak()).to_html(),
    "comparison of ceilings": lambda: compare(made_bounds.dp(1.0), made_bounds.dp(2.0)).to_html(),
    "one experiment": lambda: reproduced("paper/figure"),
    "experiments": lambda: reproduced("paper/figure", "paper/table"),
}
every_page = pytest.mark.parametrize("name", PAGES)


class Folds(HTMLParser):
    """Which elements are inside a folded part, and the text outside of commands."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[tuple[str, bool]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        folded = any(name == "details" and "open" not in own for name, own in self.open)
        if tag == "table":
            self.tables.append((values.get("class") or "", folded))
        if tag not in ("meta", "br", "img", "link", "hr"):
            self.open.append((tag, values))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not {"pre", "style", "script"} & {tag for tag, _ in self.open}:
            self.said.append(data)


@pytest.fixture(scope="module")
def texts():
    return {name: make() for name, make in PAGES.items()}


@every_page
def test_asks_no_other_server(texts, name):
    page = Page(texts[name])
    assert page.all("link") == []
    for tag, attribute in (("img", "src"), ("a", "href"), ("script", "src")):
        addresses = [attrs[attribute] or "" for attrs in page.all(tag) if attribute in attrs]
        assert all(address.startswith(("data:image/", "#")) for address in addresses)
    (policy,) = [attrs["content"] for attrs in page.all("meta") if "http-equiv" in attrs]
    assert "default-src 'none'" in (policy or "")
    assert not re.search(r"url\((?!#)|@import", texts[name])


@every_page
def test_has_one_title_which_is_also_that_of_the_window(texts, name):
    page = Page(texts[name])
    assert len(page.all("h1")) == 1
    assert page.text("h1") == page.text("title")[:1]


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2: (L1 + 0.05)/(L2 + 0.05), of relative luminances."""

    def luminance(colour: str) -> float:
        digits = colour.removeprefix("#")
        if len(digits) == 3:
            digits = "".join(2 * digit for digit in digits)
        parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_every_text_is_that_of_wcag_in_both_colours(texts):
    """Texts of charts too, which axe does not look at: they have these colours alone."""
    assert contrast("#000", "#ffffff") == pytest.approx(21.0)
    schemes = re.findall(r":root \{ (--ink: [^}]+) \}", texts["bound"])
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--(\w+): (#\w+);", scheme))
        for ink in ("ink", "mute", "attack", "claim"):
            for ground in ("paper", "wash"):
                assert contrast(colours[ink], colours[ground]) >= 4.5


@every_page
def test_every_picture_says_what_it_shows(texts, name):
    page = Page(texts[name])
    assert all(attrs.get("alt") for attrs in page.all("img"))
    charts = [attrs for attrs in page.all("svg") if attrs.get("class") == "chart"]
    if any("aria-label" in attrs for attrs in charts):  # the page is a document
        assert all(attrs.get("aria-label") for attrs in charts)
        return
    assert len(page.all("desc")) == len(charts)
    assert len(page.text("title")) == len(charts) + 1


@every_page
def test_the_table_of_all_findings_is_folded(texts, name):
    tables = Folds(texts[name]).tables
    if not name.startswith(("comparison", "one experiment", "experiments")):
        assert tables[-1][1]


@every_page
def test_nothing_on_a_page_is_the_help_of_a_command(texts, name):
    said = " ".join(Folds(texts[name]).said)
    assert not re.findall(r"(?<![\w-])--[a-z][a-z-]+", said)


@pytest.mark.by_day("information-words4")
@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("dp", {"epsilon": 1.0}),
        ("gaussian", {"mu": 1.0}),
        ("dpsgd", {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 10}),
        ("gap", {"gap": 0.3}),
        ("information", {"information": 0.1}),
    ],
)
def test_the_page_of_a_bound_does_not_repeat_what_its_command_says_of_itself(bound, words):
    report = ls.bound(bound, **words)
    page = Page(report.to_html()).whole
    assert report.about.theorem.summary.removesuffix(".") not in page
    assert str(Sentence(f"bound.{bound}", {"unit": "record", "units": "records"})) in page


def test_every_bound_has_words_of_its_own():
    said = {name.removeprefix("bound.") for name in sentences() if name.startswith("bound.")}
    assert said == set(BOUND_PLANS)


@every_page
def test_every_axis_of_cases_of_100_goes_from_the_baseline_to_100(texts, name):
    axes = re.findall(r"<svg.*?</svg>", texts[name], flags=re.DOTALL)
    dots = [axis for axis in axes if ">baseline accuracy</text>" in axis]
    for axis in dots:
        labels = [float(label) for label in re.findall(r">(\d+(?:\.\d)?)</text>", axis)]
        assert 100.0 in labels
        assert ">always right</text>" in axis
    if name in ("one model", "two models, a claim", "bound", "protected, for the owner", "comparison"):
        assert dots


def test_attacks_that_say_nothing_new_are_folded():
    (result,) = results(samples.one_model_no_claim())
    shown, others = set(result.telling), set(result.attacks_that_ran) - set(result.telling)
    assert result.best in shown
    assert others
    best = {fpr: result.find("tpr", result.best, fpr=fpr) for fpr in result.about.fpr}
    for attack in others:
        accuracy = result.find("accuracy", attack)
        assert accuracy is None or (accuracy.low or 0.0) <= result.strength
        for fpr in result.about.fpr:
            found = result.find("tpr", attack, fpr=fpr)
            most = max(
                (finding.value or 0.0 for name in shown if (finding := result.find("tpr", name, fpr=fpr)) is not None),
                default=best[fpr],
            )
            assert found is None or found.refused or (found.value or 0.0) <= most
    text = samples.one_model_no_claim().to_html()
    charts = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    first = charts[0]
    assert result.attack_title(result.best) in first
    assert not any(f">{result.attack_title(name)}</text>" in first for name in others)
    (release,) = audit_page(samples.one_model_no_claim()).releases
    assert {row.name for row in release.attacks} == {result.attack_title(name) for name in result.attacks_that_ran}


def test_of_one_model_one_chart_is_open():
    text = samples.one_model_no_claim().to_html()
    closed = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert closed.count("<svg") == 1
    assert text.count("<svg") > 1


def test_the_lede_counts_the_claims():
    refuted = samples.two_models()
    words = [verdict.word for result in results(refuted) for verdict in result.verdicts]
    said = text_of(list(counted(results(refuted))))
    assert said == f"Refuted: {words.count('refuted')} of {len(words)} claims."
    assert said in Page(refuted.to_html()).whole
    assert not list(counted(results(samples.no_leak())))


def test_what_can_be_done_follows_from_what_was_found():
    def said(report):
        return text_of(advice(results(report)))

    assert "Withdraw the refuted claim" in said(samples.two_models())
    assert "Look at the records that are exposed" in said(samples.two_models())
    assert said(samples.no_leak()).startswith("This audit gives no reason to change the model.")
    assert "a simpler model" not in said(samples.no_leak())
    assert "a simpler model" in said(made())
    assert "Train more models" in said(samples.tiny())
    assert "Train at least" in said(samples.few_models())


def decided(*checks: dict[str, object], verdict: str = "ask") -> str:
    """What can be done about one model without a leak, whose policy has these checks."""
    report = samples.no_leak()
    name = report.about.releases[0].name
    decisions = [{"release": name, "verdict": verdict, "checks": checks}]
    report = replace(report, about=changed(report.about, decisions=decisions))
    return text_of(advice(results(report)))


def test_an_open_limit_is_no_reason_to_leave_the_model_as_it_is():
    auc = {"check": "auc", "limit": 0.6, "attack": "lira", "value": 0.58, "low": 0.55, "high": 0.61}
    of_one = {"reason": {"id": "interval_of_one_model_includes_limit", "values": {}}}
    unread = {"check": "smallest_leaf", "limit": 10, "outcome": "open"}
    unread |= {"reason": {"id": "structure_not_readable", "values": {}}}
    said = decided({**auc, **of_one, "outcome": "open"}, unread)
    assert "This audit gives no reason to change" not in said
    assert said.startswith("This audit could not decide on the model")
    assert "More records would narrow the intervals; more reference models would not." in said
    assert "The structure of the fitted model cannot be read" in said
    assert "could not decide" not in decided({**auc, "outcome": "kept"}, verdict="release")
    assert "This audit gives no reason to change" in decided({**auc, "outcome": "kept"}, verdict="release")
    refused = decided({**auc, "outcome": "not_kept"}, verdict="do_not_release")
    assert refused.startswith("Limits of the policy are not kept by the model")
    assert "no reason to change" not in refused


def intro(report):
    """How to read the curves of a report."""
    curves = audit_page(report).curves
    assert curves is not None
    return curves.intro


def test_a_curve_above_a_ceiling_that_no_test_refutes_is_explained():
    """Where the verdict is "not refuted", a curve in the hatched region would contradict it without a word."""
    refuted = [verdict for result in results(samples.two_models()) for verdict in result.verdicts]
    assert {verdict.word for verdict in refuted} == {"refuted", "not_refuted"}
    said = text_of(intro(samples.two_models()))
    inside = [result for result in results(samples.two_models()) if result.verdicts[0].word == "not_refuted"]
    (result,) = inside
    best = next(curve for curve in result.curves if curve.name == result.best)
    (ceiling,) = result.ceilings
    rates = np.geomspace(10 / best.n_nonmember, 1.0, 200)
    enters = bool((np.asarray(best.tradeoff.tpr_at(rates)) > np.asarray(ceiling.tradeoff.tpr_at(rates)) + 1e-9).any())
    assert ("by no more than chance explains: the test" in said) == enters
    sentence = f"The curve of {result.attack_title(result.best)} on {result.title} lies partly in this region, by no"
    for mu, is_entered in ((0.01, True), (9.0, False)):
        moved = replace(ceiling, tradeoff=Gaussian(mu))
        curves = tuple(moved if curve is ceiling else curve for curve in samples.two_models().curves)
        assert (sentence in text_of(intro(replace(samples.two_models(), curves=curves)))) == is_entered


def test_a_claim_about_every_record_that_stands_although_one_is_above_it_says_why():
    verdict = Verdict(Claim("eta", 0.05), "not_refuted", "eta", 0.05, 0.0, confidence=0.999)
    (line,) = claims(results(made(won=spread(64, w32=99, w64=1), verdict=verdict)))
    assert "the most exposed record is above the claim (at least" in text_of(line.why)
    assert "more models may decide it" in text_of(line.why)
    kept = Verdict(Claim("eta", 0.49), "not_refuted", "eta", 0.49, 0.0, confidence=0.999)
    (line,) = claims(results(made(won=spread(64, w32=99, w64=1), verdict=kept)))
    assert "above the claim" not in text_of(line.why)


def test_the_author_is_on_the_page_without_a_policy_too():
    report = made(about={"plan": {"author": "A. Lovelace <a@b>"}})
    assert "by A. Lovelace <a@b>" in Page(report.to_html()).whole
    assert "· by " not in made().to_html()


def test_an_accuracy_above_the_baseline_is_not_printed_as_if_it_were_not():
    text = Page(made((0.515, 0.5038, 0.54)).to_html()).whole
    assert "51.5 of 100 cases (95 %: 50.3 to 54.0)" in text.replace("\u202f", " ")
