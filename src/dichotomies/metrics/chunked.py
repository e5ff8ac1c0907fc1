"""Evaluation of a fitted classifier in chunks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from dichotomies._common.chunks import predictions, rows_within
from dichotomies._common.typing import Matrix
from dichotomies.metrics.evaluation import Evaluation

#: Bytes of class probabilities predicted at a time: enough for several of the classifier's own chunks.
_CHUNK_BYTES = 128 * 2**20
_MAX_ROWS = 65_536


def evaluate(
    classifier: Any,
    X: Matrix,
    y: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    top_k: Sequence[int] = (5,),
    n_bins: int = 20,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    random_state: int = 0,
    chunk_rows: int | None = None,
) -> Evaluation:
    """Evaluate a fitted classifier: all metrics with confidence intervals.

    Probabilities are predicted in chunks and reduced to a few numbers per row, so memory does not grow with
    rows times classes.

    Parameters
    ----------
    classifier : fitted classifier
        Any classifier with ``classes_`` and ``predict_log_proba`` or ``predict_proba``.
    X : array, sparse matrix or data frame of shape (n_rows, n_features)
        Held-out rows.
    y : array of shape (n_rows,)
        Their labels. Raises for labels that are not in ``classes_``.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.
    groups : array of shape (n_rows,), optional
        Group of each row, such as the person it comes from; the bootstrap then draws whole groups.
    top_k : sequence of int, default=(5,)
        Values of k for top-k accuracy and calibration.
    n_bins : int, default=20
        Number of bins for the calibration errors.
    n_resamples : int, default=200
        Number of bootstrap resamples.
    confidence_level : float, default=0.95
        Confidence level of the intervals.
    random_state : int, default=0
        Seed of the bootstrap.
    chunk_rows : int, optional
        Rows per chunk; by default as many as give 128 MiB of probabilities.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.metrics import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(random_state=0).fit(X[::2], y[::2])
    >>> evaluation = evaluate(clf, X[1::2], y[1::2], top_k=[2])
    >>> round(evaluation.metrics["top_2_accuracy"], 2)
    1.0
    """
    if not hasattr(classifier, "classes_"):
        raise ValueError(f"{type(classifier).__name__} has no classes_: evaluate needs a fitted classifier.")
    is_log = hasattr(classifier, "predict_log_proba")
    if not (is_log or hasattr(classifier, "predict_proba")):
        raise TypeError(
            f"{type(classifier).__name__} gives no probabilities: evaluate needs predict_log_proba or "
            "predict_proba."
        )
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be a whole number, 1 or more, got {chunk_rows}.")
    predict = classifier.predict_log_proba if is_log else classifier.predict_proba
    step = chunk_rows or rows_within(_CHUNK_BYTES, len(classifier.classes_), at_most=_MAX_ROWS)
    return Evaluation.from_chunks(
        y,
        (predicted for _, predicted in predictions(predict, X, step)),
        labels=classifier.classes_,
        sample_weight=sample_weight,
        groups=groups,
        is_log=is_log,
        top_k=top_k,
        n_bins=n_bins,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        random_state=random_state,
    )
