"""The words of each design: its game, what it promises and what it does not, and what it tells of the data.

Every sentence of a page that depends on the design is a field here; no other module asks which design it is. A field is
a pattern, whose gaps `fill` takes from the certificate; an empty one leaves its sentence out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from leakbound.reports.about import NoiseFacts, OtherReleaseFacts
from leakbound.reports.numbers import count
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.words import say, several

NoiseOrigin = Literal["none", "declared", "scale", "shape"]
"""Where the noise comes from: there is none, it was declared, or its scale, or its scale and shape, were computed."""


@dataclass(frozen=True)
class Limit:
    """A row of the certificate on what the promise leaves out."""

    heading: str
    words: str = ""
    with_ledger: str = ""
    without_ledger: str = ""


@dataclass(frozen=True)
class DesignWords:
    """What a page says of a design."""

    question: str
    in_use: str
    from_a_seed: str
    owner_holds: str
    whether: str
    lede_limit: str
    odds: str
    guesses: str
    everyone: str
    unattacked: str
    no_noise: str
    no_noise_price: str
    no_noise_cost: str
    final: str
    exact: str
    exact_limit: str
    name: str
    heading: str
    called: str
    whom: str
    guess: str
    game: str
    noise_origin: Mapping[NoiseOrigin, str]
    recognised: str
    rate: str
    found: str
    false_alarm: str
    limits: Sequence[Limit]
    limits_first: bool
    tells: Mapping[NoiseOrigin, str]
    tells_curve: str
    owner_is_told: bool
    declared_public: str
    all_used: str
    sampling_note: str
    beside: str
    errs: str
    in_the_game: str
    checked: str
    glossary: Sequence[tuple[str, str]]
    releases: Mapping[str, str]


# Words that several designs share.
EVEN_ODDS = "if both answers are equally likely beforehand"
OF_FIRST_VERSION = "those who are in the first version of these data"
ROLLED_BACK = (
    "A release that is not in the ledger, as one that was made before the ledger was put back to an earlier copy, is "
    "not covered."
)
SAME_THINGS = "Protection of what the {units} have in common."
FINAL = "The noise is drawn; these numbers are final. What they were without noise is not published."
EXACT_LIMIT = "Anything about {names}: released exactly, outside of the promise."
NOISE_FROM_A_SEED = (
    "The noise came from a seed that was given, not from the operating system: whoever knows the seed takes the noise "
    "away."
)
SAMPLING_OF_ALL = "the sampling error is that of the {n_count} as a simple random sample of a large population"
BESIDE = "The noise is what the privacy cost, the sampling error what the sampling cost."
ACCURACY = ("Accuracy", "Cases of 100 in which the guess is right. 50 is guessing at even odds, 100 is certainty.")
ETA = ("η", "Accuracy minus that of a guess from the prior alone, as a fraction: what is promised.")
CEILING = ("Ceiling", "The curve that no attacker of this game exceeds, whatever it computes.")
CERTIFIED = ("Certified", "Follows from a proof under the assumptions of the certificate.")
MEASURED = ("Measured", "What an attack reached; a better attack may exist.")
RATE = "{fraction} of cases at {fpr} false alarms"
GROUP = (
    "The promise is to one {unit} at a time. What several {units} change together is the sum of their shifts, and the "
    "noise need not hide that."
)
ALL_RELEASES = "all releases of this ledger together, fixed before the first one"
TOGETHER: Mapping[str, str] = {
    "joint": ALL_RELEASES,
    "joint_of_one": ALL_RELEASES,  # the budget is that of the releases that may follow, too
    "spent": "all releases of this ledger so far",
}
NO_ORIGIN: Mapping[NoiseOrigin, str] = {"none": "", "declared": "", "scale": "", "shape": ""}

# k of n records are drawn in secret.
HALF_ANSWERED = (
    "That there is a release tells something too: {asked} is refused where the data do not allow it, and noise is left "
    "out where the draw alone keeps the promise."
)
HALF = DesignWords(
    question="Who is in the {statistic}?",
    in_use="{n}, {k} of them in the data",
    from_a_seed=(
        "The draw and the noise came from a seed that was given, not from the operating system: whoever knows the seed "
        "takes the noise away."
    ),
    owner_holds="what is proved beyond the promise, sampling errors, attacks and a digest",
    whether="whether {whose} is among the {k}",
    lede_limit="",
    odds="",  # those of the draw
    guesses="guesses whether {whose} is in the data",
    everyone="whoever the {unit} is and whatever the attacker computes",
    unattacked="No attack was run against it.",
    no_noise="None: the draw alone keeps the promise.",
    no_noise_price="It needs no noise.",
    no_noise_cost="No noise was added: the draw alone keeps the promise.",
    final="The noise is drawn; these numbers are final. What they were without noise is written nowhere.",
    exact="none",
    exact_limit="",
    name="Certificate",
    heading="The certificate",
    called="half draws",
    whom="For every one of the {n}",
    guess="“in or out”",
    game=(
        "{k} of the {n} are drawn uniformly at random and in secret. The attacker knows all {n_count} rows, the method "
        "and the distribution of the noise, but neither the draw nor the noise. Prior {prior}."
    ),
    noise_origin=NO_ORIGIN,
    recognised="No attacker finds more than {rates}.",
    rate="{fraction} of the members at {fpr} false alarms",
    found="members found",
    false_alarm="non-members called members",
    limits=(
        Limit(
            "Does not promise",
            f"Differential privacy. {SAME_THINGS}",
            with_ledger=(
                "Anything about a release of the same {k} that is not in the ledger, as one that was made before the "
                "ledger was put back to an earlier copy; those in it have a joint bound, which the owner has."
            ),
            without_ledger=(
                "Anything about a second release of the same {k}: with a ledger the joint bound is computed."
            ),
        ),
    ),
    limits_first=False,
    tells={
        "none": HALF_ANSWERED,
        "declared": (
            f"The scale of the noise was declared beforehand, and not computed from the data. {HALF_ANSWERED}"
        ),
        "scale": (
            "The scale of the noise was computed from all {n}, and rounded up to two significant digits. It speaks of "
            "the largest of them (in a table, of the smallest cells): the size of one that is far from all others is "
            f"told to some ten per cent. {HALF_ANSWERED}"
        ),
        "shape": (
            "Scale and shape of the noise (deviations and correlations) were computed from all {n}. The scale is "
            "rounded up to two significant digits, the shape to two digits of each deviation and two decimals of each "
            "correlation. They speak of the largest of the {units}: the size of one that is far from all others is "
            f"told to some ten per cent. {HALF_ANSWERED}"
        ),
    },
    tells_curve="",
    owner_is_told=False,
    declared_public=(
        "The numbers n and k, the names of the columns{levels}{classes}, and the plan. All else is computed from the "
        "released values and the printed noise."
    ),
    all_used=(
        "The data are {k} of the {n_count} {units}, drawn at random: the sampling error is about {longer} times that "
        "of all."
    ),
    sampling_note="the sampling error is that of the {k} as a simple random sample of a large population",
    beside="",
    errs=(
        "Against the statistic of all {n_count} {units} this release errs by its sampling and its noise, differential "
        "privacy on all {n_count} by its noise alone."
    ),
    in_the_game=(
        "In the game of this page {k} of the {n_count} {units} are in the data, and the attacker, who sees the "
        "release, guesses who."
    ),
    checked=(
        "The certificate can be checked from the table of all {units}; the released values cannot be drawn again, by "
        "design."
    ),
    glossary=(
        ACCURACY,
        ETA,
        ("TPR, FPR", "Fraction of members found; fraction of non-members wrongly called members."),
        CEILING,
        (
            "Coupling",
            "A way to pair data with the {unit} and data without; it turns the noise into a promise.",
        ),
        (
            "Certified",
            "Follows from a proof under the assumptions of the certificate; with a confidence where pairs were drawn.",
        ),
        MEASURED,
        ("Asymptotic", "What the numbers tend to as the data grow; proved for no particular size."),
    ),
    releases={},
)

# One record is left out, in secret and for the life of the data.
LEFT_OUT_OUTSIDE = (
    "Everything that depends on all {n} is outside of the promise and tells about the file: the scale, the shape and "
    "the grid of the noise, refusals, standard errors."
)
LEFT_OUT_SIZE = (
    "Each release tells the size of one that is far from all others to some ten per cent, and several releases tell it "
    "more closely."
)
LEFT_OUT_EXACT = (
    "the numbers are the same for so many of those who may be left out that the promise is kept without any. They are "
    "exact, and what they tell of the file is outside of the promise."
)
LEFT_OUT = DesignWords(
    question="Who is left out of the {statistic}?",
    in_use="{n}, all but one of them in the data",
    from_a_seed=(
        "Who is left out and the noise came from a seed that was given, not from the operating system: whoever knows "
        "the seed takes the noise away."
    ),
    owner_holds="what is proved beyond the promise, sampling errors, attacks and a digest",
    whether="whether {whose} is the {unit} left out",
    lede_limit=(
        "The promise is about that one {unit}, and not about the file: unless its scale was declared, the printed "
        "noise tells {told} to some ten per cent, and the release is no anonymisation in the sense of the law."
    ),
    odds=EVEN_ODDS,
    guesses="knows all {n} and guesses whether {whose} is the {unit} left out",
    everyone="whichever of {them} it is and whatever the attacker computes",
    unattacked="No attack was run against it.",
    no_noise=f"None: {LEFT_OUT_EXACT}",
    no_noise_price=f"No noise was added: {LEFT_OUT_EXACT}",
    no_noise_cost="No noise was added.",
    final=FINAL,
    exact="none: exact",
    exact_limit=EXACT_LIMIT,
    name="Leave-one-out membership certificate",
    heading="The leave-one-out membership certificate",
    called="leave one out",
    whom="For every one of {them}",
    guess="“left out or not” at even odds",
    game=(
        "One of the {n} is drawn uniformly at random and in secret, and left out. The release is a function of the "
        "other {k} alone, plus noise; all else is public. The attacker knows all {n}, the method and the distribution "
        "of the noise, but neither which one is left out nor the noise that was drawn, and guesses whether the "
        "{unit} left out is a given one or a random other one: both are equally likely beforehand. Prior {prior}."
    ),
    noise_origin={
        "none": "",
        "declared": "Its scale was declared beforehand.",
        "scale": "Its scale was computed from all {n}.",
        "shape": "Its scale and shape were computed from all {n}.",
    },
    recognised="No attacker recognises the {unit} left out in more than {rates}.",
    rate=RATE,
    found="the record left out recognised",
    false_alarm="another one called left out",
    limits=(
        Limit(
            "Does not promise",
            "Differential privacy: the promise is about one {unit} among {n} that the attacker knows, and not about "
            f"whoever may be in any file. {SAME_THINGS}",
        ),
        Limit(
            "Part of the promise",
            "The words “a function of the others alone, all else public”. Without them, publishing the statistic of "
            "all {n} would keep the same promise about the {unit} left out.",
        ),
        Limit(
            "Other releases",
            "A fresh left-out {unit} for each release would protect nobody.",
            with_ledger=(
                "So the ledger keeps the same {unit} left out for the life of the data, and adds up what all its "
                f"releases tell. {ROLLED_BACK}"
            ),
            without_ledger=(
                "So the same one has to be left out for the life of the data, in a ledger that adds up what all "
                "releases tell."
            ),
        ),
        Limit("Groups", GROUP),
        Limit(
            "If the file is secret",
            "Where the file itself is the secret, use differential privacy (promise anyone).",
        ),
    ),
    limits_first=True,
    tells={
        "none": LEFT_OUT_OUTSIDE,
        "declared": (
            "The scale of the noise was declared beforehand, and not computed from the data; it is refused where it "
            "does not keep the promise. Everything that depends on all {n} is outside of the promise and tells about "
            "the file: the grid of the noise, refusals, standard errors."
        ),
        "scale": (
            f"{LEFT_OUT_OUTSIDE} The scale is rounded up to two significant digits. It speaks of the largest of the "
            f"{{units}} (in a table, of the smallest cells). {LEFT_OUT_SIZE}"
        ),
        "shape": (
            f"{LEFT_OUT_OUTSIDE} The scale is rounded up to two significant digits, the shape to two digits of each "
            "deviation and two decimals of each correlation. They speak of the largest of the {units}. "
            f"{LEFT_OUT_SIZE}"
        ),
    },
    tells_curve=(
        "The ceiling at the false alarms of this page was computed from all {n}, with the printed noise, and is "
        "published rounded up to 1, 2 or 5 times a power of ten."
    ),
    owner_is_told=True,
    declared_public=(
        "The number n, the names of the columns{levels}{classes}{entry}, and the plan. All else is computed from the "
        "released values and the printed noise, or is named under “Tells of the data”."
    ),
    all_used="All but one of the {n} are used.",
    sampling_note=SAMPLING_OF_ALL,
    beside=BESIDE,
    errs=(
        "Against the statistic of all {n_count} {units} this release errs by the {unit} left out and by its noise, "
        "differential privacy on all {n_count} by its noise alone."
    ),
    in_the_game=(
        "In the game of this page one of the {n} is left out, and the attacker, who knows all of them and sees the "
        "release, guesses whether it is a given one."
    ),
    checked=(
        "The certificate can be checked from the table of all {units}; without the key of the ledger the released "
        "values cannot be drawn again."
    ),
    glossary=(
        ACCURACY,
        ETA,
        (
            "TPR, FPR",
            "How often the {unit} left out is recognised; how often another one is wrongly called the {unit} left out.",
        ),
        CEILING,
        (
            "Shift",
            "How far the statistic moves if another {unit} is left out, compared with the noise.",
        ),
        CERTIFIED,
        MEASURED,
    ),
    releases=TOGETHER,
)

# Differential privacy on all records, from what was declared alone.
DP_ORIGIN = "Its size follows from η, n and what was declared of the columns alone."
DP_TELLS = (
    "Nothing beyond the promise: the noise follows from η, n and what was declared of the columns alone, and not from "
    "the data. How many values were moved to the ends of their ranges is not published."
)
DIFFERENTIAL_PRIVACY = DesignWords(
    question="Who is in the {statistic}?",
    in_use="{n}, all of them in the data",
    from_a_seed=NOISE_FROM_A_SEED,
    owner_holds="sampling errors, how many values were outside of their ranges, and a digest",
    whether="whether {whose} is in the data or another one instead",
    lede_limit="This holds for every {unit}, in this file or any other.",
    odds=EVEN_ODDS,
    guesses="knows all other {units} and guesses whether {whose} is in the data or another one instead",
    everyone="whoever the {unit} is, in this file or any other, and whatever the attacker computes",
    unattacked="",
    no_noise="None.",
    no_noise_price="No noise was added.",
    no_noise_cost="No noise was added.",
    final=FINAL,
    exact="none: exact",
    exact_limit=EXACT_LIMIT,
    name="Certificate of differential privacy",
    heading="The certificate of differential privacy",
    called="differential privacy",
    whom="For every {unit}, in this file or any other",
    guess="“this one or another” at even odds",
    game=(
        "All {n} are used, and their number is public. The attacker knows all but one of them and two candidates for "
        "that one, the method and the distribution of the noise, but not the noise that was drawn, and guesses which "
        "of the two is in the data: both are equally likely beforehand. This holds whatever the values of all of them "
        "are. Prior {prior}."
    ),
    noise_origin={"none": "", "declared": DP_ORIGIN, "scale": DP_ORIGIN, "shape": DP_ORIGIN},
    recognised="No attacker recognises that a given {unit} is in the data, and not another one, in more than {rates}.",
    rate=RATE,
    found="members found",
    false_alarm="non-members called members",
    limits=(
        Limit(
            "Does not promise",
            f"{SAME_THINGS} Secrecy of what was declared public.",
        ),
        Limit(
            "Other releases",
            with_ledger=f"The ledger adds up what all its releases tell. {ROLLED_BACK}",
            without_ledger=(
                "What two releases of the same data tell adds up. A ledger keeps count; a release that is in none is "
                "not covered."
            ),
        ),
        Limit(
            "Groups",
            "The promise is to one {unit}. For several at once, as those of one family, it is weaker, the more they "
            "are.",
        ),
    ),
    limits_first=True,
    tells={"none": DP_TELLS, "declared": DP_TELLS, "scale": DP_TELLS, "shape": DP_TELLS},
    tells_curve="",
    owner_is_told=True,
    declared_public=(
        "The number n, the names of the columns{ranges}{levels}{entry}, and the plan. All else is computed from these "
        "and the released values."
    ),
    all_used="All {n} are used.",
    sampling_note=SAMPLING_OF_ALL,
    beside=BESIDE,
    errs="",
    in_the_game=(
        "In the game of this page a given {unit} is in the data, or another one instead, and the attacker, who knows "
        "all others and sees the release, guesses which."
    ),
    checked=(
        "The noise can be checked from what was declared; without the key of the ledger the released values cannot be "
        "drawn again."
    ),
    glossary=(
        ACCURACY,
        ETA,
        (
            "TPR, FPR",
            "How often a {unit} in the data is recognised; how often another one is wrongly said to be in the data.",
        ),
        CEILING,
        (
            "ε, δ",
            "The usual parameters of differential privacy: the probability of any output changes by a factor of at "
            "most e<sup>ε</sup>, and by δ beyond that.",
        ),
        CERTIFIED,
        MEASURED,
    ),
    releases=TOGETHER,
)

WORDS: Mapping[str, DesignWords] = {
    "dp": DIFFERENTIAL_PRIVACY,
    "leave-one-out": LEFT_OUT,
    "half": HALF,
}
# Designs under which nothing is released any more, as the certificates of later releases name them.
RETIRED: Mapping[str, str] = {"per-instance": "per instance"}


ONE_DESIGN = (
    "Choose the design before the first release: after it, a release of these data under another design is refused "
    "unless it is asked for as another_design, and then no joint number is promised over both."
)
# What a question calls a statistic whose own name is an abbreviation.
ASKED = {"ols": "regression", "second_moment": "second moments", "standard_errors": "standard errors"}


def words_of(result: ProtectedResult) -> DesignWords:
    """Return the words of the design of a release."""
    return WORDS[result.certificate.design]


def name_of(result: ProtectedResult) -> str:
    """Return the design as a plan names it."""
    return result.certificate.design


def question_of(design: str, statistic: str) -> str:
    """Write the question that a release answers, for a report without a title.

    >>> question_of("leave-one-out", "mean")
    'Who is left out of the mean?'
    """
    return WORDS[design].question.format(statistic=ASKED.get(statistic, statistic))


def shares_its_design(result: ProtectedResult, other: OtherReleaseFacts) -> bool:
    """Whether a release that the certificate names is under its own design, as one of another ledger is."""
    return other.design == result.certificate.design


def named_design(other: OtherReleaseFacts) -> str:
    """Name the design of a release that the certificate of another one names."""
    return RETIRED.get(other.design) or WORDS[other.design].called


def fill(result: ProtectedResult, pattern: str, **more: object) -> Markup:
    """Fill the gaps of a sentence from the certificate; ``more`` are gaps of its own."""
    certificate = result.certificate
    gaps = {
        "n": several(certificate.n, result.unit),
        "n_count": count(certificate.n),
        "k": count(certificate.k),
        "unit": result.unit,
        "units": result.units,
        "whose": f"a {'randomly chosen' if result.on_average else 'given'} {result.unit}",
        "prior": "½" if certificate.prior == 0.5 else f"{count(certificate.k)}/{count(certificate.n)}",
    }
    is_changed = any(term.id == "versions_differ" for term in certificate.assumptions)
    gaps["them"] = OF_FIRST_VERSION if is_changed else f"the {gaps['n']}"
    return say(pattern, **{**gaps, **more})


def origin_of(result: ProtectedResult) -> NoiseOrigin:
    """Tell where the noise comes from; of several statistics, for the one whose noise tells most of the data."""
    statistics = result.about.statistics
    if not statistics:
        return noise_origin(result.certificate.noise, result.certificate.no_noise)
    origins: list[NoiseOrigin] = [noise_origin(each.noise, each.noise.family == "none") for each in statistics]
    return max(origins, key=list(words_of(result).tells).index)


def noise_origin(noise: NoiseFacts, no_noise: bool) -> NoiseOrigin:
    """Tell where a noise comes from."""
    if no_noise:
        return "none"
    if noise.declared:
        return "declared"
    return "scale" if noise.deviations is None else "shape"
