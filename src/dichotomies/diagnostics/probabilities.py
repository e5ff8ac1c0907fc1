"""Class probabilities of any classifier, in chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils.validation import _num_samples, check_is_fitted

from dichotomies._common.chunks import chunk_rows, predictions, row_slices
from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._common.validation import row_weights
from dichotomies.metrics import _input


class Predictions:
    """Class probabilities of rows with their classes and weights, iterated over in chunks.

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
        self.weight = row_weights(sample_weight, len(self.codes))

    @classmethod
    def of_estimator(
        cls, clf: Any, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Predictions:
        """Predict with a fitted classifier."""
        check_is_fitted(clf)
        if _num_samples(X) != _num_samples(y):
            raise ValueError(f"X has {_num_samples(X)} rows, but y has {_num_samples(y)} labels.")
        return cls(_predicted_chunks(clf, X), np.asarray(clf.classes_), y, sample_weight)

    @classmethod
    def given(
        cls,
        y: npt.ArrayLike,
        proba: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Predictions:
        """Take given probabilities, or one score per row, that of the second of two classes.

        The columns are by default the sorted labels of `y`.
        """
        matrix = _input.checked_matrix(proba)
        classes = _input.column_labels(y, proba, labels)
        _input.check_same_length(y, matrix)
        return cls(_pieces(matrix, 0, chunk_rows(len(classes))), classes, y, sample_weight)

    def __iter__(self) -> Iterator[tuple[FloatArray, IntArray, FloatArray]]:
        """Iterate over the probabilities, class codes and weights of each chunk."""
        for rows, proba in self._chunks:
            yield proba, self.codes[rows], self.weight[rows]


def _predicted_chunks(clf: Any, X: Matrix) -> Iterator[tuple[slice, FloatArray]]:
    """Predict enough rows at a time to keep all workers busy; yield chunks of a fixed size."""
    piece = chunk_rows(len(clf.classes_))
    step = piece * max(1, effective_n_jobs(getattr(clf, "n_jobs", None)))
    for rows, proba in predictions(clf.predict_proba, X, step):
        yield from _pieces(np.asarray(proba), rows.start, piece)


def _pieces(proba: Any, begin: int, size: int) -> Iterator[tuple[slice, FloatArray]]:
    for rows in row_slices(len(proba), size):
        piece = np.asarray(proba[rows], dtype=np.float64)
        _input.check_proba(piece.min(axis=1), piece.sum(axis=1), proba.dtype, begin + rows.start)
        yield slice(begin + rows.start, begin + rows.stop), piece
