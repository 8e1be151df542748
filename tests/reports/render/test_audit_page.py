import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from leakbound.core.findings import Finding
from leakbound.core.tradeoff import Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.render.html import notebook, page
from leakbound.reports.results.audit.page import audit_page
from tests.reports import samples
from tests.reports.abouts import changed
from tests.reports.made import ATTACKS, made, spread
from tests.reports.page_reading import Page

SAMPLES = ("two_models", "judged", "one_model_no_claim", "no_leak", "few_models", "tiny")
EVIL = '"><script>alert(1)</script></style></title><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def pages():
    return {name: page(getattr(samples, name)()) for name in SAMPLES}


@pytest.mark.by_day("tiny")
@pytest.mark.parametrize("name", SAMPLES)
def test_page_is_whole_and_needs_nothing_from_outside(pages, name):
    text = pages[name]
    read = Page(text)
    assert len(text.encode()) < 500_000
    assert len(read.all("script")) == 1
    assert read.all("link") == []
    sources = [attrs["src"] for attrs in read.all("img")]
    assert all(source is not None and source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    assert "@import" not in text
    assert "url(http" not in text


@pytest.mark.parametrize("name", SAMPLES)
def test_ids_are_unique_and_references_resolve(pages, name):
    read = Page(pages[name])
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = re.findall(r"url\(#([^)]+)\)", pages[name])
    assert set(named) <= set(ids)


def test_headings_go_in_order_and_landmarks_are_there(pages):
    read = Page(pages["two_models"])
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(read.all("main")) == 1
    assert read.all("html")[0]["lang"] == "en"
    assert all("scope" in attrs for attrs in read.all("th"))
    assert all(attrs.get("alt") for attrs in read.all("img"))


def headings(text):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


def test_the_answer_comes_first_then_what_can_be_done_and_the_rest_is_folded(pages):
    end = ["What can be done about it", "In detail", "How to read this, and how it was made"]
    assert headings(pages["one_model_no_claim"]) == headings(pages["tiny"]) == end
    alone = pages["one_model_no_claim"]
    assert alone.index('class="lede') < alone.index("<svg") < alone.index(end[0]) < alone.index("<details>")
    several = headings(pages["two_models"])
    assert several == ["The models", "Logistic regression", "Random forest", end[0], "The claims", *end[1:]]


def test_the_policy_admits_our_script_and_nothing_else(pages):
    text = pages["few_models"]
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(attrs["content"] for attrs in Page(text).all("meta") if "http-equiv" in attrs)
    assert policy is not None
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


@pytest.mark.slow
def test_the_same_json_gives_the_same_bytes(tmp_path):
    report = samples.few_models()
    report.to_json(tmp_path / "report.json")
    again = Report.from_json(tmp_path / "report.json")
    assert page(again) == page(report)
    assert notebook(again) == notebook(report)
    assert report.digest() in page(report)


@pytest.mark.slow
def test_a_page_without_records_shows_none():
    report = samples.two_models()
    shown, hidden = page(report), page(report.without_records())
    labels = {str(label) for label in report.record_table["label"]}
    assert "Internal." in shown
    assert 'class="strip"' in shown
    assert "data:image/png" in shown
    for part in ("Internal.", 'class="strip"', "data:image/png"):
        assert part not in hidden
    assert not any(f">{label}<" in hidden for label in labels)
    assert "games of 64 that the attacker won" in hidden  # the histogram of 1,500 records stays


def test_a_histogram_of_few_records_counts_as_showing_them():
    report = made(won=spread(64, w32=40, w64=5), facts={"target_points": 45})
    assert "games of 64 that the attacker won" in page(report)
    assert "games of 64 that the attacker won" not in page(report.without_records())


@pytest.mark.usefixtures("without_charts")
def test_more_than_forty_findings_fold_at_an_attack():
    names = [f"attack{n}" for n in range(9)]
    attacks = {name: {"title": name, "source": "", "summary": ""} for name in names}
    found = [
        Finding(
            quantity,
            0.9 - n / 100,
            0.89 - n / 100,
            0.91 - n / 100,
            operating_point={"fpr": fpr} if fpr else {},
            release="forest",
            attack=name,
        )
        for n, name in enumerate(names)
        for quantity, fpr in [("accuracy", 0), ("advantage", 0), ("auc", 0), ("tpr", 0.1), ("tpr", 0.01)]
    ]
    report = made(about={"attacks": attacks | ATTACKS}, findings=tuple(found))
    (table,) = audit_page(report).tables
    assert len(table.rows) <= 40
    assert int(table.n_folded) == len(table.folded) == 45 + 1 - len(table.rows)
    assert any("Accuracy of attack0" in str(row.quantity) for row in table.rows)
    assert any("Accuracy of attack8" in str(row.quantity) for row in table.folded)
    assert f"{table.n_folded} more findings, of weaker attacks" in page(report)


@pytest.mark.usefixtures("without_charts")
def test_contradiction_stands_on_top():
    verdict = Verdict(Claim("mu", 1.0, adjacency="add_remove"), "refuted", "mu", 1.0, 2.0)
    report = made()
    proof = Curve("proof", "forest", "certified", Gaussian(1.0), verdict=verdict)
    text = page(replace(report, curves=(*report.curves, proof)))
    assert text.index("Two results contradict each other") < text.index('class="lede')
    assert "Two results contradict each other" not in page(report)


def test_two_panels_only_where_the_advantage_is_small():
    def advantage(value):
        return Finding("advantage", value, value - 0.01, value + 0.01, release="forest", attack="lira")

    assert "Gain over guessing (TPR" not in page(made(findings=(advantage(0.2),)))
    assert "Gain over guessing (TPR" in page(made((0.55, 0.54, 0.56), findings=(advantage(0.1),)))


@pytest.mark.slow
def test_curves_are_drawn_for_the_worst_four_of_many():
    one = made()
    facts, curve, finding = one.about.releases[0], one.curves[0], one.findings[0]
    names = ["a", "b", "c", "d", "e", "f"]
    report = replace(
        one,
        about=changed(
            one.about, releases=[facts.model_dump() | {"name": name, "title": f"model {name}"} for name in names]
        ),
        curves=tuple(replace(curve, release=name) for name in names),
        findings=tuple(
            replace(finding, release=name, value=0.6 + n / 20, low=0.59 + n / 20, high=0.61 + n / 20)
            for n, name in enumerate(names)
        ),
    )
    curves = audit_page(report).curves
    assert curves is not None
    assert [panel.title for panel in curves.panels] == ["model c", "model d", "model e", "model f"]
    assert page(report).count("Members found (TPR) against") == 4


def test_a_handful_of_games_gets_a_count_and_no_percentages(pages):
    assert "too few for a curve" in pages["tiny"]
    assert "too few for a percentage" in pages["tiny"]
    assert "<svg" not in pages["tiny"]


def test_method_and_plan_are_on_the_page(pages):
    text = pages["two_models"]
    for part in (
        "Made with leakbound 0.1.0 (installation: from its repository).",
        "leakbound audit --dataset digits --seed 0",
        "numpy 2.4.6",
        "seed 0",
    ):
        assert part in text
    assert "fpr = [0.01, 0.001]" in text
    assert "52 records stand in both members and others" in text
    assert "Carlini et al. 2022" in text


def test_notebook_is_a_fragment_with_styles_of_its_own():
    text = notebook(samples.few_models())
    read = Page(text)
    assert read.elements[0] == ("div", {"class": "leakbound"})
    assert read.all("html") == read.all("script") == []
    rules = re.findall(r"^(?:@media [^{}\n]+ \{ )?([^{}\n]+) \{", text, flags=re.M)
    assert rules
    assert all(rule.startswith(".leakbound") for rule in rules)
    assert samples.few_models()._repr_html_() == text


GAP = {"bound_type": "lower", "status": "certified", "source": "delgrosso2021, Theorem 2", "release": "forest"}


def test_what_a_theorem_says_of_any_attacker_is_no_attack():
    bound = Finding("accuracy", 0.5317, operating_point={"prior": 0.5}, **GAP)
    other = Finding("mu", 1.2, bound_type="upper", status="asymptotic", source="azize2024", release="forest")
    text = page(made(findings=(bound, other)))
    read = Page(text)
    assert (
        "Some attacker is right in at least 53.1 of 100 cases, by the gap between training and test error" in read.whole
    )
    cells = read.text("td")
    heads = read.text("th")
    row = cells.index("53.1 of 100")
    assert cells[row : row + 5] == ["53.1 of 100", "exact", "lower bound", "certified", "Delgrosso 2021, Theorem 2"]
    # before the attacks, so that it never folds
    assert heads.index("Accuracy of some attacker, prior ½") < heads.index("Accuracy of LiRA, prior ½")
    assert "μ of the trade-off" in heads
    assert read.whole.count("is right in 91.3 of 100 cases") == 1


def test_a_theorem_alone_gives_no_best_attack():
    bound = Finding("accuracy", 0.9, operating_point={"prior": 0.5}, **GAP)
    advantage = Finding("advantage", 0.8, **GAP)
    report = made(facts={"best": ""})
    text = Page(page(replace(report, findings=(bound, advantage), curves=()))).whole
    assert "None of the attacks could be played" in text
    assert "at least 90.0 of 100 cases, by the gap" in text


def test_proved_and_asymptotic_ceilings_stand_in_the_chart_and_judge_nothing():
    report = made()
    added = (
        Curve("dp-sgd", "forest", "certified", Gaussian(2.0)),
        Curve("leakage", "forest", "asymptotic", Gaussian(1.0)),
    )
    text = Page(page(replace(report, curves=(*report.curves, *added)))).whole
    for said in (
        "The attack and its ceiling",
        "No curve can enter the hatched region, whatever the attacker does. Dotted: what the best attacker reaches",
        "The certified ceiling is TPR ≤ Φ(Φ⁻¹(FPR) + μ), with μ = 2.",
        "The asymptotic curve is TPR ≤ Φ(Φ⁻¹(FPR) + μ), with μ = 1.",
        "certified ceiling",
        "leakage (asymptotic)",
    ):
        assert said in text
    assert not audit_page(replace(report, curves=(*report.curves, *added))).claims
    assert "contradict" not in text


def test_the_curves_of_one_release_with_a_claim_are_not_folded():
    report = samples.no_leak()
    folded = "<summary><strong>The attack"
    assert folded in page(report)
    claim = samples.claimed(report.about.releases[0].name, "not_refuted")
    shown = page(replace(report, curves=(*report.curves, claim)))
    assert folded not in shown
    assert "The attack and its ceiling</h2>" in shown
