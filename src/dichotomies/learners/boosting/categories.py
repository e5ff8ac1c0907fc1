"""Categorical columns of data frames: which they are, and their values as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Such, expect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import IntArray, LabelArray


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
        for place, values in zip(self.positions, self.values, strict=True):
            name = X.columns[place]
            number = {value: i for i, value in enumerate(values.tolist())}
            codes = np.array([number.get(value, np.nan) for value in _plain(X[name])], dtype=np.float64)
            if hasattr(X, "assign"):
                X = X.assign(**{name: codes}) if isinstance(name, str) else _with_column(X, name, codes)
            else:
                X = X.with_columns(type(X[name])(name, codes))
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


def _with_column(X: Any, name: Any, codes: Any) -> Any:
    X = X.copy()
    X[name] = codes
    return X
