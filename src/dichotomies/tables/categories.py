"""`CategoryFeatures`: a feature of zeros and ones for every category of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import LabelArray, Matrix
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, expect

#: Categories with a feature of their own, the most frequent ones.
MAX_CATEGORIES = 1000
#: Rows that a category needs for a feature of its own.
_LEAST_ROWS = 2


@savable("category-features", column=str, categories=Array("string", "n_categories"))
@dataclass(frozen=True)
class CategoryFeatures:
    """A feature for every category, 1 where a row has it, and one for all other categories.

    Categories of a single training row, and those beyond the 1,000 most frequent, share the last feature with
    categories that did not occur in training. No value is a category, too, if it occurred.

    Attributes
    ----------
    column : str
        The name of the column.
    categories : ndarray of str of shape (n_categories,)
        Categories with a feature of their own, sorted.

    Examples
    --------
    >>> from dichotomies.tables import CategoryFeatures
    >>> features = CategoryFeatures.fit("city", ["Bonn", "Ulm", "Bonn", "Ulm", "Aachen"])
    >>> features.categories.tolist()
    ['Bonn', 'Ulm']
    >>> features.matrix(["Ulm", "Paris"]).toarray()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    column: str
    categories: LabelArray

    @classmethod
    def fit(cls, column: str, texts: Sequence[str]) -> CategoryFeatures:
        """Find the categories that are frequent enough; all of them where none is."""
        counts = Counter(text.strip() for text in texts)
        frequent = [name for name, rows in counts.most_common(MAX_CATEGORIES) if rows >= _LEAST_ROWS]
        return cls(column, np.array(sorted(frequent or [*counts][:MAX_CATEGORIES]), dtype=str))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.categories) + 1

    @property
    def description(self) -> str:
        """One phrase for users."""
        return f"{len(self.categories):,} categories"

    def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the features of some rows, a CSR matrix of shape (n_rows, n_categories + 1)."""
        others = len(self.categories)
        codes = np.array([self._place.get(text.strip(), others) for text in texts], dtype=np.int32)
        parts = (np.ones(len(codes)), codes, np.arange(len(codes) + 1, dtype=np.int32))
        return csr_array(parts, shape=(len(codes), self.n_features))

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise if a category occurs twice; see `dichotomies.persistence.checks`."""
        expect(len(self._place) == names["n_categories"], "every category occurs once")

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.categories.tolist())}
