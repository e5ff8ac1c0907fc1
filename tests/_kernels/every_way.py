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
from dichotomies._kernels.softmax import class_sums, scale_sums
from dichotomies.calibrators.binary import BINARY, Segments
from dichotomies.calibrators.multiclass import MULTICLASS
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
DENSE_ONLY = {"logistic, scaled", "gaussian"}


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
    proba = NestedDichotomyEnsemble(GaussianNB(), n_estimators=2, random_state=0).fit(X, y).predict_proba(X)
    found["metrics"] = np.array([brier_score(y, proba), expected_calibration_error(y, proba)])
    found |= _pairs(X, y) | _ensembles(X, y) | _external(proba, y) | _shapes_of_trees(y)
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


def _ensembles(X, y):
    """Answers of ensembles, and their parts: the most probable classes, sets and nodes of the tree."""
    found = {}
    for estimator in (
        GaussianNB(),
        HistGradientBoostClassifier(2, max_depth=2),
        LogisticRegression(tol=1e-9),
    ):
        name = f"ensemble of {type(estimator).__name__}"
        clf = NestedDichotomyEnsemble(
            estimator, n_estimators=2, external_calibration="temperature", prediction_sets=2, random_state=0
        ).fit(X, y)
        found[name] = clf.predict_log_proba(X[:40])
        found[f"search of {name}"] = clf.predict_top_k(X[:9], 3, search="exact")[1]
        found[f"{name}, given classes"] = clf.proba_of(X[:9], y[:9])
        found[f"{name}, groups"] = clf.predict_node(X[:9], 0.8, groups=2).proba
    return found


def _external(proba, y):
    """Class probabilities by every external calibrator that uses kernels."""
    log_proba = np.log(0.98 * proba + 0.002)
    y = np.where(np.arange(len(y)) % 5, y, (y + 1) % 10)  # not separated, so that there is an optimum
    found = {"sums by class": _sums(log_proba, y)}
    for name in sorted(set(MULTICLASS.names()) - {"dirichlet", "matrix"}):
        found[f"external {name}"] = MULTICLASS.create(name).fit(log_proba, y).predict_log_proba(log_proba)
    return found


def _sums(log_proba, y):
    """Value and derivatives of the likelihood in single precision, which only large problems use."""
    n, k = log_proba.shape
    shift, weight = np.zeros(n, np.float32), np.linspace(0.5, 1.5, n, dtype=np.float32)
    given = log_proba, shift, np.full(n, -50, np.float32), y, weight
    scale, bias = np.full(k, 1.5, np.float32), np.linspace(-1, 1, k, dtype=np.float32)
    out = np.zeros((5, k), np.float32)
    loss = class_sums(*given, scale, bias, True, out)
    return np.concatenate([[loss], out.ravel(), scale_sums(*given, scale, bias)]) / n


def _shapes_of_trees(y):
    """Boosted trees of numbers, missing values and categories, grown by levels and by leaves."""
    rng, found = np.random.default_rng(0), {}
    X = np.column_stack([(y + rng.normal(size=(3, len(y)))).T, y % 4, rng.integers(30, size=len(y))])
    X[rng.random(X.shape) < 0.1] = np.nan
    shapes = {
        "leaves": {"max_leaf_nodes": 5, "subsample": 0.5, "max_features": 0.5},
        "levels": {"max_depth": 3, "max_leaf_nodes": None, "early_stopping": True},
        "defaults": {},
    }
    for name, shape in shapes.items():
        boosting = HistGradientBoostClassifier(n_estimators=4, categorical_features=[3, 4], **shape)
        clf = NestedDichotomyClassifier(boosting, "random", random_state=0).fit(X, y)
        found[f"trees by {name}"] = clf.predict_log_proba(X[:40])
        found[f"search of trees by {name}"] = clf.predict_top_k(X[:9], 3, search="exact")[1]
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **answers(-1.0))
