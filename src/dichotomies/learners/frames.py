"""Categories of data frames: as numbers, and for clones at the nodes back in the user's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags

from dichotomies._common.typing import FloatArray, IntArray, LabelArray
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import Array, Each, Optional, Part, Such, expect


@savable(
    "frame-columns",
    names=Each(str, "n_columns"),
    dtypes=Each(str, "n_columns"),
    values=Each(Optional(Such(lambda it: np.ndim(it) == 1, "is a list")), "n_columns"),
)
@dataclass(frozen=True)
class FrameColumns:
    """Columns of a pandas data frame, some of which are categories or words.

    Attributes
    ----------
    names, dtypes : tuple of str
        Name and type of each column.
    values : tuple of ndarray or None
        Categories of each column, whose positions stand for them in an array of numbers; None for numbers.
    """

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    values: tuple[LabelArray | None, ...]

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Return the columns of a pandas data frame with categories or words; None for anything else."""
        if not (hasattr(X, "iloc") and hasattr(X, "columns")):
            return None
        values = tuple(_values(X[name]) for name in X.columns)
        if all(each is None for each in values):
            return None
        return cls(tuple(map(str, X.columns)), tuple(str(kind) for kind in X.dtypes), values)

    def numbers(self, X: Any) -> FloatArray:
        """Return the rows of a frame as an array; NaN for a gap, or a category that is not known."""
        missing = [name for name in self.names if name not in map(str, getattr(X, "columns", ()))]
        if missing:
            raise ValueError(
                f"X should be a data frame with the columns of the training rows, but lacks {missing[0]!r}."
            )
        columns = dict(zip(map(str, X.columns), X.columns, strict=True))
        out = np.empty((len(X), len(self.names)))
        for place, (name, values) in enumerate(zip(self.names, self.values, strict=True)):
            column = X[columns[name]]
            given = column if values is None else column.map(_places(values))
            out[:, place] = given.to_numpy(np.float64, na_value=np.nan)
        return out

    def frame(self, numbers: FloatArray) -> Any:
        """Return rows of such an array as a data frame of the same types."""
        columns = {
            name: _restored(numbers[:, place], self.dtypes[place], self.values[place])
            for place, name in enumerate(self.names)
        }
        return _pandas().DataFrame(columns)

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - as of all savable objects
        """Raise if two columns have one name; see `dichotomies.persistence.checks`."""
        expect(len(set(self.names)) == len(self.names), "the columns of a frame have different names")


def _pandas() -> Any:
    """Return pandas, which was imported by whoever made the data frame."""
    return import_module("pandas")


def _values(column: Any) -> LabelArray | None:
    """Return the categories or different words of a column, None for numbers."""
    if hasattr(column, "cat"):
        return np.asarray(column.cat.categories)
    if column.dtype.kind in "OUS" or str(column.dtype).startswith(("str", "string")):
        return np.asarray(sorted(column.dropna().unique(), key=str))
    return None


def _places(values: LabelArray) -> dict[Any, int]:
    return {value: place for place, value in enumerate(values.tolist())}


def _restored(numbers: FloatArray, dtype: str, values: LabelArray | None) -> Any:
    pd = _pandas()
    if values is None:
        whole = np.isfinite(numbers).all() and dtype not in ("float64", "Float64")
        return pd.Series(numbers).astype(dtype) if whole else numbers
    codes = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
    column = pd.Categorical.from_codes(codes, categories=pd.Index(values))
    return column if dtype == "category" else pd.Series(column).astype(dtype)


@savable(
    "in-frame",
    Estimator(),
    estimator_=Such(lambda it: hasattr(it, "classes_"), "is fitted"),
    classes_=Array("label", "n_classes"),
    columns=Part(FrameColumns),
)
class InFrame(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that gets arrays, and hands them on as data frames with the user's columns.

    Parameters
    ----------
    estimator : scikit-learn classifier
    columns : FrameColumns
    """

    def __init__(self, estimator: Any, columns: FrameColumns) -> None:
        self.estimator = estimator
        self.columns = columns

    @property
    def shown(self) -> Any:
        """The classifier that descriptions name."""
        return self.estimator

    def fit(self, X: FloatArray, y: Any, sample_weight: Any = None) -> Self:
        """Fit a clone of the classifier to a data frame."""
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(self.columns.frame(X), y, **weight)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probabilities of the classifier."""
        proba: FloatArray = self.estimator_.predict_proba(self.columns.frame(X))
        return proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


@savable(
    "frame-categories",
    positions=Array("integer", "n_columns", within=(0, "n_features")),
    values=Each(Such(lambda it: isinstance(it, np.ndarray) and it.ndim == 1, "are labels"), "n_columns"),
)
@dataclass(frozen=True)
class FrameCategories:
    """The categorical columns of a data frame, and their categories.

    Attributes
    ----------
    positions : (n_columns,)
        Positions of the columns, ascending.
    values : list of arrays
        Categories of each of them; the number of a category is its position.
    """

    positions: IntArray
    values: list[LabelArray]

    @classmethod
    def of(cls, X: Any, wanted: Sequence[Any] | str | None) -> FrameCategories | None:
        """Find the categories of a data frame of pandas or polars; None if `X` is anything else.

        Parameters
        ----------
        X : data frame
        wanted : "from_dtype", array of bool, int or str, or None
            The categorical columns; see `HistGradientBoostClassifier`.
        """
        if not hasattr(X, "columns") or wanted is None:
            return None
        if isinstance(wanted, str):
            places = np.flatnonzero([_is_category(kind) for kind in X.dtypes])
        else:
            places = positions(wanted, X.shape[1], list(X.columns))
        if not len(places):
            return None
        return cls(places, [_distinct(X[X.columns[place]]) for place in places])

    def numbered(self, X: Any) -> Any:
        """The frame with the numbers of categories in their place; NaN for other values and missing ones."""
        if not hasattr(X, "columns") or self.positions[-1] >= X.shape[1]:
            return X  # to be refused by whoever checks the columns
        is_polars = hasattr(X, "with_columns")
        X = X if is_polars else X.copy()
        for place, values in zip(self.positions, self.values, strict=True):
            name, number = X.columns[place], _places(values)
            codes = np.array([number.get(value, np.nan) for value in _plain(X[name])], dtype=np.float64)
            if is_polars:
                X = X.with_columns(type(X[name])(name, codes))
            else:
                X[name] = codes
        return X

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - as of all savable objects
        """Raise unless the columns are in order; see `dichotomies.persistence.checks`."""
        expect(len(self.positions) > 0 and bool((np.diff(self.positions) > 0).all()), "columns are in order")


def positions(wanted: Sequence[Any], n_features: int, names: Sequence[Any] | None = None) -> IntArray:
    """Positions of columns that are given by a mask, by positions or by names."""
    given = np.asarray(wanted)
    if given.size == 0:
        return np.empty(0, dtype=np.intp)
    if given.dtype.kind == "b":
        if given.shape != (n_features,):
            raise ValueError(
                f"categorical_features has {given.size} entries, but X has {n_features} features; a mask has "
                "one each."
            )
        return np.flatnonzero(given)
    if given.dtype.kind in "iu":
        if given.min() < 0 or given.max() >= n_features:
            raise ValueError(
                f"categorical_features must be from 0 to {n_features - 1}, got {given.tolist()}."
            )
        return np.unique(given)
    if names is None:
        raise ValueError(
            f"categorical_features has names, {given.tolist()}, but X is no data frame; give positions."
        )
    unknown = [name for name in given.tolist() if name not in names]
    if unknown:
        raise ValueError(f"categorical_features has {unknown}, but X has no such columns.")
    return np.unique([list(names).index(name) for name in given.tolist()])


def _is_category(kind: Any) -> bool:
    """True for the categorical types of pandas and polars."""
    return str(kind) == "category" or type(kind).__name__ in ("Categorical", "Enum")


def _plain(column: Any) -> list[Any]:
    """Values of a column as Python objects; missing ones in any form."""
    values: list[Any] = column.tolist() if hasattr(column, "tolist") else column.to_list()
    return values


def _distinct(column: Any) -> LabelArray:
    """Values of a column that occur, sorted."""
    known = {value for value in _plain(column) if value is not None and value == value}
    distinct: LabelArray = np.unique(np.array(list(known)))
    return distinct
