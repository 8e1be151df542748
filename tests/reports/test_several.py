"""Pages of several statistics under one promise, and of data that were released under another design."""

from __future__ import annotations

from typing import Any

import pytest

from leakbound.reports import Report
from tests.reports.made_designs import DESIGNS, OTHER, ROWS, WHOLE_BUDGET, design_report, noise, rows_of, several
from tests.reports.page_reading import Page


def with_others(*others: dict[str, Any], design: str = "leave-one-out") -> Report:
    return design_report(design, certificate={"others": list(others)})


def text(report: Report) -> str:
    """All that the page says, as plain text with one space between the words."""
    return " ".join(report.table(full=True).split())


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize("owner", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
class TestSeveral:
    def test_page_and_text_have_a_table_for_each_under_one_promise(self, design, owner) -> None:
        report = several(design, owner)
        page, whole = report.to_html(), text(report)
        for heading in ("Means", "Hours"):
            assert f"<p><strong>{heading}</strong></p>\n<table>" in page
            assert f"{heading} Statistic " in whole
        assert "on seeing all 2 statistics of this release, is right in at most 55.0 of 100 cases" in whole
        assert "on seeing all 2 statistics of this release is right with probability at most 0.5500" in whole
        assert whole.count("on seeing this release alone") == 0
        assert " · 2 statistics · promise η = 0.05" in whole
        assert " · 2 statistics · promise η = 0.05" in report.table().replace("\n", " ")

    def test_the_certificate_names_them_and_the_noise_of_each(self, design, owner) -> None:
        whole = text(several(design, owner))
        assert "Statistics means (weight 2); hours (weight 1); released together. They are one release: " in whole
        assert "Noise Means: gaussian, standard deviation 0.23 years, 0.021 EUR 1,000, on a grid of step 0.5." in whole
        assert "Hours: gaussian, standard deviation 0.15 hours, on a grid of step " in whole
        assert "It is made from a secret key in the ledger" in whole


def test_equal_weights_are_not_worth_a_word() -> None:
    assert "Statistics means; hours; released together. They are" in text(several(weights=(1, 1)))


def test_a_single_statistic_has_no_word_of_several() -> None:
    whole = text(design_report("leave-one-out"))
    assert "statistics of this release" not in whole
    assert "• Statistics" not in whole
    assert "under another promise:" not in whole


class TestOtherDesigns:
    @pytest.mark.usefixtures("without_charts")
    def test_each_is_named_and_no_joint_number_is_promised(self) -> None:
        half = {"design": "half", "date": "", "number": 1, "digest": "cd" * 32}
        report = with_others(OTHER, half)
        for shown in (text(report), Page(report.to_html()).whole):
            assert (
                "The same data were released under another promise. Promise anyone, release 3 of 2027-01-04, "
                "entry abababababab. Promise drawn, release 1, entry cdcdcdcdcdcd. No joint number is promised over "
                "releases of two promises: "
            ) in " ".join(shown.split())

    def test_many_are_counted(self) -> None:
        others = [OTHER | {"number": number} for number in range(1, 10)]
        assert "release 6 of 2027-01-04, entry abababababab. And 3 more, which the JSON names. No" in text(
            with_others(*others)
        )

    def test_they_are_part_of_the_certificate_of_every_design(self) -> None:
        for design in DESIGNS:
            assert "• Other promises The same data" in text(with_others(OTHER | {"design": "half"}, design=design))


def test_the_noise_that_tells_most_of_the_data_has_the_word() -> None:
    """Of a declared noise and one that was computed, the certificate says that the scale was computed."""
    statistics = [
        {"name": "means", "weight": 1, "noise": noise(0.2, rms=[0.23, 0.0213], grid=[0.5, 0.5], declared=True)},
        {"name": "hours", "weight": 1, "noise": noise(0.15)},
    ]
    names = ("means", "means", "hours")
    values = [row | {"statistic": name} for row, name in zip(rows_of(ROWS, False), names, strict=True)]
    report = design_report("leave-one-out", certificate={"entry": WHOLE_BUDGET}, values=values, statistics=statistics)
    assert "Its scale was computed from all 1,000 people." in text(report)
