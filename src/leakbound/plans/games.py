"""Games: who is in and who is out, and what is guessed. Each has the fields that make sense in it, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from leakbound.plans.choices import choice, choose, set_fields, table_of
from leakbound.plans.plan import Inside, Numbers, columns, settings

VERSIONS = ("shifts", "noise", "growing_noise")  # of records, that leakbound makes
Prior = Inside  # fraction of members, for accuracy and its baseline

# Models of each release, unless the call says how many.
# 23 show that one of 100,000 records is exposed if the attacker is never wrong; 64 leave room for one who is.
HALF_SPLIT_MODELS = 64
# Each model is one trial of the attack, and 64 trials give a rate with an interval of at most +- 0.13 (95 %).
ONE_TARGET_MODELS = 64
# A fresh data set has at most a quarter of the file: 128 of them cost no more than 64 halves, and 20 targets give 2,560
# trials; a target has some 64 references on each side.
FRESH_MODELS = 128
# All targets of a model are trials, and a removal is often as expensive as a training: 16 models of 100 targets detect
# an AUC of .55 in most audits.
FORGOTTEN_MODELS = 16
# Each planted canary is a trial of its own, so that one model has as many trials as canaries.
PLANTED_MODELS = 1


@choice
class Queries:
    """How many versions of each record a model is asked about, the record itself among them.

    Parameters
    ----------
    n : int
        LiRA, RMIA, the quantile attack and those of labels alone use them all. They take n times the memory.
    versions : {"shifts", "noise", "growing_noise"}, str or callable, optional
        Shifts of images unless given, noise in tables; or ``function(X, number)``, which returns the records in their
        version of that number, from 1 to ``n - 1``, also as ``"module:function"``.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Queries(18, versions="shifts").n
    18
    """

    n: Annotated[int, Field(ge=1)] = 1
    _: KW_ONLY
    versions: Any = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Queries:
        if self.versions is None:
            return self
        if self.n == 1:
            raise ValueError("versions says how versions of the records are made; give their number too, as 18")
        if isinstance(self.versions, str):
            if self.versions not in VERSIONS and ":" not in self.versions:
                raise ValueError(f"versions must be {', '.join(VERSIONS)} or module:function, got {self.versions!r}")
        elif not callable(self.versions):
            raise ValueError(f"versions must be a name or a function, got a {type(self.versions).__name__}")
        return self

    @property
    def words(self) -> Queries:
        """The same with the import path of a function in its place, as a plan has it."""
        return self if self.versions is None else Queries(self.n, versions=_import_path(self.versions))

    @property
    def function(self) -> Any:
        """The function that makes versions, where it was given as one."""
        return None if isinstance(self.versions, str) else self.versions


def _import_path(function: Any) -> str:
    """Return the import path of a function, which may be given as one."""
    if isinstance(function, str):
        return function
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"


def queries_of(given: Any) -> Queries:
    """Read queries: a number, ``18,versions=noise``, or a table."""
    if isinstance(given, list):  # of a flag: queries=[18,versions=noise]
        given = ",".join(map(str, given))
    if isinstance(given, str):
        number, _, rest = given.partition(",")
        return Queries(**settings(f"n={number.removeprefix('n=')}" + (f",{rest}" if rest else ""), "queries"))
    if isinstance(given, Mapping):
        return Queries(**given)
    return given if isinstance(given, Queries) else Queries(given)


def _in_words(queries: Queries) -> Any:
    """Write queries as a plan has them: their number, or a table."""
    return queries.n if queries.versions is None else set_fields(queries)


AskedOften = Annotated[Queries, PlainValidator(queries_of), PlainSerializer(_in_words)]


def _slices(given: Any) -> Any:
    """Read names of columns as a tuple; columns themselves are taken as they are."""
    if isinstance(given, str):
        return columns(given.strip("[]"))
    return tuple(given) if isinstance(given, list) else given


def _plain(given: Any) -> Any:
    """Read an array as its numbers."""
    return given if isinstance(given, str | int | float | list | tuple) else [float(number) for number in given]


Slices = Annotated[Any, BeforeValidator(_slices)]


@choice
class HalfSplit:
    """Each model is trained on a random half of the records, and attacked with all the others as references.

    Parameters
    ----------
    sampling : {"fixed", "poisson"}
        Halves of fixed size, or a fair coin for each record.
    sample : int, optional
        Attack a random sample of so many records, or units, where all are too many; the models are trained on halves
        of all of them. Numbers and intervals are about the sample, and a note says how far all may be from it.
    slices : column of X, sequence of them, mapping of str to array of shape (N,), or such an array
        Groups of records to compare: ``"label"``, ``"group"``, columns (``"x0"`` of an array), or their values by
        name. See ``leakbound.auditing.slices.by_slice``.
    queries : Queries or int
        About how many versions of each record a model is asked.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.HalfSplit(sample=500).default_models
    64
    """

    _: KW_ONLY
    sampling: Literal["fixed", "poisson"] = "fixed"
    sample: Annotated[int | None, Field(ge=1)] = None
    slices: Slices = ()
    queries: AskedOften = Queries()
    prior: Prior = 0.5
    default_models: ClassVar[int] = HALF_SPLIT_MODELS


@choice
class Fresh:
    """A few targets are in each data set by a fair coin; the rest of it is drawn anew from all other records.

    So the models that a model is compared with know nothing of its other records, unlike those of a half-split.

    Parameters
    ----------
    targets : int
        How many records, or units, are targets: drawn at random once. At most a tenth of ``size`` unless the page is to
        say which part of a data set the references know.
    size : int
        How many records, or units, each data set has: at most a quarter of those that are no targets.
    sample : int, optional
        Attack a random sample of so many of the targets.
    slices : column of X, sequence of them, mapping of str to array of shape (N,), or such an array
        Groups of records to compare, as in ``HalfSplit``.
    queries : Queries or int
        About how many versions of each record a model is asked.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Fresh(targets=20, size=200).default_models
    128
    """

    targets: Annotated[int, Field(ge=1)]
    size: Annotated[int, Field(ge=1)]
    _: KW_ONLY
    sample: Annotated[int | None, Field(ge=1)] = None
    slices: Slices = ()
    queries: AskedOften = Queries()
    prior: Prior = 0.5
    default_models: ClassVar[int] = FRESH_MODELS

    @model_validator(mode="after")
    def _fits(self) -> Fresh:
        if self.targets > self.size:
            raise ValueError(f"a data set of size={self.size:,} cannot hold {self.targets:,} targets; give fewer")
        if self.sample is not None and self.sample > self.targets:
            raise ValueError(f"sample must be from 1 to the {self.targets:,} targets, got {self.sample:,}")
        return self


@choice
class Forgotten:
    """Records that were in and were removed after training are told from records that never were in.

    Each target is in the training data of each model by a fair coin. The model is trained on these and on records that
    are kept, ``unlearn`` removes those that are in, and the attacker sees the result alone: not the model before the
    removal, which is another game, and is not played.

    Parameters
    ----------
    unlearn : callable or str
        ``unlearn(model, X_removed, y_removed, X_kept, y_kept, seed)`` returns the model after the removal; also as
        ``"module:function"``. It is called for each model, also where no target is in.
    targets : int
        How many records, or units, may be removed: drawn at random once. The others are kept, and not judged.
    kept : {"half", "all"}
        The other records in the data of each model: a random half, drawn anew for each, or all. With all of them, what
        is seen is rounded to ``1e-9`` of its size, for models would differ in the errors of arithmetic alone.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Forgotten("my_package:unlearn", targets=100).default_models
    16
    """

    unlearn: Any
    targets: Annotated[int, Field(ge=1)]
    _: KW_ONLY
    kept: Literal["half", "all"] = "half"
    prior: ClassVar[float] = 0.5
    default_models: ClassVar[int] = FORGOTTEN_MODELS

    @model_validator(mode="after")
    def _can_be_called(self) -> Forgotten:
        if isinstance(self.unlearn, str):
            if ":" not in self.unlearn:
                raise ValueError(f"unlearn must be a function or module:function, got {self.unlearn!r}")
        elif not callable(self.unlearn):
            raise ValueError(f"unlearn must be a function or module:function, got a {type(self.unlearn).__name__}")
        return self

    @property
    def words(self) -> Forgotten:
        """The same with the import path of the function in its place, as a plan has it."""
        return Forgotten(_import_path(self.unlearn), self.targets, kept=self.kept)


@choice
class PerDatum:
    """One record is in each model by a fair coin; the others are a random half.

    Parameters
    ----------
    target : int
        Its index.
    references : int
        Further models that are not attacked.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.PerDatum(3).target
    3
    """

    target: Annotated[int, Field(ge=0)]
    _: KW_ONLY
    references: Annotated[int, Field(ge=0)] = 0
    prior: Prior = 0.5
    default_models: ClassVar[int] = ONE_TARGET_MODELS


@choice
class AverageDatum:
    """Each model has a random record of its own, which is in by a fair coin; the others are a random half.

    Parameters
    ----------
    references : int
        Further models that are not attacked.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.AverageDatum(references=8).references
    8
    """

    _: KW_ONLY
    references: Annotated[int, Field(ge=0)] = 0
    prior: Prior = 0.5
    default_models: ClassVar[int] = ONE_TARGET_MODELS


@choice
class Canaries:
    """Canaries are in each model by a fair coin, all other records are in every model: one model is enough.

    Parameters
    ----------
    kind : {"dirac", "mahalanobis", "mislabelled", "random"}
        Which canaries are planted: see ``leakbound.auditing.canaries.plant``.
    n : int
        How many.
    knowledge : {"distribution", "others"}, optional
        What an attacker who sees the steps of DP-SGD knows of the other records: the distribution of their gradients,
        or which are in a batch (of Dirac canaries unless given).
    targets : sequence of int
        Indices of records that are the canaries, in place of planted ones.
    references : int
        Further models that are not attacked.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Canaries(n=500).default_models, ls.Canaries(targets=[3, 8]).default_models
    (1, 64)
    """

    kind: Literal["dirac", "mahalanobis", "mislabelled", "random"] = "dirac"
    n: Annotated[int, Field(ge=1)] = 1000
    _: KW_ONLY
    knowledge: Literal["distribution", "others"] | None = None
    targets: tuple[int, ...] = ()
    references: Annotated[int, Field(ge=0)] = 0
    prior: Prior = 0.5

    @model_validator(mode="after")
    def _planted_or_named(self) -> Canaries:
        if len(set(self.targets)) < len(self.targets):
            raise ValueError(f"targets names a record twice: {list(self.targets)}")
        if self.targets and (self.kind, self.n, self.knowledge) != ("dirac", 1000, None):
            raise ValueError("kind, n and knowledge are of canaries that are planted; leave them out, or targets")
        return self

    @property
    def default_models(self) -> int:
        """How many models are fitted unless the call says it."""
        return ONE_TARGET_MODELS if self.targets else PLANTED_MODELS


@choice
class Attribute:
    """A sensitive attribute of the members is guessed, in place of who is in; each model has a random half.

    Parameters
    ----------
    column : column of X, list of one-hot columns, or array of shape (N,)
        The attribute. See ``leakbound.auditing.attribute.run.infer``.
    bins : int or sequence of float
        Of an attribute that holds numbers: how many bins, or the edges between them.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Attribute("age", bins=4).column
    'age'
    """

    column: Any
    bins: Annotated[Numbers, BeforeValidator(_plain)] = ()
    default_models: ClassVar[int] = HALF_SPLIT_MODELS


Game = HalfSplit | PerDatum | AverageDatum | Canaries | Attribute | Fresh | Forgotten
GAMES = (HalfSplit, PerDatum, AverageDatum, Canaries, Attribute, Fresh, Forgotten)


def game_of(given: Any) -> Game:
    """Read a game: an object, a name with fields as ``canaries,n=500``, or a table.

    >>> game_of("canaries,n=500") == game_of({"canaries": {"n": 500}})
    True
    """
    return choose(GAMES, given, "game")


def queries_in(game: Game) -> Queries:
    """Return about which versions of each record the models of a game are asked: the record alone in most games."""
    return game.queries if isinstance(game, HalfSplit | Fresh) else Queries()


def in_words(game: Game) -> Any:
    """Write a game as a plan has it: its name, or a table of what is not at its default."""
    ((name, fields),) = table_of(game).items()
    return {name: fields} if fields else name
