"""Calibration that is closed under the tree against vector scaling, on sets with 100 classes or more."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import problems
from benchmarks.race import arguments, report
from dichotomies import NestedDichotomyClassifier
from dichotomies.metrics import expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.problems import Problem

TEXT = """
# Calibration closed under the tree

NLL, top-label ECE and processor seconds of fitting, on rows held out: without calibration; with vector
scaling on a tenth of the rows, the default, and cross-fitted on three folds; and with internal calibration on
three folds, Platt scaling node by node and `shrunk-platt`, which shrinks the nodes' slopes and intercepts to
those of their depth. Internal calibration needs no sum over all classes, so that the most probable classes
and their probabilities can be [searched](../search.md) for. The trees are those of 2-means, grown once for
each fit. The lowest NLL of a row is bold.
"""

CALIBRATIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "vector": {"external_calibration": "vector"},
    "vector, cross-fitted": {"external_calibration": "vector", "calibration_size": "cross-fit"},
    "platt": {"internal_calibration": "platt"},
    "shrunk-platt": {"internal_calibration": "shrunk-platt"},
}
_ROWS = 2_000


def _subjects() -> Iterator[tuple[Problem, Any]]:
    yield problems.text("clinc150", weighted=True), LogisticRegression(C=10)
    yield problems.text("clinc150", weighted=False), MultinomialNB()
    yield problems.text("onet_titles", weighted=True), LogisticRegression(C=10)
    yield problems.text("onet_titles", weighted=False), MultinomialNB()
    yield problems.omniglot(), GaussianNB(var_smoothing=0.1)
    yield problems.text("wordnet", weighted=True), LogisticRegression(C=10)
    yield problems.text("wordnet", weighted=False), MultinomialNB()
    yield problems.kanji_fonts(), GaussianNB(var_smoothing=0.1)


def _measured(problem: Problem, estimator: Any, calibration: dict[str, Any]) -> tuple[float, float, float]:
    few = np.random.RandomState(0).permutation(len(problem.y_test))[:_ROWS]
    X, y = problem.X_test[few], problem.y_test[few]
    parameters = {"external_calibration": None, **calibration}
    clf = NestedDichotomyClassifier(estimator, "2-means", random_state=0, **parameters)
    begun = process_time()
    clf.fit(problem.X, problem.y)
    seconds = process_time() - begun
    log_proba = clf.predict_log_proba(X)
    ece = expected_calibration_error(y, np.exp(log_proba), labels=clf.classes_)
    codes = np.searchsorted(clf.classes_, y)
    return float(-log_proba[np.arange(len(y)), codes].mean()), float(ece), seconds


def _row(problem: Problem, estimator: Any) -> list[str]:
    found = {name: _measured(problem, estimator, each) for name, each in CALIBRATIONS.items()}
    least = min(nll for nll, _, _ in found.values())
    cells = [
        f"{'**' if nll == least else ''}{nll:.3f}{'**' if nll == least else ''}, {ece:.3f}, {seconds:.0f} s"
        for nll, ece, seconds in found.values()
    ]
    n_classes = len(np.unique(problem.y))
    row = [problem.name, f"{n_classes:,}", type(estimator).__name__, *cells]
    print(*row, sep=" | ", flush=True)
    return row


def main() -> None:
    options = arguments(__doc__)
    rows = [_row(problem, estimator) for problem, estimator in _subjects()]
    header = ["data", "classes", "learner", *CALIBRATIONS]
    report("tree_calibration", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
