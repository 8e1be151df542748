import re
from dataclasses import replace
from itertools import pairwise

import pytest

from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import Gaussian, Piecewise
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.render.html import notebook, page
from leakbound.reports.sections.protected.result import protected_result
from tests.reports import made_protected
from tests.reports.made_protected import ceiling, protected
from tests.reports.page_reading import Page

SAMPLES = ("means", "compared", "average", "insecure", "no_noise", "uneven", "nothing")
EVIL = '"><script>alert(1)</script></style></title><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def pages():
    return {name: page(getattr(made_protected, name)()) for name in SAMPLES}


@pytest.mark.parametrize("name", SAMPLES)
def test_page_is_whole_and_needs_nothing_from_outside(pages, name):
    text, read = pages[name], Page(pages[name])
    assert len(text.encode()) < 500_000
    assert len(read.all("script")) == 1
    assert read.all("link") == read.all("img") == []
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [attrs["aria-labelledby"] or "" for _, attrs in read.elements if "aria-labelledby" in attrs]
    assert {part for labels in named for part in labels.split()} <= set(ids)
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert [len(read.all(landmark)) for landmark in ("header", "main", "footer")] == [1, 1, 1]
    assert all("scope" in attrs for attrs in read.all("th"))
    assert len([attrs for attrs in read.all("div") if "cert" in (attrs.get("class") or "").split()]) == 1


def sections(text):
    return re.findall(r'<h2 id="(s-\w+)"', text)


def test_sections_stand_in_the_order_in_which_readers_stop(pages):
    assert sections(pages["means"]) == ["s-sum", "s-cert", "s-roc", "s-cost", "s-find", "s-how"]
    assert sections(pages["no_noise"]) == ["s-sum", "s-cert", "s-cost", "s-find", "s-how"]


def test_the_promise_the_attack_and_the_release_without_noise_are_said(pages):
    text = Page(pages["means"]).whole
    # Phi(.2/2) = .539828, Phi(.37/2) = .573385; 1.96 sqrt(.25/40000) = .0049
    assert (
        "An attacker who guesses whether a given person is in the data is right in at most 55.0 of 100 cases , whoever "
        "the person is and whatever the attacker computes; guessing from the prior alone gives 50. The best attack "
        "that we know is right in 54.0 of 100 for the most exposed person (95 %: 53.4 to 54.5). Without noise it "
        "would be right in about 57.3." in text
    )
    facts = "1,000 people, 500 of them in the data · promise η = 0.05 · leakbound 0.1.0"
    assert f"Protected release, for the owner of the data · {facts}" in text
    assert "is right with probability at most 0.5500." in text
    # Phi(Phi^-1(.01) + .25132) = .018895, Phi(Phi^-1(.001) + .25132) = .002256: upper bounds are rounded up
    assert "No attacker finds more than 1.9 % of the members at 1 % false alarms and 0.23 % at 0.1 %." in text
    assert "Proved" in text


def test_values_and_costs_have_two_digits_of_the_noise(pages):
    text = Page(pages["means"]).whole
    # 1.959964 * .56 = 1.0976, .0517 -> .10133, .37 -> .72519
    assert "Released 43.2 Noise, 95 % ± 1.1 Unit years" in text
    assert "Released 2.92 Noise, 95 % ± 0.10" in text
    assert "Released 36.58 Noise, 95 % ± 0.73" in text
    # hypot(.57, .56) = .79906; 500 * .57^2/.79906^2 = 254.4; .79906/.57 = 1.4019
    assert "Sampling error 0.57 Noise 0.56 Together 0.80 Increase +40 % Worth a sample of 254 of 500" in text
    assert "as that of a sample of 253 to 263 instead of 500." in text
    assert "the sampling error is about 1.4 times that of all." in text  # sqrt(1000/500)
    assert "43.217" not in text


@pytest.mark.slow
def test_nobody_is_named_and_no_secret_stands_anywhere():
    report = made_protected.means()
    insecure = made_protected.insecure()
    for text in (page(report), report.to_html(records=False), notebook(report), report.table()):
        assert "10617" not in text
        assert "40.12" not in text
    for text in (page(insecure), notebook(insecure), insecure.table()):
        assert "Not for publication." in text
        assert "Proved" not in text
    assert not any("10617" in text.get_text() for text in report.plot().texts)


def test_a_table_of_records_is_refused():
    report = replace(made_protected.means(), record_table={"record": [1], "eta": [0.1]})
    for show in (page, notebook, Report.table, Report.plot):
        with pytest.raises(ValueError, match="a protected release shows no records, got the columns record, eta"):
            show(report)


def test_only_a_certificate_proves(pages):
    proved = {name for name in SAMPLES if 'class="verdict proved"' in pages[name]}
    assert proved == set(SAMPLES) - {"insecure"}
    assert "Proved at 95 %" in Page(pages["average"]).whole


def contradicted(*findings, curve=None):
    found, certified = ceiling()
    return protected([*found, *findings], [curve or certified])


def exact(value, status="certified"):
    return Finding("accuracy", value, operating_point={"prior": 0.5}, attack="bayes", bound_type="lower", status=status)


@pytest.mark.slow
def test_an_exact_attack_above_the_certificate_is_a_contradiction():
    text = Page(page(contradicted(exact(0.5501)))).whole
    assert "Two results contradict each other" in text
    assert "exact Bayes" in text
    assert "Proved" not in text
    assert "contradict" not in Page(page(contradicted(exact(0.55)))).whole
    assert (
        "contradict" not in Page(page(contradicted(exact(0.56, "measured")))).whole
    )  # a sample may exceed a tight bound
    verdict = Verdict(Claim("eta", 0.05), "refuted")
    refuted = Curve("certified", "", "certified", Gaussian(0.25), verdict=verdict)
    assert "Two results contradict each other" in page(contradicted(curve=refuted))


def test_average_promises_say_whom_they_leave_out(pages):
    text = Page(pages["average"]).whole
    assert (
        "whether a randomly chosen person is in the data is right in at most 60.0 of 100 cases , whatever the" in text
    )
    assert (
        "except with probability 5 % over the calibration; guessing from the prior alone gives 50. This says "
        "nothing about a" in text
    )
    assert "Sampled: 500 pairs from 1,000 fits; 3 of them failed and count against the certificate." in text
    assert "Anything about a particular person." in text
    assert "Noted. Three fits did not converge." in text


def test_many_values_fold_and_the_rest_is_in_the_json(pages):
    text = pages["average"]
    assert "<summary>200 more</summary>" in text
    assert text.count("92 more are in the JSON.") == 2  # 300 - 8 - 200, of values and of costs
    assert "coefficient 207" in text
    assert "coefficient 208" not in text


def test_other_methods_are_compared(pages):
    text = Page(pages["compared"]).whole
    assert "This calibration Noise 0.036 Times ours 1 Promise every person Certificate certified" in text
    assert "PAC privacy Noise 0.55 Times ours 15 Promise every person Certificate certified" in text  # .547/.0357
    assert "averaged information Noise 0.0061 Times ours 0.17 Promise a random person Certificate certified" in text
    assert "DP Laplace (clipped): Noise in a coordinate, root mean square" in text
    assert "the statistic has no bound to clip to" in text
    assert "Calibrated noise" in text
    assert "The release" not in Page(pages["compared"]).text("h3")
    assert "not drawn yet" in text


def test_no_noise_is_said_where_none_is_needed(pages):
    text = Page(pages["no_noise"]).whole
    assert "It needs no noise." in text
    assert "No noise was added: the draw alone keeps the promise." in text
    assert "right in 53.9 of 100 for the most exposed person." in text
    assert "Worth a sample of" not in text


def test_other_priors_and_sizes(pages):
    text = Page(pages["uneven"]).whole
    assert "right in at most 82.5 of 100 cases" in text
    assert "guessing from the prior alone gives 80." in text
    assert "Prior 200/1,000." in text
    assert "\N{MINUS SIGN}123,500,000" in text  # the second digit of 1.96 * 4,500,000 is the 100,000
    assert "1.235 \N{MULTIPLICATION SIGN} 10 \N{MINUS SIGN}7" in text
    assert 'id="s0-title"' not in pages["uneven"]  # the axis of the dots begins at 50


def test_the_charts_say_what_they_show(pages):
    dots = pages["means"][pages["means"].index('id="s0-title"') : pages["means"].index("s-cert")]
    for said in (
        "the promise</text>",
        "≤ 55.0</text>",
        "likelihood ratio</text>",
        "without noise</text>",
        "57.3</text>",
    ):
        assert said in dots
    roc = pages["means"][pages["means"].index('id="r0-title"') :]
    for said in (
        "certified ceiling</text>",
        "likelihood ratio</text>",
        "without noise (asymptotic)</text>",
        "<pattern",
    ):
        assert said in roc
    assert 'id="g0-title"' in pages["means"]
    assert 'id="g0-title"' not in pages["average"]  # an advantage of .2 is seen on a ROC


def test_text_of_the_user_is_text():
    found = Finding(
        "accuracy",
        0.55,
        bound_type="upper",
        source=EVIL,
        method=(Term(EVIL),),
        assumptions=(Term(EVIL),),
        status="certified",
    )
    tried = Finding("accuracy", 0.54, operating_point={"prior": 0.5}, attack=EVIL, release=EVIL)
    other = Finding("noise_rms", 0.2, release=EVIL, source=EVIL)
    refused = Finding("noise_rms", None, release=EVIL + "2", reason=Term(EVIL))
    curves = [
        Curve(EVIL, EVIL, "certified", Gaussian(1.0)),
        Curve(EVIL, EVIL, "measured", Piecewise([0.1], [0.8]), n_nonmember=900),
        Curve(EVIL, EVIL, "asymptotic", Gaussian(0.5)),
    ]
    rows = made_protected.values([(EVIL, EVIL, 1.0, 0.5, 0.5)])
    report = protected(
        [found, tried, other, refused],
        curves,
        {"coupling": EVIL, "assumptions": [{"id": EVIL, "values": {}}]},
        {"family": EVIL, "rms": [0.5]},
        **dict.fromkeys(("title", "unit", "date", "command", "question", "leakbound"), EVIL),
        values=rows,
        notes=[EVIL],
        versions={EVIL: EVIL},
        plan={EVIL: EVIL},
        data={"name": EVIL, "digest": EVIL, "records": 7},
    )
    whole = page(report)
    for text, scripts in [(whole, 1), (notebook(report), 0)]:
        read = Page(text)
        assert len(read.all("script")) == scripts
        assert not any("onerror" in attrs for _, attrs in read.elements)
        assert read.all("img") == []
    assert Page(whole).text("title")[0] == EVIL


@pytest.mark.slow
def test_the_same_json_gives_the_same_bytes(tmp_path):
    report = made_protected.means()
    report.to_json(tmp_path / "report.json")
    again = Report.from_json(tmp_path / "report.json")
    assert again.to_html() == report.to_html() == page(report)
    assert again._repr_html_() == notebook(report)
    assert again.table() == report.table()
    assert report.digest() in page(report)


def test_notebook_is_a_fragment_with_the_curves():
    read = Page(notebook(made_protected.means()))
    assert read.elements[0] == ("div", {"class": "leakbound"})
    assert len(read.all("svg")) == 1
    assert "at most 55.0 of 100 cases" in read.whole
    assert Page(notebook(made_protected.nothing())).all("svg") == []


def test_the_best_attack_is_the_one_with_the_largest_lower_end():
    wide = Finding("accuracy", 0.56, 0.50, 0.62, operating_point={"prior": 0.5}, attack="wide", bound_type="lower")
    sharp = Finding("accuracy", 0.55, 0.54, 0.56, operating_point={"prior": 0.5}, attack="sharp", bound_type="lower")
    other = Finding("accuracy", 0.9, operating_point={"prior": 0.9}, attack="other prior", bound_type="lower")
    result = protected_result(protected([wide, sharp, other]))
    assert [each.attack for each in result.attacks] == ["sharp", "wide"]
    assert result.best is not None
    assert result.best.attack == "sharp"
