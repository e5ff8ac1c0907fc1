"""Answers of every learner and calibrator on a few rows; run as a script, written to a file."""

import sys

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._common.parallel import Context
from dichotomies._kernels import compile as kernels
from dichotomies.calibrators.binary import BINARY, Segments
from dichotomies.learners import choose
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
from dichotomies.learners.logistic import ScaledLogisticRegression, TunedLogisticRegression
from dichotomies.metrics import brier_score, expected_calibration_error
from dichotomies.tree import ClassTree
from tests.tasks import node_task

LEARNERS = {
    "logistic": LogisticRegression(),
    "logistic, exact": LogisticRegression(tol=1e-9, C=0.1),
    "logistic, liblinear": LogisticRegression(solver="liblinear"),
    "logistic, scaled": ScaledLogisticRegression(tol=1e-9),
    "multinomial": MultinomialNB(),
    "complement": ComplementNB(norm=True),
    "bernoulli": BernoulliNB(binarize=None),
    "gaussian": GaussianNB(),
    "gradient boosting": HistGradientBoostClassifier(n_estimators=2, max_depth=2, min_samples_leaf=2),
    "boosting": HistAdaBoostClassifier(n_estimators=2),
    "real boosting": HistAdaBoostClassifier(n_estimators=2, algorithm="real"),
    "logistic, tuned": TunedLogisticRegression((0.1, 1.0), cv=2, tol=1e-9, random_state=0),
}
DENSE_ONLY = {"logistic, scaled", "gaussian", "gradient boosting", "boosting", "real boosting"}


def _rows():
    X, y = load_digits(return_X_y=True)
    return (X[:190] > 8).astype(float), y[:190]


def answers(patience):
    """Log-probabilities by name, computed with this much patience for plain code."""
    kernels.PATIENCE = kernels.PATIENCE_OF_ANSWERS = patience
    X, y = _rows()
    found = {}
    for name, estimator in LEARNERS.items():
        for kind in (np.asarray,) if name in DENSE_ONLY else (np.asarray, csr_array):
            clf = NestedDichotomyClassifier(
                estimator,
                "random",
                internal_calibration="platt",
                external_calibration=None,
                cv=2,
                random_state=0,
            )
            found[f"{name} {kind.__name__}"] = clf.fit(kind(X), y).predict_log_proba(kind(X[:40]))
            searched = clf.predict_top_k(kind(X[:9]), 3, search="exact")[1]
            found[f"search of {name} {kind.__name__}"] = searched
    ensemble = NestedDichotomyEnsemble(GaussianNB(), n_estimators=2, random_state=0).fit(X, y)
    found["ensemble"] = ensemble.predict_log_proba(X)
    proba = ensemble.predict_proba(X)
    found["metrics"] = np.array([brier_score(y, proba), expected_calibration_error(y, proba)])
    found |= _pairs(X, y)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=90).round(1)
    segments = Segments(scores, rng.random(90) < 1 / (1 + np.exp(-scores)), [0, 25, 25, 90])
    for name in BINARY.names():
        maps = BINARY.create(name).fit_segments(segments)
        column = np.linspace(-3, 3, 21 * 3).reshape(21, 3)
        maps.apply(column)
        found[name] = np.append(column.ravel(), maps.apply_segments(segments))
    return found


def _pairs(X, y):
    """Scores of a few rows at a few nodes."""
    tree, found = ClassTree.from_nested([[[0, 1], [2, 3]], [[4, [5, 6]], [7, [8, 9]]]]), {}
    rows, nodes = np.arange(30), np.arange(30) % 9
    for estimator in (MultinomialNB(), GaussianNB(), HistAdaBoostClassifier(n_estimators=2)):
        learner = choose(estimator)
        for kind in (np.asarray, csr_array) if isinstance(estimator, MultinomialNB) else (np.asarray,):
            scorer = learner.fit(node_task(tree, kind(X), y), Context())
            for asked in {np.asarray, kind}:
                name = f"pairs of {type(estimator).__name__}, {kind.__name__} and {asked.__name__}"
                found[name] = scorer.pair_log_odds(asked(X), rows, nodes)
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **answers(-1.0))
