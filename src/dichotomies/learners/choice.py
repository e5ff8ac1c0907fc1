"""Choice of the learner for an estimator, and the input that the estimator accepts."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from dichotomies.learners.base import LEARNERS, Learner, Unsupported

#: Estimators that would convert X to single precision themselves, again at every node; by name, because
#: importing them takes a tenth of a second.
_SINGLE_PRECISION = {"sklearn.tree._classes.BaseDecisionTree", "sklearn.ensemble._forest.ForestClassifier"}


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
        return LEARNERS.create("clones", estimator=estimator, calibrated=calibrated)
    try:
        return _fast(estimator, name)
    except Unsupported as unsupported:
        reason = str(unsupported)
    if name != "auto":
        raise ValueError(f"learner={name!r} cannot train {type(estimator).__name__}, because {reason}.")
    return LEARNERS.create("clones", estimator=estimator, calibrated=calibrated, reason=reason)


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


def takes_weight(estimator: Any) -> bool:
    """Return True if `estimator` can be fitted with weights; with metadata routing, `fit` finds out."""
    if has_fit_parameter(estimator, "sample_weight") or get_config()["enable_metadata_routing"]:
        return True
    passes_on = any(p.kind is p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values())
    return passes_on and not isinstance(estimator, Pipeline)


def input_dtypes(estimator: Any) -> list[type]:
    """Return the types of X that `estimator` computes with; X of any other is converted to the first."""
    bases = {f"{base.__module__}.{base.__name__}" for base in type(estimator).__mro__}
    return [np.float32] if bases & _SINGLE_PRECISION else [np.float64, np.float32]
