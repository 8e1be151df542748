"""What a report says of itself: one frozen model for each kind of report.

`schema.json` is generated from these models and from those of `content`.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from leakbound.core.checks import one_line
from leakbound.core.findings import Term
from leakbound.core.unit_words import UnitWord
from leakbound.reports import plain
from leakbound.version import __version__

INFINITIES = {"inf": float("inf"), "-inf": float("-inf")}


def _infinity(value: Any) -> Any:
    """JSON has no infinities: they are the texts "inf" and "-inf", where a number is expected and nowhere else."""
    return INFINITIES.get(value, value) if isinstance(value, str) else value


def _number(value: Any) -> float:
    """Read a number, infinities included; a whole number stays one."""
    number = _infinity(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"must be a number, inf or -inf, got {one_line(repr(value), 40)}")
    return number


def _our_name(value: Any) -> Any:
    """Read our former name, which older reports have, as ours."""
    return "leakbound" if value == "leakscope" else value


infinity = BeforeValidator(_infinity)
Text = Annotated[str, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NonNegative = Annotated[Real, Field(ge=0)]
Fraction = Annotated[Real, Field(ge=0, le=1)]
Number = Annotated[
    float,
    PlainValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(INFINITIES)}]}),
]
Sampling = Literal["fixed", "poisson"]


class Facts(BaseModel):
    """Facts that cannot be changed; an unknown one is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _number_or_name(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a number or a name, got {one_line(repr(value), 40)}")
    return value


class TermFacts(Facts):
    """A fact as data: an id, and the numbers and names that belong to it."""

    id: Annotated[Text, Field(min_length=1)]
    values: dict[
        Text,
        Annotated[
            Any,
            infinity,
            AfterValidator(_number_or_name),
            WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
        ],
    ]


class DataFacts(Facts):
    """The data that a report is made from."""

    name: Text
    digest: Text = Field(description="First 16 digits of its SHA-256; empty where published.")
    records: Count


class TheoremFacts(Facts):
    """A theorem or an attack in words."""

    title: Text
    source: Text
    summary: Text


class ExecutionFacts(Facts):
    """Of the run, not of the result: how many models came from the store, and how many were made."""

    reused: Count
    made: Count
    first_written: Text = Field("", description="When the oldest of the models from the store was written there.")
    last_written: Text = Field("", description="When the newest of them was.")
    retries: Count = Field(default=0, description="Always 0; reports of earlier versions have it.")
    other_machine: Count = Field(
        0,
        description="Chunks that another kind of machine stored first, with other bytes: those are in the result.",
    )
    differing: Count = Field(
        0, description="The same of this kind of machine: the release does not give the same bytes every time."
    )


class GamesFacts(Facts):
    """The games against single records."""

    played: Positive = Field(description="Games against each record.")
    won: tuple[Count, ...] = Field(
        description="Number of records against which 0, 1, ... all games were won; empty in a report without records "
        "where there are fewer than 100."
    )
    first_exposed: Annotated[int, Field(strict=True)] | None = Field(
        description="Least number of correct guesses at which a record is exposed; null where none can be."
    )
    exposed: Count
    records: Count
    attack: Text
    smallest_detectable: Number
    models_needed: Count


FEWEST_OF_SLICE = 10  # members and others of a slice that is measured; records of one that is named in public


class SliceFacts(Facts):
    """The slices by which records are compared."""

    attack: Text = Field(description="The strongest attack on all records; empty if none applies.")
    columns: tuple[Text, ...]
    intervals: Count = Field(description="How many intervals hold at once.")
    left_out: Count = Field(
        description=f"Slices of fewer than {FEWEST_OF_SLICE} records, which are not in a published report."
    )


class GroupFacts(Facts):
    """Some of the records: a class, a part of the response, or several small ones together."""

    name: Text
    records: Count
    judged: Flag = Field(description="False for a small group that a joined one contains.")
    joined: tuple[Text, ...] = Field(description="What a joined group is made of, the smallest first.")
    models_needed: Count | None = Field(
        description="Of a joined group: with so many models each of its parts would be judged by itself; null where "
        "one of them is too small with any number of models."
    )
    exposed: Count | None = Field(
        description="How many of its records the strongest attack on all records exposes; null where records were "
        "not tested, and where published."
    )


class GroupsFacts(Facts):
    """The groups that are looked at by default."""

    groups: tuple[GroupFacts, ...]
    least: Positive = Field(description="Groups of fewer records are joined with each other.")
    intervals: Count = Field(description="How many intervals hold at once.")
    left_out: Count = Field(
        description=f"Groups of fewer than {FEWEST_OF_SLICE} records, which are not in a published report."
    )
    reason: TermFacts | None = Field(description="Why there are no groups.")


class FreshFacts(Facts):
    """Data sets that share nothing but their targets: how large they are, and what the others are drawn from."""

    targets: Positive = Field(description="Units that are in each data set by a fair coin.")
    size: Positive = Field(description="Units in each data set.")
    pool: Positive = Field(description="Units from which the others of each data set are drawn.")


class SyntheticFacts(Facts):
    """The tables behind an audit of synthetic data."""

    files: Positive = Field(description="Synthetic files that were published together.")
    rows: Positive = Field(description="Of all synthetic files.")
    reference: Count = Field(description="Rows of the reference; 0 without one.")
    columns: tuple[Text, ...] = Field(description="Columns that are compared.")


class ReleaseFacts(Facts):
    """A release that was attacked, and the game that was played with it."""

    name: Text
    title: Text
    description: Text
    data: DataFacts
    game: Literal[
        "half_split",
        "fresh",
        "forgotten",
        "one_model",
        "synthetic",
        "per_datum",
        "average_datum",
        "canaries",
        "signals",
        "scores",
    ]
    sampling: Sampling
    models: Count
    targets: Count
    references: Count
    target_points: Count
    population: Count
    prior: Fraction
    best: Text = Field(description="The attack with the largest lower end of its accuracy; empty if none applies.")
    games: GamesFacts | None
    knowledge: Literal["distribution", "others"] | None = Field(
        description="What the attacker who saw the steps of DP-SGD knew of the other records: the distribution of "
        "their gradients, or their batches; null for other releases."
    )
    files: dict[Text, Annotated[Text, Field(pattern="^[0-9a-f]{64}$")]] = Field(
        description="Files that the model was read from, with the SHA-256 of each."
    )
    slices: SliceFacts | None = Field(None, description="Null where no slices were asked for.")
    groups: GroupsFacts | None = Field(None, description="Null where the game is not about many records.")
    sampled_from: Count | None = Field(
        None, description="Of how many records the attacked ones are a random sample; null if all are attacked."
    )
    kept: Literal["half", "all"] | None = Field(
        None, description="In the game forgotten, the records that are kept in each model; null in other games."
    )
    fresh: FreshFacts | None = Field(None, description="Null in other games than fresh.")
    steps_by: Annotated[Literal["leakbound", "own_sum", "own_loop", "elsewhere"] | None, BeforeValidator(_our_name)] = (
        Field(
            None,
            description="Who made the steps of DP-SGD that were seen: leakbound; leakbound with a sum of the user's "
            "own; the user's loop; a loop that leakbound did not run. Null for other releases.",
        )
    )
    synthetic: SyntheticFacts | None = Field(None, description="Null where no synthetic data were audited.")
    family: Literal["", "generator", "trees", "regularised", "neighbours", "network", "dpsgd"] = Field(
        "", description="The family of the model, for advice on how to change it; empty if it is not known."
    )
    prepared: Text = Field(
        "",
        description="What leakbound did to the data before a model was fitted on them, or asked about them; empty if "
        "nothing.",
    )
    shared: Count = Field(0, description="How many of the others are among the members of a trained model, too.")
    units: Count | None = Field(
        None, description="How many units of privacy the records belong to; null where each is a unit of its own."
    )


class AttributeFacts(Facts):
    """A release that was asked for an attribute of its records."""

    name: Text
    title: Text
    description: Text
    data: DataFacts
    attribute: Text
    values: Annotated[int, Field(strict=True, ge=2)]
    chance: Fraction
    attacked: Positive
    sampling: Sampling
    models: Positive
    population: Count
    baseline: Literal["", "prior_guess", "imputation"]
    best: Text


class NoiseFacts(Facts):
    """The noise as it is printed."""

    family: Text
    scale: NonNegative = Field(
        description="Of two significant digits, rounded up, where it was computed from all records."
    )
    rms: tuple[NonNegative, ...] = Field(description="A number for each coordinate.")
    grid: tuple[NonNegative | None, ...] | None = Field(
        description="Steps of the grid on which the released values lie, a number for each coordinate; null where it "
        "gets no noise."
    )
    deviations: tuple[Annotated[Real, Field(gt=0)], ...] | None = Field(
        description="Standard deviations of the noise of scale 1, of the coordinates with noise; null where all are "
        "equal."
    )
    correlations: tuple[tuple[Real, ...], ...] | None = Field(
        description="Correlations of the noise; null where there are none, and where there are several statistics: "
        "each of them has its own noise."
    )
    declared: Flag = Field(
        description="The noise was declared beforehand; otherwise it was computed from all records and rounded."
    )


def term_facts(terms: Sequence[Term]) -> tuple[TermFacts, ...]:
    """Return terms as a report holds them."""
    return tuple(TermFacts(id=term.id, values=dict(term.values)) for term in terms)


class CheckFacts(Facts):
    """A limit of a policy, and whether a model keeps it."""

    check: Text = Field(
        description="What is limited: a quantity of the findings; or claim, one_source or attack, which must not be "
        "refuted, must not be in doubt, and must have been run."
    )
    outcome: Literal["kept", "not_kept", "open"]
    fpr: Fraction | None = Field(default=None, description="False positive rate of a quantity that is taken at one.")
    limit: Number | None = Field(default=None, description="The largest value allowed; of the structure, the smallest.")
    value: Number | None = None
    low: Number | None = Field(
        default=None, description="The lower end of the attack that decides, at the confidence of not_kept."
    )
    high: Number | None = Field(
        default=None, description="The upper end of the attack that decides, at the confidence of kept."
    )
    attack: Text = Field(default="", description="The attack that the value is of, or that must have been run.")
    group: Text = Field(default="", description="The group of records that the value is of.")
    reason: TermFacts | None = Field(default=None, description="Why it is open, or not kept.")


class DecisionFacts(Facts):
    """The verdict of a policy on a model."""

    release: Text
    verdict: Literal["release", "ask", "do_not_release"]
    checks: tuple[CheckFacts, ...]
    left_out: tuple[Text, ...] = Field((), description="The default attacks that the audit was not asked for.")


class LedgerEntryFacts(Facts):
    """The place of a release in a ledger whose releases keep one budget together."""

    number: Positive = Field(description="1 for the first release of the ledger.")
    digest: Annotated[Text, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="SHA-256, with a key, of the entry: two copies of a ledger with different releases differ in it."
    )
    budget: Annotated[Real, Field(gt=0, le=0.5)] = Field(
        description="Accuracy above the prior guess that all releases of the ledger together keep, fixed by the first."
    )
    declared: Positive = Field(description="Queries that were declared before the first output.")


class OtherReleaseFacts(Facts):
    """A release of the same people in another ledger, as under another design: no number is promised over both."""

    design: Literal["dp", "leave-one-out", "per-instance", "half"]
    date: Text = Field(description="Empty where its ledger keeps none.")
    number: Positive = Field(description="1 for the first release of its ledger.")
    digest: Annotated[Text, Field(pattern="^[0-9a-f]{64}$")] = Field(description="Of its entry.")


class CertificateFacts(Facts):
    """What is promised, and what the promise rests on."""

    promise: Literal["anyone", "file", "drawn"] = Field(
        description="To whoever may be in any file; to each record of this file; or about who was drawn from it."
    )
    design: Literal["dp", "leave-one-out", "half"] = Field(description="How the promise is kept.")
    eta: Annotated[Real, Field(gt=0, le=0.5)] = Field(description="Of this release.")
    about: Literal["every", "average"] = Field(description="To every record, or to one drawn at random.")
    prior: Annotated[Real, Field(gt=0, lt=1)]
    k: Positive = Field(description="Records in use, or people where they have several; n with differential privacy.")
    n: Annotated[int, Field(strict=True, ge=2)]
    coupling: Text
    noise: NoiseFacts
    exact: Flag = Field(description="Nothing was sampled.")
    confidence: Fraction
    pairs: Count | None = Field(description="Null where published.")
    fits: Count | None = Field(description="Null where nothing is sampled; where published, how many were allowed.")
    failures: Count | None = Field(description="Null where published.")
    assumptions: tuple[TermFacts, ...]
    ledger: Flag = Field(description="Draw and noise belong to a ledger, which knows of other releases of the draw.")
    entry: LedgerEntryFacts | None = Field(
        None, description="The place in a ledger of releases that add up under one budget; null without one."
    )
    no_noise: Flag = Field(description="The draw alone keeps the promise, and nothing was added.")
    others: tuple[OtherReleaseFacts, ...] = Field(
        default=(), description="Releases of the same data under other designs, as far as their ledgers were found."
    )


class ReleasedValue(Facts):
    """One released number."""

    name: Text
    statistic: Text = Field(default="", description="The statistic that it belongs to, where there are several.")
    unit: Text
    value: Number | None = Field(
        description="With its noise; null for a mean whose count says too little, and for a failure."
    )
    noise_std: NonNegative | None = Field(description="Of the noise, in the unit of the number; null without a value.")
    low: Real | None = Field(
        default=None,
        description="End of a 95 % interval of the noise, where it is not value -/+ 1.96 noise_std; null otherwise.",
    )
    high: Real | None = None
    sampling_std: NonNegative | None = Field(
        description="Sampling error of the statistic on k records, if they are a simple random sample; where "
        "published, of a mean whose variance was released with it, computed from the released numbers."
    )
    sample_cost: NonNegative | None = Field(description="Records that the noise is worth.")


class PlannedNumber(Facts):
    """One number that a release would publish, for the owner: its noise before anything is released."""

    name: Text
    statistic: Text = Field(default="", description="The statistic that it belongs to, where there are several.")
    noise_std: NonNegative | None = Field(
        description="Of the noise, in the unit of the number; null for a mean whose count says too little."
    )
    noise_95: NonNegative | None = Field(
        description="Half of the central 95 % interval of the noise, of a count whole; null where none is computed."
    )
    sampling_std: NonNegative | None = Field(description="Sampling error without noise; null where it is not known.")


class PublishedCell(Facts):
    """One number of a table for publication."""

    levels: tuple[Text | None, ...] = Field(description="Of each column; null where its levels are added up.")
    quantity: Text = Field(description="What the number is: count, or mean of a column.")
    value: Real | None = Field(
        description="Of a count a whole number; null for a mean whose count is not above 1.96 deviations of its noise."
    )
    noise_std: NonNegative | None = Field(description="Of the noise, rounding to a whole number included.")
    low: Real | None = Field(
        description="End of a 95 % interval of the noise, of a count whole; null if it is not Gaussian."
    )
    high: Real | None
    sampling_std: NonNegative | None = Field(
        description="Sampling error of a simple random sample of rows, where it is a function of released numbers and "
        "each unit has one row; of a count c of n records "
        "sqrt(c (1 - c/n)), of the released count; null for the total, and where c is not between 0 and n."
    )


class PublishedTable(Facts):
    """A table for publication: made from the released numbers, their noise and what is public, at no cost."""

    by: tuple[Text, ...] = Field(description="Columns whose levels are the cells.")
    cells: tuple[PublishedCell, ...] = Field(description="The cells first, then the margins, which are their sums.")
    total: Count | None = Field(description="Public number that the counts add up to; null where none is known.")
    non_negative: Flag = Field(description="Negative counts were set to 0, and the others made smaller.")


class DesignErrors(Facts):
    """What a design would have cost for the same accuracy of its own attacker."""

    name: Literal["dp", "leave-one-out", "half"]
    promise: Literal["anyone", "file", "drawn"]
    errors: tuple[NonNegative, ...] | None = Field(
        description="Root mean square error of each number against the statistic of all records; null if it has none."
    )
    reason: Text = Field(description="Why it has none; empty otherwise.")
    method: Literal["", "discrete_gaussian", "pac_least_noise", "izzo_gamma"] = Field(
        default="", description="Whose noise it is, if not that of leakbound protect: shown for comparison alone."
    )
    is_estimated: Flag = Field(
        default=False, description="The errors are estimated from draws of half of the records, and not computed."
    )


class DesignsCompared(Facts):
    """All designs side by side: exact functions of the data, for their owner alone."""

    labels: tuple[Text, ...]
    standard_errors: tuple[NonNegative | None, ...] = Field(description="Of the statistic of all records.")
    designs: tuple[DesignErrors, ...]
    recommended: Literal["dp", "leave-one-out", "half"]
    why: Literal["counts", "ranges", "no_ranges", "no_levels", "quantiles", "no_bound", "drop_missing"] = Field(
        description="The public fact that the recommendation follows from."
    )


class OfficeRule(Facts):
    """A rule of thumb of statistics offices, checked on the exact numbers: for the owner alone."""

    rule: Literal[
        "minimum_frequency", "dominance", "p_percent", "told_by_noise", "dominance_by_noise", "degrees_of_freedom"
    ]
    thresholds: dict[Text, Real]
    checked: Count = Field(description="Cells, groups or numbers that were checked.")
    failing: tuple[Text, ...] = Field(description="Their names.")


class ColumnScale(Facts):
    """How a column is moved and scaled before a statistic is computed: ``(x - centre)/spread``."""

    column: Text
    centre: Real
    spread: Annotated[Real, Field(gt=0)]


class StatisticParameters(Facts):
    """What a reader of the numbers of a statistic must know: unit, transformation and parameters."""

    kind: Literal[
        "mean", "sum", "second_moment", "covariance", "correlation", "ratio", "histogram", "quantiles", "ols",
        "standard_errors", "ridge", "logistic", "poisson", "huber",
    ]  # fmt: skip
    response: Text = Field(default="", description="Of a regression: the column that is explained; empty for an array.")
    modelled_class: Text = Field(
        default="", description="Of a logistic regression: the value of the response whose log odds are modelled."
    )
    scales: tuple[ColumnScale, ...] = Field(
        default=(), description="Of each column; the spread of second moments is 1. Empty for columns as they are."
    )
    scales_of_data: Flag = Field(
        default=False,
        description="The penalty is of slopes per standard deviation of all records, which is not published; the "
        "coefficients are those of the columns as they are.",
    )
    penalty: NonNegative | None = Field(
        default=None,
        description="Of ridge, times the sum of squared slopes beside that of squared residuals; of poisson and huber, "
        "times half of it beside the losses; of logistic, C: one over that of poisson.",
    )
    threshold: Annotated[Real, Field(gt=0)] | None = Field(
        default=None, description="Of huber: c of the pseudo-Huber loss, in the unit of the response."
    )
    denominator: Text = Field(default="", description="Of a ratio: the column by whose total the others are divided.")
    interpolation: Literal["", "linear"] = Field(
        default="", description="Of quantiles: between the two nearest records."
    )
    of_values: Flag = Field(
        default=False,
        description="A record without a value is in no count and no sum, and how many have one has noise, too.",
    )
    least_count: NonNegative | None = Field(
        default=None, description="Where the noisy count is not above it, a number that is divided by it is left out."
    )


class StatisticFacts(Facts):
    """One of several statistics that were released together, under one promise."""

    name: Text
    weight: Annotated[Real, Field(gt=0)] = Field(description="Relative size of its part of eta.")
    noise: NoiseFacts
    parameters: StatisticParameters | None = Field(default=None, description="Null where the names say all.")
    table: PublishedTable | None = Field(default=None, description="Counts or means of groups as they are published.")
    rules: tuple[OfficeRule, ...] = Field(default=(), description="For the owner: empty where published.")


class About(Facts):
    """What every report says of itself."""

    leakbound: Text = Field(
        description="The version that made it.",
        validation_alias=AliasChoices("leakbound", "leakscope"),  # our former name, in older reports
    )
    title: Text
    unit: UnitWord = Field(
        description="What a record is called: record, person, household; with the word for several where that was "
        "given, as Person/Personen."
    )
    date: Text
    seed: Annotated[int, Field(strict=True)]
    confidence: Fraction
    command: Text
    plan: dict[str, Any]
    versions: dict[str, Text]
    notes: tuple[Text, ...]

    def source_of(self, attack: str) -> str:
        """Where a number without a source of its own comes from; empty where nothing is said."""
        return ""


class AuditAbout(About):
    """Of an audit of membership."""

    kind: Literal["audit"]
    owner_notes: tuple[Text, ...] = Field((), description="Notes that quote values of the data: never published.")
    fpr: tuple[Fraction, ...]
    attacks: dict[Text, TheoremFacts]
    execution: ExecutionFacts | None = Field(description="Null where nothing was stored.")
    releases: tuple[ReleaseFacts, ...] = Field(min_length=1)
    decisions: tuple[DecisionFacts, ...] = Field((), description="Of the policy of the plan; empty without one.")
    failed: dict[Text, Text] = Field(
        default_factory=dict,
        description="Releases that could not be audited, with the error of each; the error is empty where published.",
    )

    def source_of(self, attack: str) -> str:
        """Where an attack was published."""
        return self.attacks[attack].source if attack in self.attacks else ""


class AttributeAbout(About):
    """Of an audit of an attribute."""

    kind: Literal["attribute"]
    owner_notes: tuple[Text, ...] = Field((), description="Notes that quote values of the data: never published.")
    attacks: dict[Text, TheoremFacts]
    execution: ExecutionFacts | None = Field(description="Null where nothing was stored.")
    releases: tuple[AttributeFacts, ...] = Field(min_length=1)

    def source_of(self, attack: str) -> str:
        """Where an attack was published."""
        return self.attacks[attack].source if attack in self.attacks else ""


class BoundAbout(About):
    """Of a bound."""

    kind: Literal["bound"]
    bound: Text = Field(description="The row of the table of bounds: dp, gaussian, leakage, ...")
    subject: Text = Field(description="What is bounded, in words.")
    question: Text
    fpr: tuple[Fraction, ...]
    theorem: TheoremFacts
    data: DataFacts | None

    def source_of(self, attack: str) -> str:
        """Return the source of the theorem."""
        return self.theorem.source


class ProtectedAbout(About):
    """Of a calibration or a release with noise."""

    kind: Literal["protected"]
    audience: Literal["public", "owner"] = Field(
        description="For publication, or for the owner of the data alone: with exact functions of them."
    )
    question: Text
    seed: Annotated[int, Field(strict=True)] = Field(
        description="Of the calibration; that of the draw and the noise is written nowhere."
    )
    insecure_seed: Flag = Field(
        description="The draw and the noise came from a seed that was given: not for publication."
    )
    fpr: tuple[Fraction, ...]
    data: DataFacts
    certificate: CertificateFacts
    values: tuple[ReleasedValue, ...] = Field(description="Empty where only the noise was calibrated.")
    planned: tuple[PlannedNumber, ...] = Field(
        default=(), description="For the owner: the noise of each number, where nothing was released; else empty."
    )
    statistics: tuple[StatisticFacts, ...] = Field(
        default=(),
        description="Where several were released together; the promise is of all of them. Empty for a single one.",
    )
    parameters: StatisticParameters | None = Field(
        None, description="Of a single statistic; null where the names of its numbers say all."
    )
    table: PublishedTable | None = Field(None, description="Counts or means of groups as they are published.")
    rules: tuple[OfficeRule, ...] = Field((), description="For the owner: empty where published.")
    designs: DesignsCompared | None = Field(None, description="For the owner: null where published, or not asked for.")
    release_command: Text = Field(
        default="", description="For the owner: the command that releases what was calibrated; else empty."
    )


AnyAbout = AuditAbout | AttributeAbout | BoundAbout | ProtectedAbout
A = TypeVar("A", bound=About)


def about_as(kind: type[A], about: About) -> A:
    """Take what a report says of itself as that of one kind."""
    if not isinstance(about, kind):
        raise TypeError(f"expected a report with {kind.__name__}, got {type(about).__name__}")
    return about


def releases_of(about: AnyAbout) -> tuple[ReleaseFacts, ...] | tuple[AttributeFacts, ...]:
    """Return the releases of an audit; a bound and a protected release have none."""
    return about.releases if isinstance(about, AuditAbout | AttributeAbout) else ()


def decisions_of(about: AnyAbout) -> tuple[DecisionFacts, ...]:
    """Return the verdicts of a policy; only an audit of membership may have them."""
    return about.decisions if isinstance(about, AuditAbout) else ()


def failed_of(about: AnyAbout) -> Mapping[str, str]:
    """Return the releases that could not be audited, with the error of each."""
    return about.failed if isinstance(about, AuditAbout) else {}


def all_notes(about: About) -> tuple[str, ...]:
    """Return the notes of a report, and those for the owner of the data where it has them."""
    owner_notes = about.owner_notes if isinstance(about, AuditAbout | AttributeAbout) else ()
    return (*about.notes, *owner_notes)


def envelope(
    plan: Mapping[str, Any],
    packages: Sequence[str] = ("numpy", "scipy"),
    *,
    seed: int,
    confidence: float,
    command: str = "",
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Collect what every report says of itself.

    >>> plan = {"title": "", "unit": "record", "date": "", "data": "private/people.csv"}
    >>> envelope(plan, seed=0, confidence=0.95)["plan"]["data"]
    'people.csv'
    """
    content = dict(plan)
    if content.get("data"):
        content["data"] = Path(content["data"]).name
    if content.get("depends_on"):
        content["depends_on"] = [Path(path).name for path in content["depends_on"]]
    return {
        "leakbound": __version__,
        "title": plan["title"],
        "unit": plan["unit"],
        "date": plan["date"],
        "seed": seed,
        "confidence": confidence,
        "command": command,
        "plan": plain(content),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "notes": notes,
    }
