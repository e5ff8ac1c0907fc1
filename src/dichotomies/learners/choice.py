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
        "auto" takes the learner that recognises the estimator, or else one clone per node, with the reason
        in its description. Any other name requires that learner, and raises if it cannot train the estimator.
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
    if name != "auto":
        return _by_name(estimator, name)
    reason = f"there is no fast path for {type(estimator).__name__}"
    for other in sorted(set(LEARNERS.names()) - {"clones"}):
        try:
            learner = _recognise(other, estimator)
        except Unsupported as unsupported:
            reason = str(unsupported)
            break
        if learner is not None:
            return learner
    return GenericLearner(estimator, calibrated=calibrated, reason=reason)


def _by_name(estimator: Any, name: str) -> Learner:
    kind = type(estimator).__name__
    try:
        learner = _recognise(name, estimator)
    except Unsupported as unsupported:
        raise ValueError(f"learner={name!r} cannot train {kind}, because {unsupported}.") from None
    if learner is None:
        raise ValueError(f"learner={name!r} does not train {kind}; learner='auto' finds one that does.")
    return learner


def _recognise(name: str, estimator: Any) -> Learner | None:
    learner: Learner | None = LEARNERS.get(name).recognise(estimator)
    return learner
