"""Words that plans and calls had once: an error says where each is now, as keyword, as key and as flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Moved(NamedTuple):
    """Where a word is now."""

    keyword: str
    key: str
    flag: str


def field_of(word: str, kind: str, name: str, field: str) -> Moved:
    """Say that a word is now a field of an object: ``game=Canaries(n=...)``, ``n of [game.canaries]``."""
    return Moved(f"{word}={kind}({field}=...)", f"{field} of [{word}.{name}]", f"--{word} {name},{field}=...")


def renamed(word: str) -> Moved:
    """Say that a keyword has another name; the key and the flag are what they were."""
    return Moved(f"{word}=", "", "")


_HALF_SPLIT = ("game", "HalfSplit", "half_split")
_CANARIES = ("game", "Canaries", "canaries")
_QUERIES = Moved(
    "queries=Queries(n, versions=...), in audit as a field of game=HalfSplit",
    "queries of [game.half_split]",
    "--game half_split,queries=[N,versions=...], of audit model --queries N,versions=...",
)
_LAYERS = Moved("train={'layers': ...}", "layers of [model.train]", "--train layers=...")
_PAGE = Moved("page=Page(title, unit, date, author)", "", "")
OF_MODELS: Mapping[str, Moved] = {"layers": _LAYERS}
OF_AUDITS: Mapping[str, Moved] = {
    "sampling": field_of(*_HALF_SPLIT, "sampling"),
    "sample": field_of(*_HALF_SPLIT, "sample"),
    "slice": Moved("slices=, in audit as a field of game=HalfSplit", "slices of [game.half_split]", "--slice"),
    "slices": field_of(*_HALF_SPLIT, "slices"),
    "queries": _QUERIES,
    "target": Moved(
        "game=PerDatum(target) or Canaries(targets=...)",
        "target of [game.per_datum], or targets of [game.canaries]",
        "--game per_datum,target=... or canaries,targets=[...]",
    ),
    "references": field_of("game", "PerDatum", "per_datum", "references"),
    "canaries": field_of(*_CANARIES, "kind"),
    "n_canaries": field_of(*_CANARIES, "n"),
    "knowledge": field_of(*_CANARIES, "knowledge"),
    "n_queries": _QUERIES,
    "versions": _QUERIES,
    "attribute": field_of("game", "Attribute", "attribute", "column"),
    "bins": field_of("game", "Attribute", "attribute", "bins"),
    "prior": field_of(*_HALF_SPLIT, "prior"),
    "until": Moved("n_models=Until(...)", "[n_models.until]", "--until of leakbound audit"),
    "dpsgd": Moved("train=DpSgd(...) or {'dpsgd': {...}}", "[model.dpsgd]", "--dpsgd of leakbound audit"),
    "layers": _LAYERS,
    "n_models": Moved("references=Fitted(recipe, n=...)", "", ""),
    "claim": renamed("claims"),
    "group": renamed("groups"),
    "id": renamed("ids"),
    "title": _PAGE,
    "unit": _PAGE,
    "date": _PAGE,
    "author": _PAGE,
    "depends_on": Moved("store=Store(path, depends_on=...)", "", ""),
    "cluster": Moved("n_jobs=", "", "--n-jobs"),
    "scores": Moved("", "", "leakbound audit scores FILE"),
    "signals": Moved("", "", "leakbound audit signals FILE"),
    "probabilities": Moved("", "", "leakbound audit model --probabilities FILE"),
    "predict": Moved("", "", "leakbound audit model --predict module:function"),
    "weights": Moved("", "", "leakbound audit model --weights FILE"),
    "members": Moved("", "", "leakbound audit model --members FILE --others FILE"),
    "others": Moved("", "", "leakbound audit model --members FILE --others FILE"),
    "dataset": Moved("", "", "--members FILE and --others FILE"),
    "dry_run": Moved(
        "", "", "--dry-run of leakbound audit: what references cost is measured without the trained model"
    ),
    "tmp": Moved("the environment variable TMPDIR", "", "the environment variable TMPDIR"),
    "fail_above": Moved(
        "leakbound.auditing.gates.exit_code(report, ['tpr@0.01=0.05']), which is 3 if a limit is exceeded",
        "",
        "",
    ),
}


def keywords(moved: Mapping[str, Moved]) -> dict[str, str]:
    """Say of each word what the keyword is now."""
    return {word: now.keyword for word, now in moved.items()}
