"""Generators of synthetic records, as releases: of each file one sees how near its rows are to each record.

A generator is a function ``fit(X, seed)`` that returns an object with ``sample(n, seed)`` or a function
``sample(n, seed)``; or an object with ``fit(X)`` and ``sample(n)``, which is copied before each fit. The seeds may be
left out. Fitting and each file have a seed of their own.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import count
from leakbound.core.findings import Term
from leakbound.core.reasons import words
from leakbound.core.seeds import integer
from leakbound.core.types import Points
from leakbound.data.files import read
from leakbound.data.points import from_arrays, some
from leakbound.data.records import as_given
from leakbound.releases.generators.distances import Encoded, Encoding
from leakbound.releases.generators.scores import OF_ROWS, WITH_REFERENCE, scores
from leakbound.releases.specs import OR_SCORE, NoCanonicalForm, canonical, first_line, versions
from leakbound.releases.training_function import LABELS, is_function, name_of, positional
from leakbound.releases.wrapped import KnownByRecipe

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Generator:
    """A generator of synthetic records, with what of it is published.

    Parameters
    ----------
    fit : callable or object
        A function ``fit(X, seed)`` that returns an object with ``sample(n, seed)`` or a function ``sample(n, seed)``;
        or an object with ``fit(X)`` and ``sample(n)``, which is copied before each fit. ``X`` are the rows that the
        generator learns, in the form in which they are given to `audit`; ``sample`` returns rows of that form. Each of
        the functions may take a seed; where neither does, the models are not stored, and the report says so.
    rows : int, optional
        Rows of a synthetic file; as many as the generator was fitted on, unless given.
    files : int
        Synthetic files of the same fitted generator that are published together. The attacker sees all of them: the
        nearest row is that of any file.
    reference : frame, array or path, optional
        Records of the same distribution that the generator has not seen and that are not attacked. With them the
        attacks ``density_ratio`` and ``gen_lra`` run, too.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> from leakbound.core.seeds import stream
    >>> def bootstrap(X, seed):
    ...     return lambda n, seed: X[stream(seed, "rows").integers(len(X), size=n)]
    >>> records = stream(0, "records").normal(size=(200, 3))
    >>> report = ls.audit(ls.Generator(bootstrap, rows=100), records, n_models=8, attacks=["matches"])
    >>> max(finding.value for finding in report.findings if finding.quantity == "auc") > 0.75
    True
    """

    fit: Any
    rows: int | None = None
    files: int = field(default=1, kw_only=True)
    reference: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not generates(self.fit):
            raise ValueError(
                f"a generator is a function fit(X, seed) that returns sample(n, seed) or an object with it, or an "
                f"object with fit and sample; got {_shown(self.fit)}"
            )
        if self.rows is not None:
            count("rows", self.rows)
        count("files", self.files)


def generates(model: Any) -> bool:
    """Tell whether this can be a generator: a `Generator`, an object with fit and sample, a function of X and a seed.

    >>> generates(lambda X, seed: None), generates(lambda X: None), generates(lambda X, y: None), generates(3)
    (True, True, False, False)
    """
    if isinstance(model, Generator):
        return True
    if inspect.isclass(model):
        return False
    if has_fit_and_sample(model):
        return True
    if not is_function(model):
        return False
    required = [argument.name for argument in positional(model) if argument.default is argument.empty]
    return len(required) == 1 or (len(required) == 2 and required[1] not in LABELS)


def is_generator(model: Any, has_labels: bool) -> bool:
    """Tell whether this is a generator: without labels what can be one; with them what takes none, which is refused."""
    if has_labels and is_function(model):
        required = [argument.name for argument in positional(model) if argument.default is argument.empty]
        return len(required) == 2 and required[1] == "seed"
    return isinstance(model, Generator) or (not has_labels and generates(model))


@dataclass(frozen=True)
class SyntheticFiles(KnownByRecipe):
    """The files of a generator: it is fitted for each row of a game, and every record is compared with its files."""

    generator: Generator
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)  # keywords of a function that fits
    chunk: int = 1
    dtype: str = "float64"  # of the store: distances are compared with 0 and with each other
    encoding: Encoding | None = None  # of all records of the audit; of those observed where nobody has read them
    family: ClassVar[str] = "generator"  # for advice on how to reveal less

    def __post_init__(self) -> None:
        if self.parameters and has_fit_and_sample(self.generator.fit):
            raise ValueError(f"{name_of(self.generator.fit)} is an object: set its parameters where it is made")
        if not self.name:
            object.__setattr__(self, "name", name_of(self.generator.fit))

    @property
    def description(self) -> str:
        """The name of the generator, with its parameters and what is published."""
        said = dict(self.parameters)
        if self.generator.rows is not None:
            said["rows"] = self.generator.rows
        if self.generator.files > 1:
            said["files"] = self.generator.files
        return f"{name_of(self.generator.fit)}({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that these files can give."""
        return OF_ROWS if self.generator.reference is None else (*OF_ROWS, *WITH_REFERENCE)

    @property
    def is_seeded(self) -> bool:
        """Whether the generator takes a seed: in fit, or in fit or sample of an object."""
        fit = self.generator.fit
        if has_fit_and_sample(fit):
            return takes_seed(fit.fit) or takes_seed(fit.sample)
        return takes_seed(fit, self.parameters)

    def _description(self) -> Mapping[str, Any]:
        if not self.is_seeded:
            raise NoCanonicalForm(words(Term("unseeded_generator")))
        reference = self._reference()
        return {
            "generated by": canonical(self.generator.fit),
            "parameters": canonical(self.parameters),
            "rows": self.generator.rows,
            "files": self.generator.files,
            "reference": None if reference is None else from_arrays(reference).digest,
            "versions": versions({"scikit-learn", "numpy", "scipy", "pandas"}),
        }

    def for_points(self, points: Points) -> SyntheticFiles:
        """Read the columns of all records, so that every file is compared by the same ranges and levels."""
        if points.y is not None:
            raise ValueError(
                f"{self.name}: a generator learns a table as it is: leave the label (y, --label) out, or give it as a "
                "column of X"
            )
        encoding = Encoding.of(as_given(points.x))
        reference = self._reference()
        if reference is not None:
            encoding.encode(reference, "the reference")  # refuses columns that the records lack
        return replace(self, encoding=encoding)

    @property
    def owner_note(self) -> str:
        """Nothing that quotes a value."""
        return ""

    def prepared(self, points: Points) -> str:
        """Say which columns are not compared, and whether the files can be made again."""
        encoding = self.encoding or Encoding.of(as_given(points.x))
        notes = []
        if encoding.left_out:
            notes.append(words(Term("identifiers_not_compared", names=some(encoding.left_out))))
        if not self.is_seeded:
            notes.append(words(Term("unseeded_generator")))
        return ". ".join(f"{self.name}: {note}" for note in notes)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N"]]:
        """Fit the generator for each row, draw its files, and score every record by the rows of all files."""
        encoding = self.encoding or Encoding.of(as_given(points.x))
        records = encoding.encode(as_given(points.x))
        reference = self._reference()
        encoded_reference = None if reference is None else encoding.encode(reference)
        rows = []
        for inside, seed in zip(member, seeds, strict=True):
            chosen = points.take(np.flatnonzero(inside))
            synthetic = self._published(chosen, encoding, int(seed))
            rows.append(scores(records, synthetic, want, encoded_reference, points.group))
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def _published(self, chosen: Points, encoding: Encoding, seed: int) -> Encoded:
        """Return the rows of all files of one fitted generator."""
        n_rows = self.generator.rows or len(chosen)
        sample = self._fitted(chosen, integer(seed, "fit"))
        files = []
        for file in range(self.generator.files):
            rows = self._call("sample", sample, n_rows, integer(seed, "sample", file))
            files.append(self._encoded(rows, n_rows, encoding))
        return functools.reduce(Encoded.followed_by, files)

    def _fitted(self, chosen: Points, seed: int) -> Callable[..., Any]:
        """Fit the generator, and return the function that samples."""
        x = as_given(chosen.x)
        fit = self.generator.fit
        if has_fit_and_sample(fit):
            fitted = copy.deepcopy(fit)
            self._call("fit", fitted.fit, x, seed)
        else:
            fitted = self._call("fit", fit, x, seed, **self.parameters)
        sample = getattr(fitted, "sample", fitted)
        if not callable(sample):
            raise ValueError(
                f"{self.name} returns {_shown(fitted)}; return a generator, sample(n, seed) or an object with it, "
                f"{OR_SCORE}"
            )
        return sample

    def _call(self, what: str, function: Callable[..., Any], argument: Any, seed: int, **parameters: Any) -> Any:
        """Call a function of the user's with its seed, if it takes one."""
        seeded = (seed,) if takes_seed(function, parameters) else ()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function(argument, *seeded, **parameters)
        except Exception as error:  # it may raise anything
            raise RuntimeError(f"{self.name}: {what} fails: {first_line(error)}") from error

    def _encoded(self, rows: Any, n_rows: int, encoding: Encoding) -> Encoded:
        """Encode the rows of a file, or say what was returned in their place."""
        if not isinstance(rows, pd.DataFrame | np.ndarray):
            raise ValueError(
                f"{self.name}: sample returns {_shown(rows)}; return a frame or an array with a row for each record"
            )
        if len(rows) != n_rows:
            raise ValueError(f"{self.name}: sample returns {len(rows):,} rows, asked for {n_rows:,}")
        try:
            return encoding.encode(rows)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None

    def _reference(self) -> Any:
        reference = self.generator.reference
        return read(reference).points.x if isinstance(reference, str | os.PathLike) else reference


def takes_seed(function: Any, parameters: Mapping[str, Any] | None = None) -> bool:
    """Tell whether the second argument of fit or sample takes a seed.

    >>> takes_seed(lambda X, seed: None), takes_seed(lambda n, rng_seed=0: None), takes_seed(lambda X, y=None: None)
    (True, True, False)
    """
    arguments = positional(function, parameters or {})
    if len(arguments) < 2:
        return False
    second = arguments[1]
    return second.default is second.empty or "seed" in second.name or second.name == "random_state"


def has_fit_and_sample(model: Any) -> bool:
    """Tell an object with fit and sample from a function."""
    return callable(getattr(model, "fit", None)) and callable(getattr(model, "sample", None))


def _shown(value: Any) -> str:
    """Say what was given in place of something else."""
    if value is None:
        return "nothing"
    if inspect.isroutine(value):
        return f"the function {value.__name__}{inspect.signature(value)}"
    return f"a {value.__name__} (a class)" if inspect.isclass(value) else f"a {type(value).__name__}"
