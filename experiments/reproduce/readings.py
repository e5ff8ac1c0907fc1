"""Two readings of the paper: what its text says was run, and what its numbers say was run.

They differ where text and numbers disagree:

=========================  ==============================  ===========================================
what                       as printed                      as the numbers imply
=========================  ==============================  ===========================================
naive Bayes, dense data    Gaussian                        multinomial
boosted trees, UCI sets    50 trees of depth 3, AdaBoost   one unpruned decision tree
internal calibration       on log-odds, pooled over three  scikit-learn's `CalibratedClassifierCV`: on
                           folds, one model of all rows    probabilities, three models averaged
external calibration       vector scaling of log-odds,     vector scaling of log-probabilities, none
                           maximum likelihood              below 1e-7, penalised
logistic regression        at its optimum                  LIBLINEAR, its intercept penalised too
=========================  ==============================  ===========================================

`CalibratedClassifierCV` wants three rows of either side at every node, so on the sets that stand in for
others, with classes of one row, internal calibration is ours in both readings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies.calibrators.multiclass.vector import VectorScaling, VectorScalingML
from dichotomies.estimators.classifier import NestedDichotomyClassifier
from dichotomies.learners.boosting import HistAdaBoostClassifier
from experiments.datasets import DATASETS
from experiments.running.seeds import derived_seed
from experiments.running.trial import BASE_LEARNERS

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray
    from experiments.reproduce.trial import PaperTrial

AS_PRINTED, AS_NUMBERS_IMPLY = "as-printed", "as-numbers-imply"
READINGS = (AS_PRINTED, AS_NUMBERS_IMPLY)
BASES = tuple(BASE_LEARNERS)

#: The paper's own datasets that anyone can have, on which its numbers can be read closely.
SMALL = ("optdigits", "micromass", "letter")
#: Datasets with Gaussian naive Bayes according to the text, and the stand-in for one of them.
GAUSSIAN = (*SMALL, "devanagari", "nhcd")
#: Features of text for boosted trees, by a Gaussian random projection.
PROJECTED = 1_000


@dataclass(frozen=True)
class Scheme:
    """Calibration scheme of a nested dichotomy; `internal` is the name of a binary calibrator."""

    title: str
    internal: str | None
    external: bool


#: By name, in the order of the paper's tables.
SCHEMES = {
    "none": Scheme("Baseline", None, external=False),
    "external_vs": Scheme("External VS", None, external=True),
    "internal_ps": Scheme("Internal PS", "platt", external=False),
    "both_ps": Scheme("Both PS", "platt", external=True),
    "internal_ir": Scheme("Internal IR", "isotonic", external=False),
    "both_ir": Scheme("Both IR", "isotonic", external=True),
}


def schemes_of(base: str) -> tuple[str, ...]:
    """The schemes that the paper shows with this base learner; logistic regression has no internal ones."""
    return tuple(SCHEMES)[:2] if base == "logistic_regression" else tuple(SCHEMES)


class FlooredVectorScaling(VectorScaling):
    """Penalised vector scaling that reads probabilities below 1e-7 as 1e-7.

    That number is the usual guard against log(0) in single precision. Decision trees and naive Bayes answer
    with far less, so it decides what vector scaling can make of them; that it brings our numbers to the
    paper's is shown by ``python -m benchmarks.external_reading``.
    """

    FLOOR = math.log(1e-7)

    def fit(self, log_proba: npt.ArrayLike, *args: Any, **kwargs: Any) -> FlooredVectorScaling:
        """Fit on log-probabilities that are nowhere below the floor."""
        super().fit(np.maximum(log_proba, self.FLOOR), *args, **kwargs)
        return self

    def predict_log_proba(self, log_proba: npt.ArrayLike, out: FloatArray | None = None) -> FloatArray:
        """Calibrated log-probabilities of those raised to the floor."""
        return super().predict_log_proba(np.maximum(log_proba, self.FLOOR), out)


def classifier(trial: PaperTrial) -> NestedDichotomyClassifier:
    """The classifier of a trial, not yet fitted.

    Trials that differ only in base learner, reading or scheme have the same random tree.
    """
    implied, scheme = trial.reading == AS_NUMBERS_IMPLY, SCHEMES[trial.scheme]
    base = _base(trial)
    by_scikit_learn = implied and trial.dataset in SMALL and scheme.internal is not None
    if by_scikit_learn:
        base = CalibratedClassifierCV(base, method=_METHODS[scheme.internal], cv=3)
    return NestedDichotomyClassifier(
        base,
        "random",
        internal_calibration=None if by_scikit_learn else scheme.internal,
        external_calibration=_external(implied) if scheme.external else None,
        average_folds=implied,
        calibration_size=0.1,
        cv=3,
        learner="clones" if implied and trial.base == "logistic_regression" else "auto",
        random_state=derived_seed(trial.seed, trial.dataset, trial.repeat, trial.fold, "tree"),
    )


_METHODS: dict[str | None, str] = {"platt": "sigmoid", "isotonic": "isotonic"}


def _external(implied: bool) -> VectorScaling | VectorScalingML:
    return FlooredVectorScaling() if implied else VectorScalingML(on="log_odds")


def _base(trial: PaperTrial) -> Any:
    implied = trial.reading == AS_NUMBERS_IMPLY
    if trial.base == "logistic_regression":
        return LogisticRegression(solver="liblinear") if implied else LogisticRegression(max_iter=1_000)
    if trial.base == "naive_bayes":
        return GaussianNB() if not implied and trial.dataset in GAUSSIAN else MultinomialNB()
    if trial.base == "boosted_trees":
        single_tree = implied and trial.dataset in SMALL
        return DecisionTreeClassifier() if single_tree else HistAdaBoostClassifier(algorithm="real")
    raise ValueError(f"There is no base learner {trial.base!r}; choose from {list(BASES)}.")


def preparation(trial: PaperTrial) -> dict[str, Any]:
    """Arguments of `experiments.datasets.features` that prepare the features of a trial.

    Counts of words get TF-IDF weights, and boosted trees get text through a random projection. Grey values
    are taken from 0 to 1. The three small sets are used as they are.
    """
    source = DATASETS.create(trial.dataset)
    if source.kind == "sparse":
        projection = PROJECTED if trial.base == "boosted_trees" else None
        return {"weighting": "tfidf" if source.values == "counts" else "none", "projection": projection}
    return {"weighting": "none" if trial.dataset in SMALL else "unit"}
