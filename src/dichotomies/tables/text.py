"""`TextFeatures`: TF-IDF features of a text column, stored as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Such, expect
from dichotomies.tables.errors import TableFileError

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
