"""The ways to calibrate that are compared, and the classifiers that do so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dichotomies import NestedDichotomyClassifier
from dichotomies.calibrators.multiclass import MULTICLASS
from experiments.datasets import DATASETS
from experiments.running.seeds import derived_seed

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, LabelArray, Matrix
    from experiments.defaults.trial import DefaultsTrial

#: The base learners and their titles.
LEARNERS = {
    "logistic_regression": "logistic regression",
    "naive_bayes": "naive Bayes",
    "boosted_trees": "gradient boosting",
}
BEFORE, NOW, PLAIN, FLAT = "before", "now", "none+none", "flat"
#: Calibrators of the fixed pairs.
INSIDE = ("none", "platt", "shrunk-platt", "smooth-isotonic")
OUTSIDE = ("none", "vector", "vector-odds")
FIXED = tuple(f"{internal}+{external}" for internal in INSIDE for external in OUTSIDE)
WAYS = (NOW, BEFORE, *FIXED, FLAT)
#: The pairs that the default chooses from.
CANDIDATES = tuple(
    f"{internal}+{external}"
    for internal in ("none", "shrunk-platt", "smooth-isotonic")
    for external in ("none", "vector-odds")
)
#: The tree of all ways, so that they differ by the calibration alone.
STRUCTURE = "2-means"


def classifier(trial: DefaultsTrial) -> Any:
    """The classifier of a trial, not yet fitted."""
    base = base_learner(trial.dataset, trial.learner)
    if trial.way == FLAT:
        return FlatCalibrated(base)
    return NestedDichotomyClassifier(
        base,
        STRUCTURE,
        **_calibration(trial.way),
        n_jobs=1,
        random_state=derived_seed(trial.seed, trial.dataset, trial.repeat, "training"),
    )


def _calibration(way: str) -> dict[str, Any]:
    if way == NOW:
        return {}
    if way == BEFORE:
        return {
            "internal_calibration": None,
            "external_calibration": "vector",
            "calibration_size": 0.1,
            "cv": 3,
        }
    internal, external = (None if name == "none" else name for name in way.split("+"))
    return {"internal_calibration": internal, "external_calibration": external}


def base_learner(dataset: str, learner: str) -> Any:
    """The estimator at the nodes, for the features of a dataset."""
    if learner == "logistic_regression":
        return LogisticRegression(max_iter=1_000)
    if learner == "naive_bayes":
        return MultinomialNB() if DATASETS.create(dataset).kind == "sparse" else GaussianNB()
    return HistGradientBoostingClassifier(max_iter=30, random_state=0)


class FlatCalibrated(ClassifierMixin, BaseEstimator):
    """One multiclass model without a tree, calibrated on its out-of-fold probabilities as the default does.

    Parameters
    ----------
    estimator : scikit-learn classifier
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, y: LabelArray) -> Self:
        """Train on folds and on all rows, and calibrate."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        rare = bool((np.bincount(codes) < 2).any())
        self.model_ = clone(self.estimator).fit(X, codes)
        self.calibrator_ = None
        if not rare:
            cv = StratifiedKFold(int(min(3, np.bincount(codes).min())), shuffle=True, random_state=0)
            log_proba = cross_val_predict(self.estimator, X, codes, cv=cv, method="predict_log_proba")
            self.calibrator_ = MULTICLASS.create("vector-odds").fit(log_proba, codes)
        return self

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the calibrated class probabilities."""
        log_proba: FloatArray = self.model_.predict_log_proba(X)
        return log_proba if self.calibrator_ is None else self.calibrator_.predict_log_proba(log_proba)
