"""Choice of the learner: the fastest one that gives the results of one clone per node."""

from __future__ import annotations

from typing import Any

from dichotomies.learners.base import LEARNERS, Learner, Unsupported
from dichotomies.learners.generic import GenericLearner


def choose(estimator: Any, name: str = "auto", *, calibrated: bool = False) -> Learner:
    """Choose the learner for an estimator.

    Parameters
    ----------
    estimator : scikit-learn classifier
    name : str
        "auto" takes the learner that trains estimators of this class, or else one clone per node, with the
        reason in its description. Any other name requires that learner, and raises if it cannot train it.
    calibrated : bool
        True if scores will be calibrated; otherwise the estimator must have `predict_proba`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from dichotomies.learners import choose
    >>> choose(SVC(), calibrated=True).description
    'clones: one SVC per node, because there is no fast path for SVC'
    """
    if name == "clones":
        return GenericLearner(estimator, calibrated=calibrated)
    try:
        return _fast(estimator, name)
    except Unsupported as unsupported:
        reason = str(unsupported)
    if name != "auto":
        raise ValueError(f"learner={name!r} cannot train {type(estimator).__name__}, because {reason}.")
    return GenericLearner(estimator, calibrated=calibrated, reason=reason)


def _fast(estimator: Any, name: str) -> Learner:
    kind, trained = type(estimator), []
    for learner in map(LEARNERS.get, LEARNERS.names() if name == "auto" else [name]):
        if kind in learner.trains.values():
            chosen: Learner = learner.recognise(estimator)
            return chosen
        trained += [each.__name__ for each in learner.trains.values()]
    if name == "auto":
        raise Unsupported(f"there is no fast path for {kind.__name__}")
    raise Unsupported(f"it trains only {', '.join(trained)}; learner='auto' finds one that does")
