"""Words that plans and calls had once: an error says where each is now, as keyword, as key and as flag."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Moved(NamedTuple):
    """Where a word is now; empty where it was never a keyword, a key or a flag, or still is one."""

    keyword: str = ""
    key: str = ""
    flag: str = ""


def field_of(*places: str) -> Moved:
    """Say that a word is now a field of an object, or of one of several.

    >>> field_of("game.canaries.n")
    Moved(keyword='game=Canaries(n=...)', key='n of [game.canaries]', flag='--game canaries,n=...')
    """
    keywords, keys, flags = [], [], []
    for place in places:
        word, name, field = place.split(".")
        kind = re.sub("(?:^|_)([a-z])", lambda letter: letter[1].upper(), name)
        keywords.append(f"{word}={kind}({field}=...)")
        keys.append(f"{field} of [{word}.{name}]")
        flags.append(f"--{word} {name},{field}=...")
    return Moved(" or ".join(keywords), " or ".join(keys), " or ".join(flags))


_QUERIES = Moved(
    "queries=Queries(n, versions=...), in audit as a field of game=HalfSplit",
    "queries of [game.half_split]",
    "--game half_split,queries=[N,versions=...], of audit model --queries N,versions=...",
)
_LAYERS = Moved("train={'layers': ...}", "layers of [model.train]", "--train layers=...")
_SIDES = Moved(flag="leakbound audit model --members FILE --others FILE")
_TMP = Moved(*["the environment variable TMPDIR"] * 3)
OF_MODELS: Mapping[str, Moved] = {"layers": _LAYERS}
OF_AUDITS: Mapping[str, Moved] = {
    "sampling": field_of("game.half_split.sampling"),
    "sample": field_of("game.half_split.sample"),
    "slice": field_of("game.half_split.slices"),
    "slices": field_of("game.half_split.slices"),
    "prior": field_of("game.half_split.prior"),
    "queries": _QUERIES,
    "n_queries": _QUERIES,
    "versions": _QUERIES,
    "target": field_of("game.per_datum.target", "game.canaries.targets"),
    "references": field_of("game.per_datum.references"),
    "canaries": field_of("game.canaries.kind"),
    "n_canaries": field_of("game.canaries.n"),
    "knowledge": field_of("game.canaries.knowledge"),
    "attribute": field_of("game.attribute.column"),
    "bins": field_of("game.attribute.bins"),
    "until": Moved("n_models=Until(...)", "[n_models.until]", "--until of leakbound audit"),
    "dpsgd": Moved("train=DpSgd(...) or {'dpsgd': {...}}", "[model.dpsgd]", "--dpsgd of leakbound audit"),
    "layers": _LAYERS,
    "cluster": Moved("n_jobs=", "", "--n-jobs"),
    "fail_above": Moved("policy='tpr@0.01=0.05'", "policy", "--policy tpr@0.01=0.05"),
    "tmp": _TMP,
    # what a command of its own takes
    "scores": Moved(flag="leakbound audit scores FILE"),
    "references_are": Moved(flag="leakbound audit scores FILE --references-are"),
    "signals": Moved(flag="leakbound audit signals FILE"),
    "probabilities": Moved(flag="leakbound audit model --probabilities FILE"),
    "predict": Moved(flag="leakbound audit model --predict module:function"),
    "weights": Moved(flag="leakbound audit model --weights FILE"),
    "members": _SIDES,
    "others": _SIDES,
    "dataset": Moved(flag="--members FILE and --others FILE"),
    "dry_run": Moved(flag="--dry-run of leakbound audit: what references cost is measured without the trained model"),
}
_DESIGN = "promise{}, which is anyone for dp, file for leave-one-out, drawn for half; per-instance is retired"
OF_PROTECTIONS: Mapping[str, Moved] = {
    **{word: field_of(f"promise.drawn.{word}") for word in ("k", "about", "coupling", "fits", "delta")},
    **{word: field_of(f"promise.file.{word}") for word in ("allow_exact", "at_most")},
    **{word: field_of(f"promise.file.{word}", f"promise.drawn.{word}") for word in ("noise", "games", "confidence")},
    "noise_scale": field_of("promise.file.scale", "promise.drawn.scale"),
    "pairs_seed": field_of("promise.drawn.seed"),
    "ranges": Moved("promise=Anyone(ranges={'wage': (0, 80)})", "ranges of [promise.anyone]", "--range wage=0:80"),
    "others": Moved("promise=Anyone(others=['sector'])", "others of [promise.anyone]", "--others"),
    "clip": Moved(
        "a range of each column, as compare=Anyone(ranges={'wage': (-3, 3)})",
        "a range of each column, as compare = [{ anyone = { ranges = { wage = [-3, 3] } } }]",
        "a range of each column, as --compare all --range wage=-3:3",
    ),
    "design": Moved(_DESIGN.format("="), _DESIGN.format(""), "--" + _DESIGN.format("")),
    "another_design": Moved("another_promise=", "another_promise", "--another-promise"),
    "seed": Moved("insecure_seed=", "insecure_seed", "--insecure-seed"),
    "tmp": _TMP,
}


def keywords(moved: Mapping[str, Moved]) -> dict[str, str]:
    """Say of each word what the keyword is now."""
    return {word: now.keyword for word, now in moved.items() if now.keyword}
