"""A fitted classifier evaluated on any number of rows, a chunk at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.metrics.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, Matrix

#: Bytes of class probabilities asked of a classifier at a time: enough for several of its own chunks.
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
    """Evaluate a fitted classifier: every metric with its confidence interval.

    The classifier is asked for a chunk of rows at a time, and of each row a few numbers are kept, so that
    any number of rows and classes fits into memory.

    Parameters
    ----------
    classifier : fitted classifier
        Any with ``classes_`` and ``predict_log_proba`` or ``predict_proba``.
    X : array, sparse matrix or data frame of shape (n_rows, n_features)
        Rows the classifier was not trained on.
    y : array of shape (n_rows,)
        Their labels. Labels that the classifier does not know are refused, by name.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.
    groups : array of shape (n_rows,), optional
        Rows that belong together, such as those of one person; the intervals then draw whole groups.
    top_k : sequence of int, default=(5,)
        For which k the accuracy and calibration of the k most probable classes are given.
    n_bins : int, default=20
        Number of bins of the calibration errors.
    n_resamples : int, default=200
        How many times rows are drawn for the intervals.
    confidence_level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the intervals.
    chunk_rows : int, optional
        Rows asked for at a time; by default as many as give 128 MiB of probabilities.

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
    return Evaluation.from_chunks(
        y,
        _predicted(predict, X, len(classifier.classes_), chunk_rows),
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


def _predicted(predict: Any, X: Matrix, n_classes: int, chunk_rows: int | None) -> Iterator[FloatArray]:
    """Predictions for one chunk of rows after another."""
    step = chunk_rows or min(_MAX_ROWS, max(1, _CHUNK_BYTES // (8 * n_classes)))
    rows_of = X.iloc if hasattr(X, "iloc") else X.tocsr() if hasattr(X, "tocsr") else X
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    for start in range(0, n_rows, step):
        with np.errstate(divide="ignore"):  # the logarithm of a probability of 0
            chunk = predict(rows_of[start : start + step])
        yield chunk
