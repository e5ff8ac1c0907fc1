"""Class probabilities of any classifier, a chunk of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from dichotomies.diagnostics.evaluation import checked_weight, codes_of
from dichotomies.inference import chunk_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dichotomies._typing import FloatArray, IntArray, LabelArray, Matrix


class Predictions:
    """Class probabilities of rows with their classes and weights, to be read in chunks.

    Parameters
    ----------
    chunks : iterator of (slice, ndarray of shape (rows, n_classes))
    classes : ndarray of shape (n_classes,)
        The labels of the columns.
    y : array of shape (n_rows,)
        The labels of the rows.
    sample_weight : array of shape (n_rows,), optional
    """

    def __init__(
        self, chunks: Iterator[tuple[slice, FloatArray]], classes: LabelArray, y: Any, sample_weight: Any
    ) -> None:
        self._chunks = chunks
        self.classes = classes
        self.codes: IntArray = codes_of(y, classes, _num_samples(y))
        self.weight = checked_weight(sample_weight, self.codes)

    @classmethod
    def of_estimator(
        cls, clf: Any, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Predictions:
        """What a fitted classifier says."""
        check_is_fitted(clf)
        if _num_samples(X) != _num_samples(y):
            raise ValueError(f"X has {_num_samples(X)} rows, but y has {_num_samples(y)} labels.")
        return cls(_ask(clf, X), np.asarray(clf.classes_), y, sample_weight)

    @classmethod
    def given(
        cls,
        y: npt.ArrayLike,
        proba: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Predictions:
        """Probabilities that are there already; the columns are by default the sorted labels of `y`."""
        proba = np.asarray(proba)
        classes = np.unique(np.asarray(y)) if labels is None else np.asarray(labels)
        if proba.shape != (_num_samples(y), len(classes)):
            raise ValueError(
                f"proba must have a row for each of the {_num_samples(y)} labels and a column for each of "
                f"the {len(classes)} classes, got shape {proba.shape}; pass labels= where not every class "
                "occurs in y."
            )
        return cls(_pieces(proba, 0, chunk_rows(len(classes))), classes, y, sample_weight)

    def __iter__(self) -> Iterator[tuple[FloatArray, IntArray, FloatArray]]:
        """Probabilities, class codes and weights of one chunk after another."""
        for rows, proba in self._chunks:
            yield proba, self.codes[rows], self.weight[rows]


def _ask(clf: Any, X: Matrix) -> Iterator[tuple[slice, FloatArray]]:
    """Ask for enough rows at a time to keep all workers busy; hand over pieces of always the same size."""
    if issparse(X):
        X = cast("Any", X).tocsr()
    piece = chunk_rows(len(clf.classes_))
    step = piece * max(1, effective_n_jobs(getattr(clf, "n_jobs", None)))
    for begin in range(0, _num_samples(X), step):
        rows = slice(begin, min(begin + step, _num_samples(X)))
        yield from _pieces(np.asarray(clf.predict_proba(_safe_indexing(X, rows))), begin, piece)


def _pieces(proba: Any, begin: int, size: int) -> Iterator[tuple[slice, FloatArray]]:
    for i in range(0, len(proba), size):
        piece = proba[i : i + size]
        yield slice(begin + i, begin + i + len(piece)), np.asarray(piece, dtype=np.float64)
