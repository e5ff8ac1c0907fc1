"""Input that scikit-learn estimators accept: sample weights, types of X."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.ensemble._forest import ForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import has_fit_parameter

#: Estimators that would convert X to single precision themselves, again at every node.
_SINGLE_PRECISION = (BaseDecisionTree, ForestClassifier)


def takes_weight(estimator: Any) -> bool:
    """Return True if an estimator can be fitted with weights; with metadata routing, `fit` finds out."""
    if has_fit_parameter(estimator, "sample_weight") or get_config()["enable_metadata_routing"]:
        return True
    passes_on = any(p.kind is p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values())
    return passes_on and not isinstance(estimator, Pipeline)


def input_dtypes(estimator: Any) -> list[type]:
    """Return the types of X that an estimator computes with; X of any other is converted to the first."""
    return [np.float32] if isinstance(estimator, _SINGLE_PRECISION) else [np.float64, np.float32]
