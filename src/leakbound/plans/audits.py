"""The plan of an audit: which data, which releases, which game, which attacks, which claims."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainSerializer, PlainValidator, field_validator, model_validator

from leakbound.core.checks import non_negative
from leakbound.files.untrusted import in_one_line, toml_table
from leakbound.plans.choices import name_of
from leakbound.plans.fitted import REFERENCES
from leakbound.plans.games import (
    HALF_SPLIT_MODELS,
    AskedOften,
    Attribute,
    Canaries,
    Fresh,
    Game,
    HalfSplit,
    Prior,
    Queries,
    game_of,
    in_words,
    queries_in,
)
from leakbound.plans.moved import OF_AUDITS, OF_MODELS, Moved
from leakbound.plans.plan import (
    ColumnNames,
    DependsOn,
    FilePath,
    FilePlan,
    Inside,
    Names,
    PagePlan,
    Plan,
    a_fraction,
    constant,
    read,
    settings,
)
from leakbound.plans.policies import PolicyPlan, policy_of
from leakbound.plans.until import REFUTED, Models, Until
from leakbound.plans.variants import check_values, variants


class ModelPlan(Plan):
    """One release: the import path of an estimator or of what makes a network, and its parameters."""

    spec: str = Field(description="import path, as sklearn.ensemble:RandomForestClassifier or my_package:make_network")
    name: str = Field(default="", description="what the report calls it; the class's name unless given")
    set: dict[str, Any] = Field(default={}, description="parameters of the estimator, or of what makes the network")
    train: dict[str, Any] = Field(
        default={},
        description="how a network is trained: epochs, lr, batch, optimiser, ...; layers: whose gradients are seen",
    )
    dpsgd: dict[str, Any] | None = Field(
        default=None, description="how a network is trained by DP-SGD: noise_multiplier, clip, sample_rate, steps, ..."
    )
    moved: ClassVar[Mapping[str, Moved]] = OF_MODELS

    @property
    def layers(self) -> tuple[str, ...]:
        """Of a network: those whose gradients are seen, as all, last or names; all unless given."""
        given = self.train.get("layers", ())
        return tuple(map(str, given)) if isinstance(given, list | tuple) else (str(given),)  # a layer may be called 3

    @property
    def recipe(self) -> dict[str, Any]:
        """How a network is trained, without what is seen of it."""
        return {name: value for name, value in self.train.items() if name != "layers"}

    @model_validator(mode="after")
    def _one_training(self) -> ModelPlan:
        if self.train and self.dpsgd is not None:
            raise ValueError("train says how a network is trained without DP-SGD; give train or dpsgd, not both")
        return self


SCORE = (
    "module:function, fn(object, X) or fn(object, X, y), a number for each record, higher = more likely in, of any "
    "object that a training returns; or a Loss(fn)"
)


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


class JudgedPlan(FilePlan, PagePlan):
    """What all audits share: the columns of a file, the attacks, the claims, and the page."""

    moved: ClassVar[Mapping[str, Moved]] = OF_AUDITS
    author: str = Field(default="", description="who made the audit: printed on the page as given")
    data: FilePath | None = Field(default=None, description="a .csv, .parquet, .npz or folder of images")
    label: str | None = Field(default=None, min_length=1, description="the column to predict")
    drop: ColumnNames = Field(default=(), description="columns of the file that are no features")
    id: str | None = Field(
        default=None, min_length=1, description="the column that names the records, for their owner; no feature"
    )
    attacks: tuple[str, ...] = Field(default=("default",), min_length=1, description="names of attacks, or all")
    seed: int = Field(default=0, ge=0, description="of the game and of the fits")
    confidence: Inside = Field(default=0.95, description="of the intervals")
    policy: PolicyPlan | None = Field(default=None, description="limits, as auc=0.6, a file, or research")
    claim: tuple[ClaimPlan, ...] = Field(
        default=(), description="a promise to test, as eta=0.05, or mu=1,adjacency=replace_one"
    )

    @field_validator("policy", mode="before")
    @classmethod
    def _policy(cls, policy: Any) -> PolicyPlan | None:
        return None if policy is None else policy_of(policy)


class GivenPlan(JudgedPlan):
    """An audit of scores or signals from elsewhere: who was in is given, and not drawn."""

    slices: Names = Field(
        default=(), description="columns by whose values the records are grouped, to compare what is revealed of each"
    )
    prior: Prior = Field(
        default=0.5,
        description="fraction of members at which accuracy and precision are reported, with their baseline",
    )
    accept_shift: bool = Field(
        default=False,
        description="judge limits and claims also where members and others do not come from one source",
    )


class TrainedPlan(GivenPlan):
    """An audit of one trained model, by its members and others."""

    n_models: int = Field(default=REFERENCES, ge=1, description="reference models that are fitted, of its recipe")
    score: str | None = Field(default=None, min_length=1, description=SCORE)
    queries: AskedOften = Field(
        default=Queries(), description="ask the model about so many versions of each record: 18, or 18,versions=noise"
    )
    depends_on: DependsOn = ()


class SyntheticPlan(GivenPlan):
    """An audit of synthetic data, by records that the generator had and records that it cannot have had."""

    group: str | None = Field(
        default=None, min_length=1, description="the column that names the unit of privacy, if it has several rows"
    )
    infer: ColumnNames = Field(
        default=(),
        description="columns whose value is guessed from the nearest synthetic row, of members and of others",
    )


class AuditPlan(JudgedPlan):
    """An audit: which data, which releases, which game, which attacks, which claims."""

    dataset: str | None = Field(default=None, min_length=1, description="a named set: digits, breast_cancer, wine")
    group: str | None = Field(
        default=None, description="the column that names the unit of privacy, if it has several rows"
    )
    game: Annotated[Game, PlainValidator(game_of), PlainSerializer(in_words)] = Field(
        default=HalfSplit(),
        description="half_split, per_datum, average_datum, canaries,n=500, attribute, fresh, forgotten",
    )
    n_models: Models = Field(
        default=None,
        description=f"how many to fit; {HALF_SPLIT_MODELS} in a half_split",
    )
    vary: dict[str, tuple[Any, ...]] = Field(
        default={},
        description="values of a parameter, as max_depth=3,5,none, each of which is audited as a model of its own",
    )
    depends_on: DependsOn = ()
    score: str | None = Field(default=None, min_length=1, description=SCORE)
    model: tuple[ModelPlan, ...] = Field(default=(), description="an estimator or a network, as module:name")

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

    @property
    def models(self) -> int:
        """How many models are fitted for each release: those of the game, unless the plan says it."""
        if isinstance(self.n_models, Until):
            return self.n_models.at_most
        return self.game.default_models if self.n_models is None else self.n_models

    @property
    def until(self) -> Until | None:
        """How well something is to be known before no more models are fitted; None for a fixed number."""
        return self.n_models if isinstance(self.n_models, Until) else None

    @property
    def prior(self) -> float:
        """Fraction of members at which accuracy and precision are reported."""
        return 0.5 if isinstance(self.game, Attribute) else self.game.prior

    @property
    def slices(self) -> tuple[str, ...]:
        """Columns by whose values the records are grouped."""
        return self.game.slices if isinstance(self.game, HalfSplit | Fresh) else ()

    @property
    def queries(self) -> Queries:
        """About which versions of each record the models are asked."""
        return queries_in(self.game)

    @property
    def has_labels(self) -> bool:
        """Whether the records have labels: all but those of a table of which nobody names the label."""
        return self.label is not None or self.data is None or not self.data.endswith((".csv", ".parquet"))

    @property
    def planted(self) -> str | None:
        """Which canaries are planted, if any are."""
        return self.game.kind if isinstance(self.game, Canaries) and not self.game.targets else None

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
            )
            for variant in variants(self.vary, private=model.dpsgd is not None)
        )

    @property
    def import_paths(self) -> tuple[str, ...]:
        """What carrying out the plan imports and calls: a plan is code."""
        hooks = [hook for model in self.model for hook in (model.dpsgd or {}).values() if _is_path(hook)]
        functions = (self.queries.versions, getattr(self.game, "unlearn", None), self.score)
        own = [str(path) for path in functions if _is_path(path)]
        return tuple(dict.fromkeys([*(model.spec for model in self.model), *hooks, *own]))

    @model_validator(mode="after")
    def _consistent(self) -> AuditPlan:
        self._data_and_names()
        self._game()
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
        """Check that the models are enough for the game, and can be asked what it asks."""
        if self.models < 2 and not isinstance(self.game, Canaries):
            raise ValueError(f"n_models must be >= 2, got {self.n_models}; one is enough for the game canaries alone")
        if self.queries.n > 1 and any(model.dpsgd is not None for model in self.model):
            raise ValueError("queries asks trained models; DP-SGD is observed by its steps: leave it out")
        if isinstance(self.game, Attribute) and self.policy is not None:
            raise ValueError("a policy limits what is inferred about membership; an audit of an attribute takes none")

    def _several(self) -> None:
        """Check the fields that are about several models."""
        if self.vary and len(self.model) > 1:
            raise ValueError(f"vary is of one model, and there are {len(self.model)}")
        if self.vary and self.model:
            variants(self.vary, private=self.model[0].dpsgd is not None)

    def _until(self) -> None:
        """Check that what one waits for can come, and that there are several looks."""
        until = self.until
        if until is None:
            return
        if isinstance(self.game, Attribute):
            raise ValueError("until adds models to an audit of membership; an audit of an attribute takes none")
        if self.policy is not None:
            raise ValueError("until takes no policy: its verdict would be made at each look")
        if until.is_refuted:
            self._until_refuted()
            return
        if until.fpr is not None and until.fpr not in self.fpr:
            raise ValueError(f"until {until.quantity} needs the rate among those of interest: fpr {until.fpr:g}")
        if not isinstance(self.game, HalfSplit):
            raise ValueError(f"until a width adds models to the game half_split, got {name_of(type(self.game))}")
        if self.claim:
            raise ValueError(
                f"until a width takes no claim: it would be tested at each look; until {REFUTED} tests it so"
            )

    def _until_refuted(self) -> None:
        """Check that there is a claim for each release."""
        if not self.claim and (not self.model or any(model.dpsgd is None for model in self.model)):
            raise ValueError(
                f"until {REFUTED} needs a claim, as epsilon=1,adjacency=replace_one, or a model with dpsgd"
            )
        if getattr(self.game, "references", 0):
            raise ValueError(f"until {REFUTED} adds models that are attacked; references must be 0")


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


def refuse_unknown(plan: JudgedPlan, releases: Sequence[str]) -> None:
    """Refuse a claim about a release that is not in the audit."""
    for claim in plan.claim:
        if claim.model and claim.model not in releases:
            raise ValueError(f"a claim is about {claim.model!r}, which is no model here: {', '.join(releases)}")
