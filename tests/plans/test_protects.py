"""Plans of protection: what is missing, too much or out of range is one line."""

from __future__ import annotations

from typing import Any

import pytest

from leakbound.noise.families import FAMILIES
from leakbound.plans.plan import read
from leakbound.plans.promises import NOISES, Anyone, Drawn, File
from leakbound.plans.protects import CalibrationPlan, MultiplierPlan, ProtectionPlan

DATA: dict[str, Any] = {"data": "people.csv", "eta": 0.05}
TABLE: dict[str, Any] = {"statistic": "table", "by": "town", "levels": {"town": ["a", "b", "c", "d"]}}
RATES: dict[str, Any] = {"sample_rate": 0.01, "steps": 1000}


@pytest.mark.parametrize("kind", [CalibrationPlan, ProtectionPlan, MultiplierPlan])
def test_every_field_says_what_it_is(kind) -> None:
    assert all(field.description for field in kind.model_fields.values())


def test_the_names_are_those_of_the_rooms() -> None:
    assert tuple(FAMILIES) == NOISES


def test_what_is_promised_unless_told() -> None:
    plan = read(ProtectionPlan, DATA, "protect")
    assert (plan.statistic, plan.promise, plan.chosen, plan.budget) == ("mean", None, None, None)
    assert (plan.ledger, plan.insecure_seed) == (None, None)
    drawn = Drawn()
    assert (drawn.about, drawn.noise, drawn.coupling) == ("every", "gaussian", "auto")
    assert (drawn.k, drawn.confidence, drawn.fits) == (None, 0.95, 2000)


def test_the_other_promises_have_what_is_declared_for_them_or_the_fields_of_the_one_that_is_made() -> None:
    words = {"promise": "file,scale=2,games=0", "compare": Anyone(ranges={"wage": (0, 80)})}
    plan = read(CalibrationPlan, DATA | words, "calibrate")
    assert plan.under(File) == File(scale=2, games=0)
    assert plan.under(Anyone) == Anyone(ranges={"wage": (0, 80)})
    assert plan.under(Drawn) == Drawn(scale=2, games=0)
    assert read(CalibrationPlan, DATA | {"compare": "all"}, "calibrate").compare is True


@pytest.mark.parametrize(
    ("written", "ranges"),
    [
        ("wage=0:80", {"wage": (0, 80)}),
        (["wage=0:80,age=-1.5:99"], {"wage": (0, 80), "age": (-1.5, 99)}),
        ({"wage": [0, 80]}, {"wage": (0, 80)}),
        ({"wage": "0:80"}, {"wage": (0, 80)}),
    ],
)
def test_ranges_are_kept_as_they_were_written(written, ranges) -> None:
    """A ledger knows a query again by the digits of its ranges."""
    assert repr(Anyone(written).ranges) == repr(ranges)


@pytest.mark.parametrize(
    "words",
    [
        {"statistic": "ols", "label": "pay"},
        {"statistic": "ols"},  # data sets and .npz files come with their own
        {"statistic": "numpy:median"},
        {"statistic": "histogram", "by": "age,pay"},
        {"promise": Drawn(about="average", coupling="average_swap")},
        {"promise": {"file": {"at_most": ["tpr@0.01=0.1", "tpr@0.001=0.02"]}}},
        {"compare": True},
        {"eta": 0.499, "promise": "drawn,k=1,fits=2,games=0"},
    ],
)
def test_what_can_be_asked(words) -> None:
    assert read(CalibrationPlan, DATA | words, "calibrate").model_fields_set == {*DATA, *words}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"data": ""}, "data: String should have at least 1 character, got ''"),
        ({"eta": 0}, "eta must be > 0 and < 0.5, got 0"),
        ({"eta": 0.5}, "eta must be > 0 and < 0.5, got 0.5"),
        ({"eta": float("nan")}, "eta must be finite, got nan"),
        ({"eta": "small"}, "eta: Input should be a valid number, unable to parse string as a number, got 'small'"),
        ({"promise": "drawn,k=0"}, "promise: drawn: k: Input should be greater than or equal to 1, got 0"),
        (
            {"promise": {"drawn": {"k": 2.5}}},
            "promise: drawn: k: Input should be a valid integer, got a number with a fractional part, got 2.5",
        ),
        ({"promise": "drawn,confidence=1"}, "promise: drawn: confidence must be > 0 and < 1, got 1"),
        ({"promise": "drawn,fits=1"}, "promise: drawn: fits: Input should be greater than or equal to 2, got 1"),
        ({"promise": "file,games=-1"}, "promise: file: games: Input should be greater than or equal to 0, got -1"),
        ({"promise": "anyone,delta=0"}, "promise: anyone: delta must be > 0 and < 1, got 0"),
        ({"promise": "file,seed=-1"}, "promise: file: seed: Input should be greater than or equal to 0, got -1"),
        ({"fpr": (1.0,)}, "fpr must be > 0 and < 1, got 1"),
        ({"promise": "all"}, "promise must be one of anyone, file, drawn; got 'all'"),
        ({"k": 3}, "k is now k of [promise.drawn]"),
        ({"promise": "drawn,about=all"}, "promise: drawn: about: Input should be 'every' or 'average', got 'all'"),
        (
            {"promise": "drawn", "budget": 0.2},
            "budget belongs to promise anyone or file, got promise drawn",
        ),
        (
            {"promise": "file,k=3"},
            "promise: file has no k; it has: noise, scale, allow_exact, at_most, games, confidence, seed",
        ),
        ({"promise": "file", "id": "a", "group": "b"}, "group names the units that are left out; give no id beside it"),
        ({"promise": "file,noise=laplace"}, "promise: file: noise: Input should be 'gaussian', 'gauss"),
        ({"promise": "anyone,scale=1"}, "promise: anyone has no scale; it has: ranges, others, delta"),
        ({"promise": "file", "budget": 0.01}, "budget is that of all releases together, and must be >= eta = 0.05"),
        (
            {"promise": "drawn,noise=normal"},
            "promise: drawn: noise: unknown noise 'normal' (did you mean 'norm'?); known: gaussian, gaussian_diagonal",
        ),
        (
            {"promise": "drawn,coupling=moment"},
            "promise: drawn: coupling: Input should be 'auto', 'swap', 'mixture_swap', 'complement' or 'average_s",
        ),
        (
            {"statistic": "men"},
            "statistic: unknown statistic 'men' (did you mean 'mean'?); known: mean, sum, second_moment, covariance, ",
        ),
        ({"statistic": "table"}, "statistic table needs by: the columns that it counts"),
        ({"statistic": "table", "by": " , "}, "statistic table needs by: the columns that it counts"),
        ({"statistic": "sum", "by": "age"}, "statistic sum takes no by; histogram, table, mean do"),
        ({"by": '"age'}, "by: write columns as a,b and a name with a comma in double quotes, got '\"age'"),
        ({"label": "pay"}, "statistic mean takes no label; drop leaves a column out, got 'pay'"),
        (
            {"promise": "drawn,coupling=average_swap"},
            "promise: drawn: coupling average_swap promises nothing to every record; it needs about = average",
        ),
        ({"clip": 3}, "clip is now a range of each column, as compare = [{ anyone = "),
        (
            {"promise": {"anyone": {"ranges": "a=3:1"}}},
            "promise: anyone: ranges: a range is a column with its least and",
        ),
        ({"compare": "everything"}, "compare: promise must be one of anyone, file, drawn; got 'everything'"),
        ({"etta": 0.1}, "unknown key 'etta' (did you mean 'eta'?); known: "),
        ({"promise": "drawn", "declare": True}, "declare needs a ledger"),
        ({"insecure_seed": -1}, "insecure_seed: Input should be greater than or equal to 0, got -1"),
        (
            {"statistic": "table", "by": "town,sex", "levels": {"town": ["a"]}},
            "a table is published with the levels that you declare: levels of sex are missing, as --levels sex=a,b,c",
        ),
        ({"statistic": "histogram", "by": "age"}, "a histogram is published with the edges that you declare, as --set"),
        (
            {"levels": {"town": ["a"]}},
            "levels are those of the columns by which a table or a mean is, got statistic mean without by",
        ),
        (
            {"statistic": "mean", "by": "town"},
            "a table is published with the levels that you declare: levels of town are missing",
        ),
        (
            {"non_negative": True},
            "non_negative is for counts: statistic table, or mean with by, under any promise; got statistic mean",
        ),
        ({"merge": {"town": ["a:b"]}}, "merge is for tables of counts, got statistic mean"),
        (TABLE | {"merge": {"twon": ["a:b"]}}, "unknown column of merge 'twon' (did you mean 'town'?); known: town"),
        (
            TABLE | {"merge": {"town": ["a"]}},
            "merge joins neighbouring levels in their declared order, as town=a:d; got town=a",
        ),
        (TABLE | {"merge": {"town": ["c:a"]}}, "merge joins neighbouring levels in their declared order"),
        (TABLE | {"merge": {"town": ["a:z"]}}, "merge joins neighbouring levels in their declared order"),
        (TABLE | {"merge": {"town": ["a:b", "b:c"]}}, "ranges of merge share a level of town: a:b, b:c"),
        ({"rules": {"minimal": 3}}, "rules: unknown rule 'minimal' (did you mean 'minimum'?); known: minimum, "),
        ({"rules": {"minimum": 0}}, "rules: the threshold minimum must be a number >= 1, got 0"),
        ({"rules": {"p": "much"}}, "rules: the threshold p must be a number >= 0, got 'much'"),
        ({"rules": {"dominance_k": float("nan")}}, "rules: the threshold dominance_k must be a number >= 0, got nan"),
        (
            {"statistic": "table", "by": "town", "levels": {"twon": ["a"]}},
            "unknown column of levels 'twon' (did you mean 'town'?); known: town",
        ),
        ({"promise": "file,scale=0"}, "promise: file: scale must be > 0, got 0"),
        (
            {"promise": {"drawn": {"scale": ()}}},
            "promise: drawn: scale must be a number > 0, or one for each coordinate; got none",
        ),
        ({"promise": "file,scale=much"}, "promise: file: scale.0: Input should be a valid number"),
        (
            {"promise": {"drawn": {"scale": 1, "noise": object()}}},
            "promise: drawn: scale is that of a noise by name (gau",
        ),
        ({"ledger": ""}, "ledger: String should have at least 1 character, got ''"),
    ],
)
def test_the_line_that_a_bad_plan_gets(words, line: str) -> None:
    check(ProtectionPlan, DATA | words, line)


@pytest.mark.parametrize("missing", ["data", "eta"])
def test_what_cannot_be_left_out(missing: str) -> None:
    check(CalibrationPlan, {name: value for name, value in DATA.items() if name != missing}, f"the key '{missing}' is")


def test_a_calibration_has_no_draw() -> None:
    check(CalibrationPlan, DATA | {"ledger": "l.json"}, "unknown key 'ledger'")
    check(CalibrationPlan, DATA | {"insecure_seed": 1}, "unknown key 'insecure_seed'")


class TestMultiplier:
    @pytest.mark.parametrize(
        "target", [{"advantage": 0.1}, {"fpr": 0.01, "fnr": 0.95}, {"epsilon": 0.0, "delta": 1e-6}]
    )
    def test_target(self, target) -> None:
        plan = read(MultiplierPlan, RATES | target, "")
        assert plan.target == target
        assert plan.adjacency == "replace_one"

    @pytest.mark.parametrize(
        ("words", "given"),
        [
            ({}, "none"),
            ({"fpr": 0.1}, "fpr"),
            ({"epsilon": 1}, "epsilon"),
            ({"delta": 0.1, "fnr": 0.1}, "fnr, delta"),
            ({"advantage": 0.1, "epsilon": 1, "delta": 1e-5}, "advantage, epsilon, delta"),
            ({"advantage": 0.1, "fpr": 0.1, "fnr": 0.1}, "advantage, fpr, fnr"),
        ],
    )
    def test_exactly_one_target(self, words, given: str) -> None:
        check(MultiplierPlan, RATES | words, f"give advantage, or fpr and fnr, or epsilon and delta; got {given}")

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"advantage": 1}, "advantage must be > 0 and < 1, got 1"),
            ({"advantage": 0}, "advantage must be > 0 and < 1, got 0"),
            ({"fpr": 0, "fnr": 0.5}, "fpr must be > 0 and < 1, got 0"),
            ({"fpr": 0.1, "fnr": 0.9}, "fnr must be < 0.9, that of a guess at fpr = 0.1; got 0.9"),
            ({"epsilon": -1, "delta": 1e-5}, "epsilon: Input should be greater than or equal to 0, got -1"),
            ({"epsilon": float("inf"), "delta": 1e-5}, "epsilon: Input should be a finite number, got inf"),
            ({"epsilon": 1, "delta": 0}, "delta must be > 0 and < 1, got 0"),
            ({"advantage": 0.1, "sample_rate": 0}, "sample_rate must be > 0 and <= 1, got 0"),
            (
                {"advantage": 0.1, "sample_rate": 1.5},
                "sample_rate is a fraction: 1.5 is out of range; did you mean 0.015? It must be > 0 and <= 1",
            ),
            ({"advantage": 0.1, "steps": 0}, "steps: Input should be greater than or equal to 1, got 0"),
            ({"advantage": 0.1, "adjacency": "swap"}, "adjacency: Input should be 'add_remove' or 'replace_one', got"),
        ],
    )
    def test_the_line_that_a_bad_one_gets(self, words, line: str) -> None:
        check(MultiplierPlan, RATES | words, line)


def check(kind: Any, words: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(kind, words, "here")
    assert str(caught.value).startswith(f"here: {line}")
    assert "\n" not in str(caught.value)


def test_a_function_may_have_a_label() -> None:
    assert read(CalibrationPlan, DATA | {"statistic": "own:fit", "label": "pay"}, "here").label == "pay"
