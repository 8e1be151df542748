"""The sentences of a protected release: what is promised, what the best attack finds, what the noise cost."""

from __future__ import annotations

from markupsafe import Markup

from leakscope.core.findings import Finding
from leakscope.reports.numbers import count, digits, near, percent, settled, significant
from leakscope.reports.sections.curves import REGIONS
from leakscope.reports.sections.protected.result import ProtectedResult
from leakscope.reports.sections.quantities import shown
from leakscope.reports.sections.words import baseline, capital, joined, lettered, say, sentence, several

HARDLY, BADLY = 0.2, 0.5  # fractions of the way from guessing to certainty: 60 and 75 of 100 at even odds
LEDE = (
    (HARDLY, "Nobody can tell with any confidence whether {whose} is among the {k}."),
    (
        BADLY,
        "Nobody can be sure whether {whose} is among the {k}, but a guess may be a good deal better than one from the "
        "prior alone.",
    ),
    (1.0, "This promise is weak: whether {whose} is among the {k} may be guessed in {right} of 100 cases."),
)
PROMISE = (
    "An attacker who guesses whether {whose} is in the data is right in <b>at most {right} of 100 cases</b>, "
    "{scope}{sampled}; {baseline}."
)
EVERY = "whoever the {unit} is and whatever the attacker computes"
AVERAGE = "whatever the attacker computes"
BEST = "The best attack that we know is right in {right} of 100 for {target}{interval}."
WITHOUT = {
    True: "Without noise it would be right in {about}{right}.",
    False: "Without noise the best attacker would be right in {about}{right}.",
}
SHADED = ", and the promise. Shaded: forbidden by the certificate"
NOT_PUBLIC = (
    "The draw and the noise came from a seed that was given, not from the operating system: whoever knows the seed "
    "takes the noise away."
)
OWNERS = (
    "This is for the owner of the data alone: it holds exact functions of all {n}, as what is proved beyond the "
    "promise, sampling errors, attacks and a digest.{instead}"
)
INSTEAD = " What may be published is release.json and release.html."
FINAL = "The noise is drawn; these numbers are final. What they were without noise is written nowhere."
DRAWN_AGAIN = "Whoever knows the seed can draw the noise again."
NONE_ADDED = "These numbers are final; no noise was added to them."


def question(result: ProtectedResult) -> str:
    """Return the title, or the question that this release answers."""
    return result.about.title or result.about.question


def facts(result: ProtectedResult) -> list[Markup]:
    """Candidates, members, promise, date, version: the line under the title."""
    about, certificate = result.about, result.certificate
    promise = lettered(f"promise eta = {certificate.eta:g}")
    line = [
        say(_kind(result)),
        say("{n}, {k} of them in the data", n=several(certificate.n, result.unit), k=count(certificate.k)),
        promise,
        say("{date}", date=about.date),
        say("leakscope {version}", version=about.leakscope),
    ]
    return [part for part in line if part]


def _kind(result: ProtectedResult) -> str:
    if not result.values:
        return "Calibrated noise, for the owner of the data"
    return "Protected release" if result.public else "Protected release, for the owner of the data"


def warning(result: ProtectedResult) -> Markup:
    """Why this must not be published; empty if it may."""
    if result.about.insecure_seed:
        return say("<b>Not for publication.</b> {why}", why=NOT_PUBLIC)
    if result.public:
        return Markup("")
    n = several(result.certificate.n, result.unit)
    why = OWNERS.format(n=n, instead=INSTEAD if result.values else "")
    return say("<b>Not for publication.</b> {why}", why=why)


def lede(result: ProtectedResult) -> Markup:
    """How much can be guessed, and the price."""
    gained = settled(result.certificate.eta / (1 - result.prior_accuracy))
    pattern = next(words for most, words in LEDE if gained <= most)
    k = count(result.certificate.k)
    return joined([say(pattern, whose=_whose(result), k=k, right=right(result)), price(result)])


def price(result: ProtectedResult) -> Markup:
    """Compare the noise with the sampling error; empty where that is not known."""
    if result.certificate.no_noise:
        return say("It needs no noise.")
    ratios = sorted(row.noise_std / row.sampling_std for row in result.values if row.sampling_std)
    if not ratios:
        return Markup("")
    low, high = significant(ratios[0]), significant(ratios[-1])
    times = low if low == high else f"{low} to {high}"
    return say("The price is noise of {times} times the sampling error.", times=times)


def right(result: ProtectedResult) -> str:
    """Cases of 100 that no attacker exceeds."""
    return digits(settled(result.promised), scale=2, most=1, bound_type="upper").value


def promise(result: ProtectedResult) -> Markup:
    """Say what holds for every attacker, what the best known one finds, and what it would without noise."""
    return joined([_promised(result), best(result), without_noise(result)])


def _promised(result: ProtectedResult) -> Markup:
    """Say what the certificate promises."""
    average = result.on_average
    confidence = result.certificate.confidence
    alpha = percent(settled(1 - confidence))
    promise = say(
        PROMISE,
        whose=_whose(result),
        right=right(result),
        scope=AVERAGE if average else EVERY.format(unit=result.unit),
        sampled=f", except with probability {alpha} over the calibration" if confidence < 1 else "",
        baseline=baseline(result.prior_accuracy),
    )
    caveat = say("This says nothing about a particular {unit}.", unit=result.unit) if average else Markup("")
    return joined([promise, caveat])


def best(result: ProtectedResult) -> Markup:
    """Describe the best attack that was run."""
    finding = result.best
    if finding is None:
        unattacked = result.values and not result.public
        return say("No attack was run against it.") if unattacked else Markup("")
    kind = finding.scope.kind
    random = kind == "average" or (result.on_average and kind == "every")
    target = f"a randomly chosen {result.unit}" if random else f"the most exposed {result.unit}"
    return say(BEST, right=shown(finding).value, target=target, interval=interval(result, finding))


def without_noise(result: ProtectedResult) -> Markup:
    """Say what the noise is good for."""
    finding = result.without_noise
    if finding is None or result.certificate.no_noise:
        return Markup("")
    about = "" if finding.status == "certified" else "about "
    return say(WITHOUT[result.best is not None], about=about, right=shown(finding).value)


def interval(result: ProtectedResult, finding: Finding) -> str:
    """`` (95 %: 53.3 to 54.4)``, or nothing for an exact number."""
    text = shown(finding)
    level = result.about.confidence if finding.confidence is None else finding.confidence
    return f" ({percent(level)}: {text.interval})" if text.interval else ""


def _whose(result: ProtectedResult) -> str:
    """Whose membership is guessed."""
    return f"a {'randomly chosen' if result.on_average else 'given'} {result.unit}"


def big(result: ProtectedResult) -> tuple[str, str]:
    """Return the large number and its unit."""
    return right(result), "of 100 at most"


def values_note(result: ProtectedResult) -> str:
    """Say what the released numbers are."""
    if result.certificate.no_noise:
        return NONE_ADDED
    return DRAWN_AGAIN if result.about.insecure_seed else FINAL


def dots_note(result: ProtectedResult) -> Markup:
    """Explain the dots."""
    games = max((curve.n_nonmember for curve in result.curves), default=0)
    measured = any(finding.low is not None and finding.status == "measured" for finding in result.attacks)
    parts = [
        say("Cases of 100 in which an attacker is right{promise}.", promise=SHADED),
        say("An attack is shown at the lower end of its interval.") if measured else Markup(""),
        say("{n} games without the {unit}.", n=count(games), unit=result.unit) if games and measured else Markup(""),
    ]
    if result.attacks and not result.on_average:
        words = "The attacks are against the {unit} for whom they do best; who that is stays off this page."
        parts.append(say(words, unit=result.unit))
    return joined(parts)


def curves_heading(result: ProtectedResult) -> str:
    """Head the chart with what it shows."""
    roles = {
        "The ceiling": bool(result.ceilings),
        "the best attack": any(curve.role == "measured" for curve in result.curves),
        "no noise at all": any(curve.role == "asymptotic" for curve in result.curves),
    }
    *others, last = [words for words, drawn in roles.items() if drawn]
    return capital(f"{', '.join(others)}, and {last}" if len(others) > 1 else " and ".join([*others, last]))


def curves_intro(result: ProtectedResult) -> Markup:
    """How to read the lines of the chart."""
    measured = any(curve.role == "measured" for curve in result.curves)
    unprotected = any(curve.role == "asymptotic" for curve in result.curves)
    below = say("Solid: the best attack that we know, at the lower limit of its curve.")
    return joined(
        [
            say(REGIONS["certified"]) if result.ceilings else Markup(""),
            below if result.ceilings and measured else Markup(""),
            say("Dash-dotted: what the best attacker would find without noise, for large n; an estimate.")
            if unprotected
            else Markup(""),
        ]
    )


def curves_note(result: ProtectedResult) -> Markup:
    """Games and level behind the lower limits."""
    bands = [curve for curve in result.curves if curve.role == "measured" and len(curve.fpr) and curve.n_nonmember]
    if not bands:
        return Markup("")
    level = bands[0].confidence or result.about.confidence
    words = (
        "Lower limits of {level} intervals, at each rate by itself, from {n} games without the {unit}: at a few rates "
        "they may lie above the ceiling by chance."
    )
    return say(words, level=percent(level), n=count(bands[0].n_nonmember), unit=result.unit)


def accuracy(result: ProtectedResult) -> Markup:
    """Say what it costs that the data are a random part of the candidates, and what the noise adds."""
    k, n = result.certificate.k, result.certificate.n
    longer = near((n / k) ** 0.5, 1)
    words = (
        "The data are {k} of the {n} {units}, drawn at random: the sampling error is about {longer} times that of all."
    )
    return joined(
        [
            say("No noise was added: the draw alone keeps the promise.") if result.certificate.no_noise else Markup(""),
            say(words, k=count(k), n=count(n), units=result.units, longer=longer),
        ]
    )


def data(result: ProtectedResult) -> str:
    """Name, size and digest of the table of all candidates."""
    used = result.about.data
    parts = [used.name, several(used.records, result.unit), f"digest {used.digest}" if used.digest else ""]
    return sentence(", ".join(part for part in parts if part))
