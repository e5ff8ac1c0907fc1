"""Compilation ahead of time: every learner and calibrator on a small problem, by kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB

from dichotomies._kernels.compile import FEW_ROWS
from dichotomies._kernels.dispatch import compiled_so_far
from dichotomies.calibrators.binary import BINARY
from dichotomies.estimators.classifier import NestedDichotomyClassifier
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier

#: Estimators to train for each learner; logistic regression to the last digits takes another solver.
LEARNERS: dict[str, list[Any]] = {
    "logistic": [LogisticRegression(), LogisticRegression(tol=1e-8)],
    "naive-bayes": [BernoulliNB(), GaussianNB()],
    "boosting": [
        HistGradientBoostClassifier(n_estimators=2),
        HistAdaBoostClassifier(n_estimators=2),
    ],
}


def warm_up(learners: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Train and predict with each learner, and with every calibrator; yield the kernels compiled.

    Rows are random, in double precision, and just too many for plain code.
    """
    rng = np.random.default_rng(0)
    y = np.arange(FEW_ROWS + 1) % 8
    X = rng.random((len(y), 48)) * (rng.random((len(y), 48)) < 0.3)
    for name in learners:
        before = compiled_so_far()
        for estimator in LEARNERS[name]:
            for rows in [X] if isinstance(estimator, GaussianNB) else [X, csr_array(X)]:
                for internal in ("platt", None):
                    _use(estimator, internal, rows, y)
        yield name, sorted(compiled_so_far() - before)
    before = compiled_so_far()
    for internal in BINARY.names():
        _use(GaussianNB(), internal, X, y)
    yield "calibrators", sorted(compiled_so_far() - before)


def _use(estimator: Any, internal: str | None, X: Any, y: Any) -> None:
    clf = NestedDichotomyClassifier(
        estimator, "random", internal_calibration=internal, external_calibration=None, random_state=0
    )
    clf.fit(X, y).predict_proba(X)
    clf.predict_top_k(X, 1, search="exact")
