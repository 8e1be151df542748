"""The certificate in words: the promise, and a row each for what it rests on and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leakscope.reports import phrases
from leakscope.reports.about import CertificateFacts, ReleasedValue, TermFacts
from leakscope.reports.numbers import THIN, count, digits, parameter, percent, powers, settled, significant
from leakscope.reports.sections.protected.result import ProtectedResult
from leakscope.reports.sections.quantities import shown
from leakscope.reports.sections.words import capital, joined, listed, say, sentence, several

MOST_COORDINATES = 6
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
PROMISED = {
    "every": (
        "For every one of the {n}, every attacker\u2019s guess “in or out” on seeing this release is right with "
        "probability at most {most}{sampled}."
    ),
    "average": (
        "For a {unit} drawn at random from the {n}, every attacker\u2019s guess “in or out” on seeing this release is "
        "right with probability at most {most}{sampled}."
    ),
}
GAME = (
    "{k} of the {n} are drawn uniformly at random and in secret. The attacker knows all {n_rows} rows, the method and "
    "the distribution of the noise, but neither the draw nor the noise. Prior {prior}."
)
NOT_PROMISED = "Differential privacy. Protection of what the {units} have in common. {further}"
SECOND = "Anything about a second release of the same {k}: with a ledger the joint bound is computed."
BESIDE = (
    "Anything about a release of the same {k} that is not in the ledger, as one that was made before the ledger was "
    "put back to an earlier copy; those in it have a joint bound, which the owner has."
)
PARTICULAR = " Anything about a particular {unit}."
ENTROPY = "drawn once, from the operating system\u2019s entropy"
KEYED = (
    "made from a secret key in the ledger, so that the same release has the same noise and any other one has noise "
    "that is independent of it"
)
GIVEN = "drawn from a seed that was given"
FROM_ALL = (
    "The scale of the noise was computed from all {n}, and rounded up to two significant digits. It speaks of the "
    "largest of them (in a table, of the smallest cells): the size of one that is far from all others is told to some "
    "ten per cent."
)
SHAPED = (
    "Scale and shape of the noise (deviations and correlations) were computed from all {n}. The scale is rounded up to "
    "two significant digits, the shape to two digits of each deviation and two decimals of each correlation. They "
    "speak of the largest of the {units}: the size of one that is far from all others is told to some ten per cent."
)
BEFOREHAND = "The scale of the noise was declared beforehand, and not computed from the data."
ANSWERED = (
    "That there is a release tells something too: {asked} is refused where the data do not allow it, and noise is left "
    "out where the draw alone keeps the promise."
)
DECLARED = (
    "The numbers n and k, the names of the columns{levels}, and the plan. All else is computed from the released "
    "values and the printed noise."
)
Row = tuple[str, Markup]


def promised(result: ProtectedResult) -> Markup:
    """State the promise as a probability."""
    certificate = result.certificate
    alpha = percent(settled(1 - certificate.confidence))
    return say(
        PROMISED[certificate.promise],
        n=several(certificate.n, result.unit),
        unit=result.unit,
        most=digits(settled(result.promised), bound_type="upper").value,
        sampled="" if certificate.confidence >= 1 else f", except with probability {alpha} over the calibration",
    )


def verdict(result: ProtectedResult) -> str:
    """Return the word on the promise: proved, or nothing."""
    confidence = result.certificate.confidence
    if not result.proved:
        return ""
    return "Proved" if confidence >= 1 else f"Proved at {percent(confidence)}"


def rows(result: ProtectedResult) -> list[Row]:
    """List what the certificate says, by heading."""
    rows = [
        ("Game", _game(result)),
        ("Noise", _noise(result)),
        ("Coupling", _coupling(result)),
        ("Confidence", _confidence(result)),
        ("Whole curve", _curve(result)),
        ("Assumes", _assumed(result.certificate.assumptions)),
        ("Does not promise", _not_promised(result)),
    ]
    if result.public:
        rows += [("Tells of the data", _told(result)), ("Declared public", _declared(result))]
    return [(head, text) for head, text in rows if text]


def _game(result: ProtectedResult) -> Markup:
    certificate = result.certificate
    prior = certificate.prior
    return say(
        GAME,
        k=count(certificate.k),
        n=several(certificate.n, result.unit),
        n_rows=count(certificate.n),
        prior="½" if prior == 0.5 else f"{count(certificate.k)}/{count(certificate.n)}",
    )


def _noise(result: ProtectedResult) -> Markup:
    """Family and size of the noise, where it came from, and the grid."""
    noise = result.certificate.noise
    if result.certificate.no_noise:
        return say("None: the draw alone keeps the promise.")
    origin = KEYED if result.certificate.ledger else ENTROPY
    if result.about.insecure_seed:
        origin = GIVEN
    grid = _grid(noise.grid) if noise.grid else Markup("")
    words = "{family}, standard deviation {sizes}; {origin}{grid}."
    drawn = origin if result.values else "not drawn yet"
    family = capital(noise.family.replace("_", " "))
    return say(words, family=family, sizes=_sizes(noise.rms, result.values), origin=drawn, grid=grid)


def _told(result: ProtectedResult) -> Markup:
    """Say what the noise, and that there is a release at all, reveal of the data."""
    noise = result.certificate.noise
    n = several(result.certificate.n, result.unit)
    declared = bool(noise.declared)
    requirement = "a declared scale, like a promise," if declared else "a promise"
    answered = say(ANSWERED, asked=requirement)
    if result.certificate.no_noise:
        return answered
    if declared:
        return joined([say(BEFOREHAND), answered])
    words = FROM_ALL if noise.deviations is None else SHAPED
    return joined([say(words, n=n, units=result.units), answered])


def _declared(result: ProtectedResult) -> Markup:
    return say(DECLARED, levels=", the levels of the table" if result.about.plan.get("levels") else "")


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
    """Members that the certificate allows at the false-alarm rates, and epsilon of practical membership privacy."""
    fractions = [(f"{shown(rate).value}{THIN}%", percent(rate.operating_point["fpr"])) for rate in result.rates]
    rates = [f"{fraction} at {fpr}" for fraction, fpr in fractions]
    rates[:1] = [f"{fraction} of the members at {fpr} false alarms" for fraction, fpr in fractions[:1]]
    allowed = say("No attacker finds more than {rates}.", rates=listed(rates)) if rates else Markup("")
    pmp = result.pmp
    if pmp is None:
        return allowed
    words = "(ε, δ) of practical membership privacy: ({epsilon}, {delta})."
    delta = parameter(pmp.operating_point.get("delta", 0.0))
    return joined([allowed, say(words, epsilon=shown(pmp).value, delta=delta)])


def _assumed(terms: Sequence[TermFacts]) -> Markup:
    return joined(say("{term}", term=capital(sentence(phrases.words(term)))) for term in terms)


def _not_promised(result: ProtectedResult) -> Markup:
    further = say(BESIDE if result.certificate.ledger else SECOND, k=count(result.certificate.k))
    words = NOT_PROMISED + (PARTICULAR if result.on_average else "")
    return say(words, unit=result.unit, units=result.units, further=further)
