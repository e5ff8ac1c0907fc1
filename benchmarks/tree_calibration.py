"""Calibration that is closed under the tree against vector scaling, on sets with 100 classes or more."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import problems
from benchmarks.race import arguments, report
from dichotomies import NestedDichotomyClassifier
from dichotomies._kernels.composition import class_log_proba
from dichotomies.metrics import expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.problems import Problem

TEXT = """
# Calibration closed under the tree

NLL and top-label ECE on rows held out, and processor seconds of fitting: without calibration; with vector
scaling, cross-fitted on three folds; and with internal calibration on three folds, Platt scaling node by node
and `shrunk-platt`, which shrinks the nodes' slopes and intercepts to those of their depth, of the tree and to
the identity. Internal calibration needs no sum over all classes, so that the most probable classes and their
probabilities can be [searched](../top-k.md) for. The trees are those of 2-means, grown once for each fit.
The lowest NLL of these is bold.

*Path* asks whether log-odds s of a node should be read with the log-probability P of the path so far, as
`(a + c P) s`: a and c, the same for all nodes, are fitted behind Platt scaling on one half of the test rows,
and NLL and ECE are those of the other half; before it stands what a alone gives (c = 0) on the same rows.
"""

CALIBRATIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "vector": {"external_calibration": "vector", "calibration_size": "cross-fit"},
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


def _measured(problem: Problem, estimator: Any, calibration: dict[str, Any]) -> tuple[Any, ...]:
    """NLL, ECE, seconds and the fitted classifier."""
    X, y = _test_rows(problem)
    parameters = {"internal_calibration": None, "external_calibration": None, "cv": 3, **calibration}
    clf = NestedDichotomyClassifier(estimator, "2-means", random_state=0, **parameters)
    begun = process_time()
    clf.fit(problem.X, problem.y)
    seconds = process_time() - begun
    return *_losses(clf.predict_log_proba(X), np.searchsorted(clf.classes_, y)), seconds, clf


def _test_rows(problem: Problem) -> tuple[Any, Any]:
    few = np.random.RandomState(0).permutation(len(problem.y_test))[:_ROWS]
    return problem.X_test[few], problem.y_test[few]


def _losses(log_proba: Any, codes: Any) -> tuple[float, float]:
    """NLL and ECE."""
    ece = expected_calibration_error(codes, np.exp(log_proba), labels=np.arange(log_proba.shape[1]))
    return float(-log_proba[np.arange(len(codes)), codes].mean()), float(ece)


def _with_path(problem: Problem, clf: Any) -> list[str]:
    """NLL and ECE with one slope for all nodes, and with a slope that depends on the path."""
    X, y = _test_rows(problem)
    tree, codes = clf.tree_, np.searchsorted(clf.classes_, y)
    s = clf.model_.scorer.log_odds(X)
    reach = np.zeros_like(s)  # log-probability of each node
    for k in range(1, tree.n_nodes):
        parent = tree.parent[k]
        sign = 1.0 if tree.left[parent] == k else -1.0
        reach[:, k] = reach[:, parent] + log_expit(sign * s[:, parent])
    half = len(y) // 2

    def log_proba(parameters: Any, rows: slice) -> Any:
        slope = np.maximum(parameters[0] + (parameters[1] if len(parameters) > 1 else 0.0) * reach[rows], 0.0)
        return class_log_proba(tree, slope * s[rows])

    def loss(parameters: Any) -> float:
        return float(-log_proba(parameters, slice(half))[np.arange(half), codes[:half]].mean())

    cells = []
    for start in ([1.0], [1.0, 0.0]):
        found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-5}).x
        nll, ece = _losses(log_proba(found, slice(half, None)), codes[half:])
        cells.append(f"{nll:.3f}, {ece:.3f}")
    return [f"{cells[0]}; {cells[1]} (c = {found[1]:.3f})"]


def _row(problem: Problem, estimator: Any) -> list[str]:
    found = {name: _measured(problem, estimator, each) for name, each in CALIBRATIONS.items()}
    least = min(each[0] for each in found.values())
    cells = [
        f"{'**' if nll == least else ''}{nll:.3f}{'**' if nll == least else ''}, {ece:.3f}, {seconds:.0f} s"
        for nll, ece, seconds, _ in found.values()
    ]
    row = [problem.name, f"{len(np.unique(problem.y)):,}", type(estimator).__name__, *cells]
    row += _with_path(problem, found["platt"][-1])
    print(*row, sep=" | ", flush=True)
    return row


def main() -> None:
    options = arguments(__doc__)
    rows = [_row(problem, estimator) for problem, estimator in _subjects()]
    header = ["data", "classes", "learner", *CALIBRATIONS, "slope alone; path"]
    report("tree_calibration", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
