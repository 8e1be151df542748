"""The plan of an audit: which data, which releases, which game, which attacks, which claims."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from leakbound.core.checks import non_negative, probability
from leakbound.core.unit_words import UnitWord
from leakbound.core.untrusted import in_one_line, toml_table
from leakbound.plans.limits import REFUTED, Limit, Width
from leakbound.plans.plan import (
    ColumnNames,
    Decimal,
    DependsOn,
    Encoding,
    FilePath,
    FilePlan,
    Names,
    Numbers,
    Plan,
    Separator,
    a_fraction,
    constant,
    read,
    settings,
)
from leakbound.plans.policies import PolicyPlan, policy_of
from leakbound.plans.variants import check_values, variants

VERSIONS = ("shifts", "noise", "growing_noise")  # of records, that leakbound makes


class ModelPlan(Plan):
    """One release: the import path of an estimator or of what makes a network, and its parameters."""

    spec: str = Field(description="import path, as sklearn.ensemble:RandomForestClassifier or my_package:make_network")
    name: str = Field(default="", description="what the report calls it; the class's name unless given")
    set: dict[str, Any] = Field(default={}, description="parameters of the estimator, or of what makes the network")
    train: dict[str, Any] = Field(default={}, description="how a network is trained: epochs, lr, batch, optimiser, ...")
    dpsgd: dict[str, Any] | None = Field(
        default=None, description="how a network is trained by DP-SGD: noise_multiplier, clip, sample_rate, steps, ..."
    )
    layers: tuple[str, ...] = Field(
        default=(),
        description="of a network: all, last or the names of those whose gradients are seen; all unless given",
    )

    @model_validator(mode="after")
    def _one_training(self) -> ModelPlan:
        if self.train and self.dpsgd is not None:
            raise ValueError("train says how a network is trained without DP-SGD; give train or dpsgd, not both")
        if self.layers and self.dpsgd is not None:
            raise ValueError("layers are of networks that are trained without DP-SGD, whose steps show all of them")
        return self


class ClaimPlan(Plan):
    """What somebody promised of a release: epsilon and delta, or mu, or eta, or accuracy."""

    epsilon: float | None = Field(default=None, description="of (epsilon, delta)-DP")
    delta: Annotated[float, a_fraction(below=True)] = Field(default=0.0, description="of (epsilon, delta)-DP")
    mu: float | None = Field(default=None, description="of Gaussian DP")
    eta: Annotated[float | None, a_fraction(most=0.5, below=True)] = Field(
        default=None, description="no record is guessed better than the prior guess + eta"
    )
    accuracy: Annotated[float | None, a_fraction(least=0.5, below=True)] = Field(
        default=None, description="no record is guessed right in more than this fraction of cases"
    )
    adjacency: Literal["add_remove", "replace_one"] | None = Field(
        default=None, description="of epsilon and mu: what neighbouring data sets are"
    )
    model: str = Field(default="", description="the release that the claim is about; every one unless given")

    @model_validator(mode="after")
    def _one_promise(self) -> ClaimPlan:
        quantities = [name for name in ("epsilon", "mu", "eta", "accuracy") if getattr(self, name) is not None]
        if len(quantities) != 1:
            raise ValueError(f"a claim needs one of epsilon, mu, eta, accuracy; got {', '.join(quantities) or 'none'}")
        quantity = quantities[0]
        if quantity in ("epsilon", "mu") and self.adjacency is None:
            raise ValueError(f"a claim of {quantity} needs adjacency=add_remove or adjacency=replace_one")
        if quantity in ("eta", "accuracy") and (self.adjacency is not None or self.delta):
            raise ValueError(f"a claim of {quantity} takes no adjacency and no delta")
        if quantity in ("epsilon", "mu"):
            non_negative(quantity, getattr(self, quantity))
        return self

    @classmethod
    def parse(cls, text: str) -> ClaimPlan:
        """``epsilon=3,delta=1e-5,adjacency=add_remove`` as a plan."""
        return read(cls, settings(text, "claim"), "claim")


class AuditPlan(FilePlan):
    """An audit: which data, which releases, which game, which attacks, which claims."""

    title: str = Field(default="", description="the question on top of the page")
    unit: UnitWord = Field(
        default=UnitWord("record"), description="the unit of privacy in words: record, household, Person/Personen"
    )
    date: str = Field(default="", description="printed on the page as given")
    author: str = Field(default="", description="who made the audit: printed on the page as given")
    dataset: str | None = Field(default=None, min_length=1, description="a named set: digits, breast_cancer, wine")
    data: FilePath | None = Field(default=None, description="a .csv, .parquet or .npz file, or a folder of images")
    label: str | None = Field(default=None, min_length=1, description="the column to predict")
    group: str | None = Field(
        default=None, description="the column that names the unit of privacy, if it has several rows"
    )
    drop: ColumnNames = Field(default=(), description="columns of the file that are no features")
    separator: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    id: str | None = Field(
        default=None, min_length=1, description="the column that names the records, for their owner; no feature"
    )
    slice: Names = Field(
        default=(), description="columns by whose values the records are grouped, to compare what is revealed of each"
    )
    attribute: str | None = Field(
        default=None, min_length=1, description="a sensitive column, to be guessed in place of membership"
    )
    bins: Numbers = Field(
        default=(), description="of the attribute's numbers: how many bins, or the edges between them"
    )
    game: Literal["half_split", "per_datum", "average_datum", "canaries"] = Field(
        default="half_split", description="who is in and who is out"
    )
    sampling: Literal["fixed", "poisson"] = Field(default="fixed", description="halves of fixed size, or fair coins")
    sample: int | None = Field(
        default=None, ge=1, description="attack a random sample of so many records; all unless given"
    )
    target: tuple[int, ...] = Field(
        default=(), description="indices of the attacked records: one for per_datum, or the canaries"
    )
    canaries: Literal["dirac", "mahalanobis", "mislabelled", "random"] | None = Field(
        default=None, description="of the game canaries without targets: dirac, mahalanobis, mislabelled or random"
    )
    n_canaries: int = Field(default=1000, ge=1, description="how many canaries are planted")
    knowledge: Literal["distribution", "others"] | None = Field(
        default=None,
        description="what the attacker who sees the steps knows of the other records: the distribution of their "
        "gradients, or which are in a batch (others, of Dirac canaries unless given)",
    )
    references: int = Field(default=0, ge=0, description="further models that are not attacked; half_split needs none")
    n_models: int = Field(default=64, ge=1, description="models to fit for each release; 1 for planted canaries")
    n_queries: int = Field(
        default=1,
        ge=1,
        description="ask each model about so many versions of each record, itself among them",
    )
    versions: str | None = Field(
        default=None,
        min_length=1,
        description="how these are made: shifts of images, noise, growing_noise, or module:function of the records and "
        "a number; shifts or noise unless given",
    )
    attacks: tuple[str, ...] = Field(default=("default",), min_length=1, description="names, or default, or all")
    seed: int = Field(default=0, ge=0, description="of the game and of the fits")
    fpr: Numbers = Field(default=(0.01, 0.001), description="false positive rates of interest, as fractions")
    confidence: Annotated[float, a_fraction(above=True, below=True)] = Field(
        default=0.95, description="of the intervals"
    )
    prior: Annotated[float, a_fraction(above=True, below=True)] = Field(
        default=0.5,
        description="fraction of members at which accuracy and precision are reported, with their baseline",
    )
    accept_shift: bool = Field(
        default=False,
        description="judge limits and claims also where members and others do not come from one source",
    )
    fail_above: tuple[str, ...] = Field(default=(), description="limits, as tpr@0.01=0.05; exit code 3 above them")
    policy: PolicyPlan | None = Field(
        default=None, description="limits that give each model a verdict: a TOML file, or research, which is built in"
    )
    vary: dict[str, tuple[Any, ...]] = Field(
        default={}, description="values of a parameter of the model, each of which is audited as a model of its own"
    )
    until: str | None = Field(
        default=None,
        description="fit 8, 16, 32, ... models, n_models at most, until the interval of the strongest attack is as "
        "narrow as this: width:tpr@0.01=0.005; or until each claim is refuted: refuted",
    )
    depends_on: DependsOn = ()
    model: tuple[ModelPlan, ...] = Field(default=(), description="the releases")
    claim: tuple[ClaimPlan, ...] = Field(default=(), description="what was promised of them")

    @model_validator(mode="before")
    @classmethod
    def _one_run(cls, words: Any) -> Any:
        """Canaries that nobody names are planted, and one model with many of them is enough."""
        if isinstance(words, Mapping) and words.get("game") == "canaries" and not words.get("target"):
            return {"canaries": "dirac", "n_models": 1, **words}
        return words

    @field_validator("fpr")
    @classmethod
    def _rates(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted({probability("fpr", rate, open_ends=True) for rate in rates}, reverse=True))

    @field_validator("fail_above")
    @classmethod
    def _gates(cls, limits: tuple[str, ...]) -> tuple[str, ...]:
        for text in limits:
            Limit.parse(text)
        return limits

    @field_validator("policy", mode="before")
    @classmethod
    def _policy(cls, policy: Any) -> PolicyPlan | None:
        return None if policy is None else policy_of(policy)

    @field_validator("vary")
    @classmethod
    def _values(cls, grid: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        # a TOML file has no null, and writes "none"
        values = {
            name: tuple(constant(value) if value == "none" else value for value in given)
            for name, given in grid.items()
        }
        for name, several in values.items():
            check_values(name, several)
        return values

    # at how many numbers of models the claims are tested, of which this plan is one: their level is divided by it
    _n_looks: int = PrivateAttr(default=1)

    @property
    def n_looks(self) -> int:
        """At how many numbers of models the claims are tested."""
        return self._n_looks

    def at_look(self, n_models: int, confidence: float, n_looks: int) -> AuditPlan:
        """Return the plan of one of several looks.

        Parameters
        ----------
        n_models : int
        confidence : float
            Of the intervals of this look.
        n_looks : int
            How many there are.
        """
        plan = self.model_copy(update={"n_models": n_models, "confidence": confidence})
        plan._n_looks = n_looks
        return plan

    @property
    def releases(self) -> tuple[ModelPlan, ...]:
        """The models, or the variants of the one model that is varied."""
        if not self.vary:
            return self.model
        (model,) = self.model
        return tuple(
            ModelPlan(
                spec=model.spec,
                name=f"{model.name} {variant.name}".strip(),
                set={**model.set, **variant.set},
                train={**model.train, **variant.train},
                dpsgd=None if model.dpsgd is None else {**model.dpsgd, **variant.dpsgd},
                layers=model.layers,
            )
            for variant in variants(self.vary, private=model.dpsgd is not None)
        )

    @property
    def import_paths(self) -> tuple[str, ...]:
        """What carrying out the plan imports and calls: a plan is code."""
        hooks = [hook for model in self.model for hook in (model.dpsgd or {}).values() if _is_path(hook)]
        own = [self.versions] if self.versions is not None and _is_path(self.versions) else []
        return tuple(dict.fromkeys([*(model.spec for model in self.model), *hooks, *own]))

    @model_validator(mode="after")
    def _consistent(self) -> AuditPlan:
        self._data_and_names()
        self._game()
        self._planted()
        self._attribute()
        self._slices()
        self._queries()
        self._limits()
        self._several()
        self._until()
        return self

    def _data_and_names(self) -> None:
        """Check that there is one source of data, and one model of each name."""
        if self.data is not None and self.dataset is not None:
            raise ValueError("give data or dataset, not both")
        names = [model.name for model in self.model if model.name]
        if len(set(names)) < len(names):
            raise ValueError(f"two models have the same name; names: {', '.join(names)}")

    def _game(self) -> None:
        """Check the fields that only some games take."""
        if self.game == "per_datum" and len(self.target) != 1:
            raise ValueError(f"the game per_datum needs target = [record number]; got {list(self.target)}")
        if len(set(self.target)) < len(self.target):
            raise ValueError(f"target names a record twice: {list(self.target)}")
        if self.game in ("half_split", "average_datum") and self.target:
            raise ValueError(f"the game {self.game} takes no target")
        if self.sample is not None and (self.game != "half_split" or self.attribute is not None):
            raise ValueError("sample draws the attacked records of the game half_split, in an audit of membership")
        if self.game == "half_split" and self.references:
            raise ValueError("in a half_split the references of a model are all others; references must be 0")

    def _attribute(self) -> None:
        """Check the fields of an audit of an attribute."""
        if self.attribute is not None and "prior" in self.model_fields_set:
            raise ValueError("prior is of guesses about membership; an audit of an attribute takes none")
        if self.bins and self.attribute is None:
            raise ValueError("bins cut the numbers of an attribute; give attribute too")

    def _slices(self) -> None:
        """Check that records are sliced where each of them is attacked in every model."""
        if self.slice and self.attribute is not None:
            raise ValueError("slice groups guesses about membership; an audit of an attribute takes none")
        if self.slice and self.game != "half_split":
            raise ValueError(f"slice compares groups of records in the game half_split, got game = {self.game!r}")

    def _queries(self) -> None:
        """Check that versions of records are asked about where membership is attacked and models are trained freely."""
        if self.versions is not None and self.n_queries == 1:
            raise ValueError("versions says how versions of the records are made; give their number too: n_queries")
        if self.n_queries == 1:
            return
        if self.versions is not None and self.versions not in VERSIONS and not _is_path(self.versions):
            raise ValueError(f"versions must be {', '.join(VERSIONS)} or module:function, got {self.versions!r}")
        if self.attribute is not None:
            raise ValueError("n_queries is of guesses about membership; an audit of an attribute takes none")
        if any(model.dpsgd is not None for model in self.model):
            raise ValueError("n_queries asks trained models; DP-SGD is observed by its steps: leave it out")

    def _limits(self) -> None:
        """Check that the rate of each limit is among those of interest."""
        for text in self.fail_above:
            rate = Limit.parse(text).fpr
            if rate is not None and rate not in self.fpr:
                raise ValueError(
                    f"fail_above (--fail-above) {text} needs the rate among those of interest: fpr (--fpr {rate:g})"
                )

    def _several(self) -> None:
        """Check the fields that are about the models of an audit of membership."""
        if self.vary and len(self.model) > 1:
            raise ValueError(f"vary is of one model, and there are {len(self.model)}")
        if self.vary and self.model:
            variants(self.vary, private=self.model[0].dpsgd is not None)
        if self.attribute is not None and self.policy is not None:
            raise ValueError("a policy limits what is inferred about membership; an audit of an attribute takes none")

    def _until(self) -> None:
        """Check that what one waits for can come, and that there are several looks."""
        if self.until is None:
            return
        if self.attribute is not None:
            raise ValueError("until adds models to an audit of membership; an audit of an attribute takes none")
        if self.policy is not None:
            raise ValueError("until takes no policy: its verdict would be made at each look")
        if self.until == REFUTED:
            self._until_refuted()
            return
        wanted = Width.parse(self.until)
        if wanted.fpr is not None and wanted.fpr not in self.fpr:
            raise ValueError(f"until {self.until} needs the rate among those of interest: fpr {wanted.fpr:g}")
        if self.game != "half_split":
            raise ValueError(f"until width adds models to the game half_split, got game = {self.game!r}")
        if self.claim:
            raise ValueError(
                f"until width takes no claim: it would be tested at each look; until {REFUTED} tests it so"
            )

    def _until_refuted(self) -> None:
        """Check that there is a claim for each release, and more than one model."""
        if not self.claim and (not self.model or any(model.dpsgd is None for model in self.model)):
            raise ValueError(
                f"until {REFUTED} needs a claim, as epsilon=1,adjacency=replace_one, or a model with dpsgd"
            )
        if self.n_models < 2:
            raise ValueError(
                f"until {REFUTED} adds models up to n_models, got n_models = {self.n_models}; give 64 or so"
            )
        if self.references:
            raise ValueError(f"until {REFUTED} adds models that are attacked; references must be 0")

    def _planted(self) -> None:
        """Check the fields of the game canaries."""
        if self.game != "canaries" and self.n_models < 2:
            raise ValueError(f"n_models must be >= 2, got {self.n_models}; one is enough for the game canaries alone")
        if self.canaries is None:
            if idle := sorted({"n_canaries", "knowledge"} & self.model_fields_set):
                raise ValueError(f'{idle[0]} is of canaries that are planted: give game = "canaries" without target')
        elif self.game != "canaries":
            raise ValueError(f"canaries are planted in the game canaries alone, got game = {self.game!r}")
        elif self.target:
            raise ValueError("target names the canaries, canaries plants others; give one of them")


@in_one_line
def from_toml(path: str | os.PathLike[str]) -> AuditPlan:
    r"""Read the plan in a TOML file.

    Parameters
    ----------
    path : path

    Returns
    -------
    AuditPlan
        With every key checked.

    Raises
    ------
    ValueError
        In one line, with the nearest known key where one is unknown.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     plan = Path(folder) / "plan.toml"
    ...     _ = plan.write_text('dataset = "wine"\n[[model]]\nspec = "sklearn.tree:DecisionTreeClassifier"')
    ...     from_toml(plan).dataset
    'wine'
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path}: no such plan file")
    return read(AuditPlan, toml_table(file), str(path))


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and ":" in value


def refuse_unknown(plan: AuditPlan, releases: Sequence[str]) -> None:
    """Refuse a claim about a release that is not in the audit."""
    for claim in plan.claim:
        if claim.model and claim.model not in releases:
            raise ValueError(f"a claim is about {claim.model!r}, which is no model here: {', '.join(releases)}")
