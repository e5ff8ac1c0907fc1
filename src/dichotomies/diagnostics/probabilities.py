"""Class probabilities of any classifier, a chunk of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from dichotomies.inference.prediction import chunk_rows
from dichotomies.metrics import _input

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix


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
        self.codes: IntArray = _input.class_codes(y, classes)
        self.weight = _input.row_weights(sample_weight, len(self.codes))

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
        """Probabilities that are there already, or one score per row, that of the second of two classes.

        The columns are by default the sorted labels of `y`.
        """
        matrix = _input.checked_matrix(proba)
        classes = _input.column_labels(y, proba, labels)
        _input.check_same_length(y, matrix)
        return cls(_pieces(matrix, 0, chunk_rows(len(classes))), classes, y, sample_weight)

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
        piece = np.asarray(proba[i : i + size], dtype=np.float64)
        _input.check_proba(piece.min(axis=1), piece.sum(axis=1), proba.dtype, begin + i)
        yield slice(begin + i, begin + i + len(piece)), piece
