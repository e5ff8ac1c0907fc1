"""Proper scoring rules and accuracies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dichotomies.metrics import _input
from dichotomies.metrics.facts import RowFacts


def negative_log_likelihood(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    clip: float | None = None,
    is_log: bool = False,
) -> float:
    """Negative log-likelihood (log-loss): mean of -log p of the true class, in nats.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        The true labels.
    y_proba : array of shape (n_rows, n_classes) or (n_rows,)
        Class probabilities, or the probability of the second of two classes.
    labels : array of shape (n_classes,), optional
        The labels of the columns; by default the sorted labels that occur in `y_true`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.
    clip : float, optional
        Lower bound on probabilities; 1e-15 gives the numbers of the paper. By default nothing is clipped,
        and a true class of probability 0 makes the result infinite.
    is_log : bool, default=False
        True if `y_proba` holds log-probabilities, which do not underflow.

    Returns
    -------
    float
        From 0 (certain and right) to infinity.

    Examples
    --------
    >>> from dichotomies.metrics import negative_log_likelihood
    >>> proba = [[0.8, 0.2], [0.0, 1.0]]
    >>> round(negative_log_likelihood(["a", "b"], proba), 3)
    0.112
    >>> negative_log_likelihood(["b", "a"], proba)
    inf
    >>> round(negative_log_likelihood(["b", "a"], proba, clip=1e-15), 3)
    18.074
    """
    facts = RowFacts.from_predictions(
        y_true, y_proba, labels=labels, sample_weight=sample_weight, is_log=is_log
    )
    return nll_of(facts, clip)


def brier_score(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    scale_by_half: bool = False,
) -> float:
    """Brier score: mean squared distance between the class probabilities and the one-hot truth.

    It sums over *all* classes, as in Brier's definition. scikit-learn's `brier_score_loss` halves it for two
    classes by default; here it is halved only on request, so that problems with different numbers of classes
    are comparable.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight
        See `negative_log_likelihood`.
    scale_by_half : bool, default=False
        Halve the score, so that it lies between 0 and 1.

    Returns
    -------
    float
        From 0 (certain and right) to 2 (certain and wrong).

    Examples
    --------
    >>> from dichotomies.metrics import brier_score
    >>> round(brier_score(["a", "b"], [[0.8, 0.2], [0.4, 0.6]]), 3)
    0.2
    """
    facts = RowFacts.from_predictions(y_true, y_proba, labels=labels, sample_weight=sample_weight)
    return facts.mean(facts.brier) / (2 if scale_by_half else 1)


def accuracy(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the rows whose most probable class is the true one.

    Ties go to the first column.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight
        See `negative_log_likelihood`.

    Returns
    -------
    float

    Examples
    --------
    >>> from dichotomies.metrics import accuracy
    >>> accuracy(["a", "b"], [[0.8, 0.2], [0.6, 0.4]])
    0.5
    """
    return top_k_accuracy(y_true, y_proba, labels=labels, sample_weight=sample_weight, k=1)


def top_k_accuracy(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    k: int = 5,
) -> float:
    """Share of the rows whose true class is among the k most probable.

    Ties are ordered by column.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight
        See `negative_log_likelihood`.
    k : int, default=5
        Number of classes.

    Returns
    -------
    float

    Examples
    --------
    >>> from dichotomies.metrics import top_k_accuracy
    >>> proba = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]
    >>> top_k_accuracy(["b", "c", "a"], proba, k=2)
    1.0
    """
    _input.check_k(k)
    facts = RowFacts.from_predictions(y_true, y_proba, labels=labels, sample_weight=sample_weight)
    return facts.mean(facts.rank < k)


def nll_of(facts: RowFacts, clip: float | None = None) -> float:
    """Return the mean negative log-likelihood, with probabilities bounded below by `clip`."""
    if clip is not None and not 0 < clip < 1:
        raise ValueError(f"clip must lie between 0 and 1, or be None for no clipping; got {clip}.")
    log_proba = facts.log_proba if clip is None else np.maximum(facts.log_proba, np.log(clip))
    return facts.mean(-log_proba)
