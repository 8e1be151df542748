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
    "references_are": Moved("", "", "leakbound audit scores FILE --references-are"),
    "dataset": Moved("", "", "--members FILE and --others FILE"),
    "dry_run": Moved(
        "", "", "--dry-run of leakbound audit: what references cost is measured without the trained model"
    ),
    "tmp": Moved("the environment variable TMPDIR", "", "the environment variable TMPDIR"),
    "fail_above": Moved(
        "leakbound.cli.gates.exit_code(report, ['tpr@0.01=0.05']), which is 3 if a limit is exceeded",
        "",
        "",
    ),
}


def _of_promise(kind: str, name: str, field: str) -> Moved:
    return field_of("promise", kind, name, field)


def _of_two_promises(field: str) -> Moved:
    """Say that a word is now a field of `File` and of `Drawn`."""
    return Moved(
        f"promise=File({field}=...) or Drawn({field}=...)",
        f"{field} of [promise.file] or [promise.drawn]",
        f"--promise file,{field}=... or drawn,{field}=...",
    )


_OF_DRAWN = ("k", "about", "coupling", "fits", "delta")
_OF_FILE = ("allow_exact", "at_most")
_OF_BOTH = ("noise", "games", "confidence")
OF_PROTECTIONS: Mapping[str, Moved] = {
    **{word: _of_promise("Drawn", "drawn", word) for word in _OF_DRAWN},
    **{word: _of_promise("File", "file", word) for word in _OF_FILE},
    **{word: _of_two_promises(word) for word in _OF_BOTH},
    "noise_scale": _of_two_promises("scale"),
    "pairs_seed": _of_promise("Drawn", "drawn", "seed"),
    "ranges": Moved("promise=Anyone(ranges={'wage': (0, 80)})", "ranges of [promise.anyone]", "--range wage=0:80"),
    "others": Moved("promise=Anyone(others=['sector'])", "others of [promise.anyone]", "--others"),
    "clip": Moved(
        "a range of each column, as compare=Anyone(ranges={'wage': (-3, 3)})",
        "a range of each column, as compare = [{ anyone = { ranges = { wage = [-3, 3] } } }]",
        "a range of each column, as --compare all --range wage=-3:3",
    ),
    "design": Moved(
        "promise=, which is anyone for dp, file for leave-one-out, drawn for half; per-instance is retired",
        "promise, which is anyone for dp, file for leave-one-out, drawn for half; per-instance is retired",
        "--promise, which is anyone for dp, file for leave-one-out, drawn for half; per-instance is retired",
    ),
    "another_design": Moved("another_promise=", "another_promise", "--another-promise"),
    "seed": Moved("insecure_seed=", "insecure_seed", "--insecure-seed"),
    "title": _PAGE,
    "unit": _PAGE,
    "date": _PAGE,
    "id": renamed("ids"),
    "group": renamed("groups"),
    "depends_on": Moved("store=Store(path, depends_on=...)", "", ""),
    "tmp": Moved("the environment variable TMPDIR", "", "the environment variable TMPDIR"),
}


def keywords(moved: Mapping[str, Moved]) -> dict[str, str]:
    """Say of each word what the keyword is now."""
    return {word: now.keyword for word, now in moved.items() if now.keyword}
