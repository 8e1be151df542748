"""The certificate in words: the promise, and a row each for what it rests on and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.reports import phrases
from leakbound.reports.about import CertificateFacts, OtherReleaseFacts, ReleasedValue, TermFacts
from leakbound.reports.numbers import THIN, count, digits, parameter, percent, powers, settled, significant
from leakbound.reports.sections.findings import ADD_OR_REMOVE
from leakbound.reports.sections.protected.designs import (
    ONE_DESIGN,
    fill,
    named_design,
    origin_of,
    shares_its_design,
    words_of,
)
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.protected.words import named
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import capital, joined, listed, say, sentence, several

MOST_COORDINATES = 6
MOST_NAMES = 6  # of numbers without noise
DIGEST = 12  # digits of the digest of an entry
COUPLINGS = {
    "swap": "swap: the {unit} is exchanged for another one that is out",
    "mixture_swap": "mixture swap: the {unit} is exchanged for one that is out, and the noise hides which one",
    "average_swap": "average swap: a random {unit} is exchanged for another one",
    "complement": "complement: the data are exchanged for all {units} that are out",
    "disjoint": "disjoint: the data are exchanged for as many {units} that are out",
    "independent": "independent: two draws, one with the {unit} and one without, are compared",
    "moment": "moment: the spread of the statistic over all draws, known beforehand, bounds what one {unit} changes",
    "chosen_by_pilot": "chosen by a pilot",
}
PROMISED = (
    "{whom}, every attacker\u2019s guess {guess} on seeing {seen} is right with probability at most "
    "{most}{sampled}{alone}."
)
AVERAGE = "For a {unit} drawn at random from the {n}"
PARTICULAR = "Anything about a particular {unit}."
LEDGER = (
    "Release number {number} of its ledger; entry {digest}. All releases of this ledger together: accuracy at most "
    "{most}, fixed before the first one; queries declared beforehand: {declared}."
)
COPIES = (
    "Two certificates with the same number and different entries come from two copies of the ledger, which can spend "
    "the budget twice."
)
MADE_OF = "That is of the noisy counts, and of the noisy sums that are divided by them."
SPENT = "Spent so far, for the owner alone: {spent} of the budget of {budget}."
EPSILON = "Differential privacy with (ε, δ) = ({epsilon}, {delta}) if one {unit} is {change}."
ALONE = "That is on seeing this release alone."
CURVE_OF_ALL = f"{ALONE} On seeing all releases of this ledger: {{rates}}."
EPSILON_OF_ALL = (
    "All releases of this ledger together: Gaussian differential privacy with μ = {mu}, and (ε, δ) = ({epsilon}, "
    "{delta}), if one {unit} is replaced by another."
)
ENTROPY = "drawn once, from the operating system\u2019s entropy"
KEYED = (
    "made from a secret key in the ledger, so that the same release has the same noise and any other one has noise "
    "that is independent of it"
)
GIVEN = "drawn from a seed that was given"
STATISTICS = (
    "{names}. They are one release: the promise is about what all of them tell together, and no single one tells more."
)
NOISE = "{name}: {family}, standard deviation {sizes}{grid}."
NO_NOISE = "{name}: none."
OTHER_DESIGNS = (
    "The same data were released under another design: {named}. No joint number is promised over releases of two "
    "designs: each certificate speaks of the releases of its own design alone, and somebody who sees both kinds may "
    "tell more than either of them says."
)
OTHER_LEDGERS = (
    "Another ledger holds people of these data: {named}. The owner has released all the same, and nothing adds up its "
    "releases and these."
)
ADDED_OR_REMOVED = (
    "added or removed: of the noisy numbers alone, for the number of records, which is public, changes then"
)
MOST_OTHERS = 6  # releases under other designs that are named
FIRST = ("Statistics", "Game", "Naming", "Noise", "Confidence")  # rows that a page does not fold
Row = tuple[str, Markup]


def promised(result: ProtectedResult) -> Markup:
    """State the promise as a probability."""
    certificate, words = result.certificate, words_of(result)
    alpha = percent(settled(1 - certificate.confidence))
    alone = f", on seeing this release alone at most {_most(result.promised)}" if result.shares_a_budget else ""
    whom = AVERAGE if result.on_average else words.whom
    return say(
        PROMISED,
        whom=fill(result, whom),
        guess=words.guess,
        seen=_seen(result),
        most=_most(result.promised_of_all),
        sampled="" if certificate.confidence >= 1 else f", except with probability {alpha} over the calibration",
        alone=alone,
    )


def _seen(result: ProtectedResult) -> str:
    """Say what an attacker sees."""
    if result.shares_a_budget:
        return "all releases of this ledger"
    n_statistics = len(result.about.statistics)
    return f"all {count(n_statistics)} statistics of this release" if n_statistics else "this release"


def _most(accuracy: float) -> str:
    return digits(settled(accuracy), bound_type="upper").value


def verdict(result: ProtectedResult) -> str:
    """Return the word on the promise: proved, or nothing."""
    confidence = result.certificate.confidence
    if not result.proved:
        return ""
    return "Proved" if confidence >= 1 else f"Proved at {percent(confidence)}"


def rows(result: ProtectedResult) -> list[Row]:
    """List what the certificate says, by heading."""
    words = words_of(result)
    game = [("Statistics", _statistics(result)), ("Game", fill(result, words.game)), ("Naming", named(result))]
    limits = _limits(result)
    if result.public or words.owner_is_told:
        limits.append(("Tells of the data", _told(result)))
    basis = [
        ("Noise", _noise(result)),
        ("Coupling", _coupling(result)),
        ("Confidence", _confidence(result)),
        ("Whole curve", _curve(result)),
        ("ε and δ", _epsilons(result)),
        ("Ledger", _ledger(result)),
        ("Assumes", _assumed(result.certificate.assumptions)),
    ]
    rows = [*game, *limits, *basis] if words.limits_first else [*game, *basis, *limits]
    if result.public:
        rows.append(("Declared public", _declared(result)))
    return [(head, text) for head, text in rows if text]


def parts(result: ProtectedResult) -> tuple[list[Row], list[Row]]:
    """Split the rows into those that a page shows at once, the first limit among them, and those that it folds."""
    first_limit = words_of(result).limits[0].heading
    shown = {*FIRST, first_limit}
    all_rows = rows(result)
    first = [(head, text) for head, text in all_rows if head in shown]
    return first, [(head, text) for head, text in all_rows if head not in shown]


def _noise(result: ProtectedResult) -> Markup:
    """Family and size of the noise, where it came from, and the grid."""
    noise = result.certificate.noise
    if result.certificate.no_noise:
        return fill(result, words_of(result).no_noise)
    origin = KEYED if result.certificate.ledger else ENTROPY
    if result.about.insecure_seed:
        origin = GIVEN
    if result.by_statistic:
        return _noises(result, origin if result.values else "not drawn yet")
    grid = _grid(noise.grid) if noise.grid else Markup("")
    words = "{family}, standard deviation {sizes}; {origin}{grid}."
    drawn = origin if result.values else "not drawn yet"
    family = capital(noise.family.replace("_", " "))
    drawn_noise = say(words, family=family, sizes=_sizes(noise.rms, result.values), origin=drawn, grid=grid)
    computed = words_of(result).noise_origin[origin_of(result)]
    return joined([drawn_noise, _made_of(result), fill(result, computed)])


def _made_of(result: ProtectedResult) -> Markup:
    """Say that the noise is of counts and sums, where the published numbers are made of them."""
    facts = result.about.parameters
    return Markup("") if facts is None or facts.least_count is None else say(MADE_OF)


def _noises(result: ProtectedResult, origin: str) -> Markup:
    """Family and size of the noise of each of several statistics."""
    sizes = []
    for name, own in result.by_statistic:
        noise = own.certificate.noise
        if own.certificate.no_noise:
            sizes.append(say(NO_NOISE, name=capital(name)))
            continue
        grid = _grid(noise.grid) if noise.grid else Markup("")
        sizes.append(
            joined(
                [
                    say(NOISE, name=capital(name), family=noise.family, sizes=_sizes(noise.rms, own.values), grid=grid),
                    _made_of(own),
                ]
            )
        )
    computed = words_of(result).noise_origin[origin_of(result)]
    return joined([*sizes, say("The noise is {origin}.", origin=origin), fill(result, computed)])


def _statistics(result: ProtectedResult) -> Markup:
    """Name the statistics that were released together, with their weights."""
    statistics = result.about.statistics
    if not statistics:
        return Markup("")
    weights = {each.weight for each in statistics}
    named = [each.name if len(weights) == 1 else f"{each.name} (weight {each.weight:g})" for each in statistics]
    return say(STATISTICS, names=listed(named))


def _other_designs(result: ProtectedResult) -> Markup:
    """Name what was released of the same data under other designs; tell the owner beforehand what one would cost."""
    others = result.certificate.others
    if not others:
        is_said = result.public or result.about.designs is not None  # the table of the designs says it, too
        return Markup("") if is_said else say(ONE_DESIGN)
    own = [other for other in others if shares_its_design(result, other)]
    different = [other for other in others if not shares_its_design(result, other)]
    parts = []
    if different:
        parts.append(say(OTHER_DESIGNS, named=_named(different)))
    if own:
        parts.append(say(OTHER_LEDGERS, named=_named(own)))
    return Markup(" ").join(parts)


def _named(others: Sequence[OtherReleaseFacts]) -> str:
    """Name releases of other ledgers."""
    named = [
        f"{named_design(other)}, release {count(other.number)}{f' of {other.date}' if other.date else ''}, "
        f"entry {other.digest[:DIGEST]}"
        for other in others[:MOST_OTHERS]
    ]
    n_more = len(others) - len(named)
    more = f"; and {count(n_more)} more, which the JSON names" if n_more else ""
    return f"{'; '.join(named)}{more}"


def _told(result: ProtectedResult) -> Markup:
    """Say what the noise, and that there is a release at all, reveal of the data."""
    certificate = result.certificate
    pattern = words_of(result).tells[origin_of(result)]
    requirement = "a declared scale, like a promise," if certificate.noise.declared else "a promise"
    told = fill(result, pattern, asked=requirement)
    if certificate.noise.declared or result.declares_limits:
        return told
    return joined([told, fill(result, words_of(result).tells_curve)])


def _declared(result: ProtectedResult) -> Markup:
    plan = result.about.plan
    return fill(
        result,
        words_of(result).declared_public,
        ranges=", their ranges" if result.field_of_promise("ranges") else "",
        levels=", the levels of the table" if plan.get("levels") else "",
        entry=", the entry and the budget of the ledger" if result.certificate.entry else "",
        classes=", the two classes of the response" if _has_classes(result) else "",
    )


def _has_classes(result: ProtectedResult) -> bool:
    """Whether the page names a class of a response, as that of a logistic regression."""
    facts = [result.about.parameters, *(statistic.parameters for statistic in result.about.statistics)]
    return any(each is not None and each.modelled_class for each in facts)


def _grid(steps: Sequence[float | None]) -> Markup:
    """State the steps of the coordinates, or their range."""
    known = [step for step in steps if step is not None]
    low, high = parameter(min(known)), parameter(max(known))
    if low == high:
        return say(", on a grid of step {step}", step=low)
    return say(", on a grid of step {low} to {high}", low=low, high=high)


def _sizes(rms: Sequence[float], values: Sequence[ReleasedValue]) -> Markup:
    """State the standard deviations of the coordinates with their units, or their range where there are many."""
    texts = [powers(significant(size)) for size in rms]
    if len(set(texts)) == 1:
        units = {row.unit for row in values}
        unit = f" {units.pop()}" if len(units) == 1 and units != {""} else ""
        scope = f" in each of {several(len(rms), 'coordinate')}" if len(rms) > 1 else ""
        return say("{size}{unit}{scope}", size=texts[0], unit=unit, scope=scope)
    if len(rms) > MOST_COORDINATES:
        low, high = powers(significant(min(rms))), powers(significant(max(rms)))
        return say("{low} to {high} over {n}", low=low, high=high, n=several(len(rms), "coordinate"))
    units = [f" {row.unit}" if row.unit else "" for row in values]
    units = units if len(units) == len(rms) else [""] * len(rms)
    return Markup(", ").join(say("{size}{unit}", size=text, unit=unit) for text, unit in zip(texts, units, strict=True))


def _coupling(result: ProtectedResult) -> Markup:
    """How data sets were paired, and how many pairs were drawn."""
    certificate = result.certificate
    name = certificate.coupling
    if not name:
        return Markup("")
    known = COUPLINGS.get(name, name.replace("_", " ")).format(unit=result.unit, units=result.units)
    return joined([say("{coupling}.", coupling=capital(known)), _sampled(certificate)])


def _sampled(certificate: CertificateFacts) -> Markup:
    if certificate.exact:
        return say("Nothing is sampled.")
    fits = several(certificate.fits or 0, "fit")
    if certificate.pairs is None:
        return say("Sampled, from at most {fits}.", fits=fits)
    failures = certificate.failures or 0
    failed = f"{count(failures)} of them failed and count{'s' if failures == 1 else ''} against the certificate"
    sampled = say("Sampled: {pairs} from {fits}", pairs=several(certificate.pairs, "pair"), fits=fits)
    return sampled + (say("; {failed}.", failed=failed) if failures else say("."))


def _confidence(result: ProtectedResult) -> Markup:
    confidence = result.certificate.confidence
    if confidence >= 1:
        return say("{level}. The bound is computed, not sampled: it has no failure probability.", level=percent(1.0))
    words = "{level}. The pairs of the calibration are a sample; with probability {alpha} it misleads."
    return say(words, level=percent(confidence), alpha=percent(settled(1 - confidence)))


def _curve(result: ProtectedResult) -> Markup:
    """State what the certificate allows at the false-alarm rates, and epsilon of practical membership privacy."""
    allowed = fill(result, words_of(result).recognised, rates=_rates(result, result.rates)) if result.rates else ""
    alone = _curve_of_all(result) if result.rates else Markup("")
    pmp = result.pmp
    if pmp is None:
        return joined([Markup(allowed), alone])
    delta = parameter(pmp.operating_point.get("delta", 0.0))
    practical = "(ε, δ) of practical membership privacy: ({epsilon}, {delta})."
    return joined([Markup(allowed), alone, say(practical, epsilon=shown(pmp).value, delta=delta)])


def _rates(result: ProtectedResult, findings: Sequence[Finding]) -> str:
    """List true positive rates with the false positive rates at which they are allowed."""
    fractions = [(f"{shown(rate).value}{THIN}%", percent(rate.operating_point["fpr"])) for rate in findings]
    rates = [f"{fraction} at {fpr}" for fraction, fpr in fractions]
    rates[:1] = [words_of(result).rate.format(fraction=fraction, fpr=fpr) for fraction, fpr in fractions[:1]]
    return listed(rates)


def _curve_of_all(result: ProtectedResult) -> Markup:
    """Say what all releases of the ledger together allow, where that is more than this one alone."""
    if not result.rates_of_all:
        return say(ALONE) if result.shares_a_budget else Markup("")
    of_all = _rates(result, result.rates_of_all)
    return Markup("") if of_all == _rates(result, result.rates) else say(CURVE_OF_ALL, rates=of_all)


def _epsilons(result: ProtectedResult) -> Markup:
    """State epsilon and delta of differential privacy, for each way in which data are neighbours."""
    sentences = []
    for finding in result.epsilons:
        change = ADDED_OR_REMOVED if ADD_OR_REMOVE in finding.method else "replaced by another"
        delta = parameter(finding.operating_point.get("delta", 0.0))
        epsilon = shown(finding).value
        sentences.append(say(EPSILON, epsilon=epsilon, delta=delta, unit=result.unit, change=change))
    if sentences and result.shares_a_budget:
        sentences.append(say(ALONE))
        sentences += [
            say(
                EPSILON_OF_ALL,
                mu=shown(mu).value,
                epsilon=shown(epsilon).value,
                delta=parameter(epsilon.operating_point.get("delta", 0.0)),
                unit=result.unit,
            )
            for mu, epsilon in result.privacy_of_all
        ]
    return joined(sentences)


def _ledger(result: ProtectedResult) -> Markup:
    """State the place in the ledger, and what all its releases promise together."""
    entry = result.certificate.entry
    if entry is None:
        return Markup("")
    place = say(
        LEDGER,
        number=count(entry.number),
        digest=entry.digest[:DIGEST],
        most=_most(result.promised_of_all),
        declared=count(entry.declared),
    )
    spent = Markup("")
    if result.spent is not None and not result.public:
        spent = say(SPENT, spent=_most(result.spent.value or 0.0), budget=f"{entry.budget:g}")
    return joined([place, spent, say(COPIES)])


def _assumed(terms: Sequence[TermFacts]) -> Markup:
    return joined(say("{term}", term=capital(sentence(phrases.words(term)))) for term in terms)


def _limits(result: ProtectedResult) -> list[Row]:
    """List what is not promised; the first row also names whom and what this release leaves out."""
    words = words_of(result)
    rows = []
    for limit in words.limits:
        of_ledger = limit.with_ledger if result.certificate.ledger else limit.without_ledger
        rows.append((limit.heading, joined([fill(result, limit.words), fill(result, of_ledger)])))
    kinds = {shares_its_design(result, other) for other in result.certificate.others}
    heading = "Other designs"
    if True in kinds:
        heading = "Other ledgers" if len(kinds) == 1 else "Other ledgers and designs"
    rows.append((heading, _other_designs(result)))
    particular = fill(result, PARTICULAR) if result.on_average else Markup("")
    heading, first = rows[0]
    rows[0] = (heading, joined([first, particular, _exact(result)]))
    return rows


def _exact(result: ProtectedResult) -> Markup:
    """Name the numbers that got no noise, where they are outside of the promise."""
    names = result.without_any_noise
    if not names:
        return Markup("")
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return fill(result, words_of(result).exact_limit, names=f"{', '.join(names[:MOST_NAMES])}{more}")
