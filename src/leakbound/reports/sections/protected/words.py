"""The sentences of a protected release: what is promised, what the best attack finds, what the noise cost."""

from __future__ import annotations

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.reports.numbers import count, digits, near, percent, settled, significant
from leakbound.reports.sections.curves import REGIONS
from leakbound.reports.sections.protected.designs import fill, words_of
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import baseline, capital, joined, lettered, say, sentence, several

# fractions of the way from guessing to certainty: 52.5, 60 and 75 of 100 at even odds
NOT, HARDLY, BADLY = 0.05, 0.2, 0.5
LEDE = (  # what cannot be told is that of the design
    (NOT, "Nobody can tell with any confidence {whether}."),
    (HARDLY, "{nobody} is right in more than {right} of 100 cases about {whether}."),
    (BADLY, "Nobody can be sure {whether}, but a guess may be a good deal better than one from the prior alone."),
    (1.0, "This promise is weak: {whether} may be guessed in {right} of 100 cases{odds}."),
)
PROMISE = (
    "An attacker who {guesses}{seeing} is right in <b>at most {right} of 100 cases</b>{odds}, {scope}{sampled}; "
    "{baseline}."
)
SEEING_ALL = ", on seeing all releases of this ledger,"
SEEING_SEVERAL = ", on seeing all {n} statistics of this release,"
ALONE = "On seeing this release alone it is at most {alone} of 100."
AVERAGE = "whatever the attacker computes"
NAMED = (
    "Somebody who tries to name the {unit} left out{seeing} is right with probability at most {named}{alone}; without "
    "any release the probability is {by_chance}."
)
EXPOSED = "For the owner alone: from this release the most exposed {unit} can be told in at most {right} of 100 cases."
BEST = "The best attack that we know is right in {right} of 100 for {target}{interval}."
WITHOUT = {
    True: "Without noise it would be right in {about}{right}.",
    False: "Without noise the best attacker would be right in {about}{right}.",
}
SHADED = ", and the promise. Shaded: forbidden by the certificate"
LARGEST_VALUE = "the largest value of {totals}"
LARGEST_MOVE = "how far the numbers move without the {unit} that they depend on most,"
OWNERS = "This is for the owner of the data alone: it holds exact functions of all {n}, as {holds}.{instead}"
INSTEAD = " What may be published is release.json, release.html and release.csv."
DRAWN_AGAIN = "Whoever knows the seed can draw the noise again."
NONE_ADDED = "These numbers are final; no noise was added to them."
LIMIT_WITHOUT_NOISE = (
    "The promise is about that one {unit}, and not about the file: the release is no anonymisation in the sense of the "
    "law."
)
EXACT = "Numbers without noise are exact, and outside of the promise."


def question(result: ProtectedResult) -> str:
    """Return the title, or the question that this release answers."""
    return result.about.title or result.about.question


def facts(result: ProtectedResult) -> list[Markup]:
    """Candidates, members, promise, date, version: the line under the title."""
    about, certificate = result.about, result.certificate
    promise = f"promise eta = {certificate.eta:g}"
    if result.shares_a_budget:
        of_all, of_this = f"eta = {result.eta_of_all:g}", f"eta = {certificate.eta:g}"
        promise = f"promise {of_all} for all releases of its ledger, {of_this} for this one"
    line = [
        say(_kind(result)),
        fill(result, words_of(result).in_use),
        say(several(len(about.statistics), "statistic")) if about.statistics else Markup(""),
        lettered(promise),
        say("{date}", date=about.date),
        say("leakbound {version}", version=about.leakbound),
    ]
    return [part for part in line if part]


def _kind(result: ProtectedResult) -> str:
    if not result.values:
        return "Calibrated noise, for the owner of the data"
    return "Protected release" if result.public else "Protected release, for the owner of the data"


TOLD_BY_NOISE = {
    "told_by_noise": "<b>The printed noise tells the largest contribution to {name} to within {p}</b>, to everybody: "
    "with promise anyone, or a scale that was declared beforehand, it does not.",
    "dominance_by_noise": "<b>The printed noise tells that the {n} largest contributions are more than {k} of the "
    "total of {name}</b>, to everybody: with promise anyone, or a scale that was declared beforehand, it does not.",
}


def warning(result: ProtectedResult) -> Markup:
    """Why this must not be published; empty if it may."""
    words = words_of(result)
    if result.about.insecure_seed:
        return say("<b>Not for publication.</b> {why}", why=fill(result, words.from_a_seed))
    if result.public:
        return Markup("")
    holds = fill(result, words.owner_holds)
    why = fill(result, OWNERS, holds=holds, instead=INSTEAD if result.values else "")
    told = _told_by_noise(result)
    return joined([told, say("<b>Not for publication.</b> {why}", why=why)])


def _told_by_noise(result: ProtectedResult) -> Markup:
    """Say, for the owner, of which numbers the noise tells the largest contribution, or that it dominates."""
    rules = [*result.about.rules, *(rule for each in result.about.statistics for rule in each.rules)]
    parts = []
    for id, words in TOLD_BY_NOISE.items():
        failing = [(rule, name) for rule in rules if rule.rule == id for name in rule.failing]
        if not failing:
            continue
        more = f" and {count(len(failing) - 1)} more" if len(failing) > 1 else ""
        rule, name = failing[0]
        thresholds = {threshold: percent(value) for threshold, value in rule.thresholds.items() if threshold != "n"}
        n = count(int(rule.thresholds.get("n", 1)))
        parts.append(say(words, name=f"{name}{more}", n=n, **thresholds))
    return joined(parts)


def lede(result: ProtectedResult) -> Markup:
    """How much can be guessed, and the price."""
    words = words_of(result)
    gained = min(1.0, settled(result.eta_of_all / (1 - result.prior_accuracy)))
    pattern = next(words for most, words in LEDE if gained <= most)
    nobody = f"{capital(words.odds)}, nobody" if words.odds else "Nobody"
    odds = f", {words.odds}" if words.odds else ""
    first = say(pattern, nobody=nobody, whether=fill(result, words.whether), right=right(result), odds=odds)
    limit = words.lede_limit
    if limit and result.certificate.no_noise:
        limit = LIMIT_WITHOUT_NOISE
    return joined([first, fill(result, limit, told=_told(result)), price(result)])


def _told(result: ProtectedResult) -> Markup:
    """Name what the printed noise of a leave-one-out release tells of the file, by its statistics."""
    asked = result.about.plan.get("statistic")
    parts = asked if isinstance(asked, list) else [result.about.plan]
    names = [part.get("statistic") for part in parts if isinstance(part, dict)]
    totals = [f"a {name}" for name in ("sum", "mean") if name in names]
    if totals:
        return say(LARGEST_VALUE, totals=" or ".join(totals))
    return fill(result, LARGEST_MOVE)


def price(result: ProtectedResult) -> Markup:
    """Compare the noise with the sampling error; empty where that is not known."""
    if result.certificate.no_noise:
        return fill(result, words_of(result).no_noise_price)
    ratios = sorted(row.noise_std / row.sampling_std for row in result.values if row.noise_std and row.sampling_std)
    if not ratios:
        return Markup("")
    low, high = significant(ratios[0]), significant(ratios[-1])
    times = low if low == high else f"{low} to {high}"
    return say("The price is noise of {times} times the sampling error.", times=times)


def right(result: ProtectedResult) -> str:
    """Cases of 100 that no attacker exceeds, who may see all releases of the ledger."""
    return _cases(result.promised_of_all)


def right_alone(result: ProtectedResult) -> str:
    """Cases of 100 that no attacker exceeds who sees this release alone."""
    return _cases(result.promised)


def _cases(accuracy: float) -> str:
    return digits(settled(accuracy), scale=2, most=1, bound_type="upper").value


def promise(result: ProtectedResult) -> Markup:
    """Say what holds for every attacker, what the best known one finds, and what it would without noise."""
    sentences = [_promised(result), named(result), best(result), exposed(result), without_noise(result)]
    return joined(sentences)


def _promised(result: ProtectedResult) -> Markup:
    """Say what the certificate promises."""
    words = words_of(result)
    average = result.on_average
    confidence = result.certificate.confidence
    alpha = percent(settled(1 - confidence))
    promise = say(
        PROMISE,
        guesses=fill(result, words.guesses),
        seeing=SEEING_ALL if result.shares_a_budget else _seeing_several(result),
        right=right(result),
        odds=f" {words.odds}" if words.odds else "",
        scope=AVERAGE if average else fill(result, words.everyone),
        sampled=f", except with probability {alpha} over the calibration" if confidence < 1 else "",
        baseline=baseline(result.prior_accuracy),
    )
    alone = say(ALONE, alone=right_alone(result)) if result.shares_a_budget else Markup("")
    caveat = say("This says nothing about a particular {unit}.", unit=result.unit) if average else Markup("")
    return joined([promise, alone, caveat])


def _seeing_several(result: ProtectedResult) -> str:
    """Say that the promise is about all statistics of the release; empty for a single one."""
    n_statistics = len(result.about.statistics)
    return SEEING_SEVERAL.format(n=count(n_statistics)) if n_statistics else ""


def named(result: ProtectedResult) -> Markup:
    """Say how well the record left out can be named; empty for other designs."""
    of_all, of_this = result.named_right_of_all, result.named_right
    if of_this is None:
        return Markup("")
    seeing, named, alone = "", of_this, ""
    if result.shares_a_budget and of_all is None:
        seeing = ", on seeing this release alone,"
    elif result.shares_a_budget and of_all is not None:
        seeing, named, alone = SEEING_ALL, of_all, f", on seeing this release alone at most {probability(of_this)}"
    by_chance = significant(1 / result.certificate.n)
    return say(NAMED, unit=result.unit, seeing=seeing, named=probability(named), alone=alone, by_chance=by_chance)


def probability(finding: Finding) -> str:
    """Write an upper bound on a probability, rounded up."""
    return digits(settled(finding.value or 0.0), bound_type="upper").value


def exposed(result: ProtectedResult) -> Markup:
    """Say what is proved for the record that is told best, to the owner."""
    finding = result.most_exposed
    if finding is None or result.public:
        return Markup("")
    return say(EXPOSED, unit=result.unit, right=shown(finding).value)


def best(result: ProtectedResult) -> Markup:
    """Describe the best attack that was run."""
    finding = result.best
    if finding is None:
        unattacked = result.values and not result.public
        return fill(result, words_of(result).unattacked) if unattacked else Markup("")
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


def big(result: ProtectedResult) -> tuple[str, str]:
    """Return the large number and its unit."""
    return right(result), "of 100 at most"


def values_note(result: ProtectedResult) -> str:
    """Say what the released numbers are."""
    if result.certificate.no_noise:
        return NONE_ADDED
    words = words_of(result)
    note = DRAWN_AGAIN if result.about.insecure_seed else words.final
    outside = result.without_any_noise and words.exact_limit
    return f"{note} {EXACT}" if outside else note


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
            say(_ceiling_of(result)),
            below if result.ceilings and measured else Markup(""),
            say("Dash-dotted: what the best attacker would find without noise, for large n; an estimate.")
            if unprotected
            else Markup(""),
        ]
    )


def _ceiling_of(result: ProtectedResult) -> str:
    """Say which releases the ceilings are of, where the ledger has room for more than this one."""
    if any(curve.release for curve in result.ceilings):
        return "One ceiling is that of this release alone, the other that of all releases of its ledger together."
    return "The ceiling is that of this release alone." if result.shares_a_budget else ""


def curves_note(result: ProtectedResult) -> Markup:
    """Games and level behind the lower limits."""
    bands = [curve for curve in result.curves if curve.role == "measured" and len(curve.band_fpr) and curve.n_nonmember]
    if not bands:
        return Markup("")
    level = bands[0].confidence or result.about.confidence
    words = (
        "Lower limits of {level} intervals, at each rate by itself, from {n} games without the {unit}: at a few rates "
        "they may lie above the ceiling by chance."
    )
    return say(words, level=percent(level), n=count(bands[0].n_nonmember), unit=result.unit)


def accuracy(result: ProtectedResult) -> Markup:
    """Say what it costs that not all records may be in use, and what the noise adds."""
    words, certificate = words_of(result), result.certificate
    longer = near((certificate.n / certificate.k) ** 0.5, 1)
    knows_sampling = any(row.sampling_std for row in result.values) and not certificate.no_noise
    return joined(
        [
            fill(result, words.no_noise_cost) if certificate.no_noise else Markup(""),
            fill(result, words.all_used, longer=longer),
            fill(result, words.beside) if knows_sampling else Markup(""),
        ]
    )


def data(result: ProtectedResult) -> str:
    """Name, size and digest of the table of all candidates, who may have several rows each."""
    used, n = result.about.data, result.certificate.n
    size = several(used.records, result.unit)
    if used.records > n:
        size = f"{several(used.records, 'row')} of {several(n, result.unit)}"
    parts = [used.name, size, f"digest {used.digest}" if used.digest else ""]
    return sentence(", ".join(part for part in parts if part))
