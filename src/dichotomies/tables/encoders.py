"""How columns become features: numbers without gaps, categories as zeros and ones, texts by TF-IDF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from dichotomies._common.typing import BoolArray, FloatArray, LabelArray, Matrix
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Such, expect
from dichotomies.tables.errors import TableFileError


@savable(
    "number-features",
    fill=Array("float", "n_columns"),
    scale=Array("float", "n_columns"),
    has_gaps=Array("boolean", "n_columns"),
)
@dataclass(frozen=True)
class NumberFeatures:
    """Columns of numbers, divided by their standard deviations, with gaps filled by medians.

    A column with gaps in the training rows has a second feature, 1 where there is no number. Columns are not
    centred: zeros and signs keep their meaning, and a linear classifier has an intercept.

    Attributes
    ----------
    fill : ndarray of shape (n_columns,)
        Median of each column; 0 if it has no values.
    scale : ndarray of shape (n_columns,)
        Standard deviation of each column without its gaps; 1 if it is constant, and without scaling.
    has_gaps : ndarray of shape (n_columns,)
        True for columns with gaps in the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.tables import NumberFeatures
    >>> features = NumberFeatures.fit(np.array([[1.0, 0.0], [3.0, np.nan], [5.0, 8.0]]), scaled=False)
    >>> features.matrix(np.array([[np.nan, np.nan]]))
    array([[3., 4., 1.]])
    """

    fill: FloatArray
    scale: FloatArray
    has_gaps: BoolArray

    @classmethod
    def fit(cls, X: FloatArray, weight: FloatArray | None = None, *, scaled: bool = True) -> NumberFeatures:
        """Find medians and standard deviations."""
        fill = np.array([_median(column, weight) for column in X.T])
        scale = np.ones(X.shape[1])
        if scaled:
            with np.errstate(invalid="ignore"):  # of columns without values
                scale = StandardScaler(with_mean=False).fit(X, sample_weight=weight).scale_
        return cls(fill, np.where(np.isfinite(scale), scale, 1.0), np.asarray(np.isnan(X).any(axis=0)))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.fill) + int(self.has_gaps.sum())

    def matrix(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the features of some rows."""
        n = len(self.fill)
        out = np.empty((len(X), self.n_features)) if out is None else out
        for column in range(n):
            values = X[:, column]
            out[:, column] = np.where(np.isnan(values), self.fill[column], values) / self.scale[column]
        for place, column in enumerate(np.flatnonzero(self.has_gaps).tolist(), n):
            out[:, place] = np.isnan(X[:, column])
        return out

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - as of all savable objects
        """Raise unless all numbers are finite; see `dichotomies.persistence.checks`."""
        expect(bool(np.isfinite(self.fill).all()), "the values of gaps are finite")
        expect(bool((np.isfinite(self.scale) & (self.scale > 0)).all()), "scales are positive")


def _median(column: FloatArray, weight: FloatArray | None) -> float:
    """Return the median of the numbers there are; 0 if there are none."""
    known = ~np.isnan(column) if weight is None else ~np.isnan(column) & (weight > 0)
    if not known.any():
        return 0.0
    if weight is None:
        return float(np.median(column[known]))
    order = np.argsort(column[known])
    values, below = column[known][order], np.cumsum(weight[known][order])
    middle = (
        np.searchsorted(below, below[-1] / 2, side="left"),
        np.searchsorted(below, below[-1] / 2, "right"),
    )
    return float(values[np.minimum(middle, len(values) - 1)].mean())


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


#: Kinds of terms: words and pairs of neighbouring words, or 2 to 4 characters within a word.
NGRAMS: dict[str, dict[str, Any]] = {
    "word": {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    "char": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}

#: Maximum size of the vocabulary; the most frequent terms are kept.
MAX_TERMS = 200_000


@savable(
    "text-features",
    column=str,
    ngrams=Such(NGRAMS.__contains__, "are words or characters"),
    terms=Array("string", "n_terms"),
    idf=Array("float", "n_terms"),
)
@dataclass(frozen=True)
class TextFeatures:
    """TF-IDF features of a text column, in rows of unit Euclidean length.

    A term that occurs n times in a text has weight 1 + log(n), times its inverse document frequency.

    Attributes
    ----------
    column : str
        The name of the column.
    ngrams : {"word", "char"}
        Kind of terms: words and pairs of neighbouring words, or 2 to 4 characters within a word.
    terms : ndarray of str of shape (n_terms,)
        The vocabulary, sorted.
    idf : ndarray of shape (n_terms,)
        The inverse document frequency of each term.

    Examples
    --------
    >>> from dichotomies.tables import TextFeatures
    >>> features = TextFeatures.fit("title", ["data engineer", "data analyst"], "word")
    >>> features.terms.tolist()
    ['analyst', 'data', 'data analyst', 'data engineer', 'engineer']
    >>> features.matrix(["engineer"]).toarray()
    array([[0., 0., 0., 0., 1.]])
    """

    column: str
    ngrams: str
    terms: LabelArray
    idf: FloatArray

    @classmethod
    def fit(cls, column: str, texts: Sequence[str], ngrams: str = "word") -> TextFeatures:
        """Build the vocabulary from some texts."""
        vectorizer = _vectorizer(ngrams, max_features=MAX_TERMS)
        try:
            vectorizer.fit(texts)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise TableFileError(f"The text column {column!r} has no words in any row.") from error
        return cls(column, ngrams, np.array(vectorizer.get_feature_names_out(), dtype=str), vectorizer.idf_)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.terms)

    @property
    def description(self) -> str:
        """One phrase for users."""
        return f"{len(self.terms):,} term{'' if len(self.terms) == 1 else 's'}"

    def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the features of some texts, a CSR matrix of shape (n_texts, n_terms)."""
        return csr_array(self._fitted.transform(texts))

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise if a term occurs twice; see `dichotomies.persistence.checks`."""
        expect(len(set(self.terms.tolist())) == names["n_terms"], "every term occurs once")

    @cached_property
    def _fitted(self) -> TfidfVectorizer:
        vectorizer = _vectorizer(self.ngrams, vocabulary=self.terms.tolist())
        vectorizer.idf_ = self.idf
        return vectorizer


def _vectorizer(ngrams: str, **settings: Any) -> TfidfVectorizer:
    if ngrams not in NGRAMS:
        raise TableFileError(f"There are no n-grams named {ngrams!r}; choose from {', '.join(NGRAMS)}.")
    return TfidfVectorizer(sublinear_tf=True, **NGRAMS[ngrams], **settings)
