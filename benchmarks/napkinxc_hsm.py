"""Sparse logistic regression against napkinXC's hierarchical softmax on the same binary tree."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
from napkinxc.models import HSM  # pip install napkinxc
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from benchmarks import problems
from benchmarks.napkinxc_tree import structure
from benchmarks.race import arguments, ratio, report
from dichotomies import NestedDichotomyClassifier

if TYPE_CHECKING:
    from benchmarks.problems import Problem

TEXT = """
# napkinXC

How many times as long napkinXC's hierarchical softmax takes on the same binary tree, one thread on either
side, and the NLL of both on rows held out. napkinXC has its defaults but for the pruning of weights (none;
with the default threshold of 0.1 its NLL is in the last column) and C, which is that of the row on both
sides. Its models live in files; its time includes writing and reading them once. The full distribution is
what `predict_proba` gives: every class, every row. "Our fit, …" is our calibrated model's training against
its plain one: temperature and vector scaling train on nine rows in ten and calibrate on the rest, Platt
scaling trains on three folds and once more on all rows.
"""

CALIBRATIONS: dict[str, dict[str, Any]] = {
    "temperature": {"external_calibration": "temperature"},
    "vector": {"external_calibration": "vector"},
    "Platt": {"internal_calibration": "platt"},
}


class _Napkin:
    def __init__(self, problem: Problem, C: float, threshold: float) -> None:
        self.problem, self.C, self.threshold = problem, C, threshold
        self._folder = tempfile.TemporaryDirectory()

    def fit(self) -> None:
        self.model = HSM(
            self._folder.name, tree_structure=structure(self.problem.tree), threads=1, verbose=0,
            liblinear_c=self.C, weights_threshold=self.threshold, norm=False,
        )  # fmt: skip
        self.model.fit(self.problem.X, self.problem.y)
        self.model.load()

    def predict_proba(self, X: Any) -> Any:
        proba = np.zeros((X.shape[0], self.problem.tree.n_classes))
        for row, answer in zip(proba, self.model.predict_proba(X), strict=True):
            labels, values = zip(*answer, strict=True)
            row[list(labels)] = values
        return proba


def _nll(proba: Any, y: Any) -> float:
    return float(-np.log(np.clip(proba[np.arange(len(y)), y], 1e-15, 1)).mean())


def _race(problem: Problem, C: float, repeats: int) -> list[str]:
    few = np.random.RandomState(0).permutation(len(problem.y_test))[:1_000]
    X_test, y_test = problem.X_test[few], problem.y_test[few]
    ours = NestedDichotomyClassifier(
        LogisticRegression(C=C), problem.tree, internal_calibration=None, external_calibration=None
    )
    ours.fit(problem.X, problem.y).predict_proba(X_test[:10])
    theirs, pruned = _Napkin(problem, C, 0.0), _Napkin(problem, C, 0.1)
    fit = ratio(lambda: ours.fit(problem.X, problem.y), theirs.fit, repeats)
    predict = ratio(lambda: ours.predict_proba(X_test), lambda: theirs.model.predict_proba(X_test), repeats)
    fit_pruned = ratio(lambda: ours.fit(problem.X, problem.y), pruned.fit, repeats)
    calibrated = [
        clone(ours).set_params(**params).fit(problem.X, problem.y) for params in CALIBRATIONS.values()
    ]
    fits = [
        ratio(lambda model=model: model.fit(problem.X, problem.y), theirs.fit, repeats)  # type: ignore[misc]
        for model in calibrated
    ]
    losses = [
        f"{_nll(model.predict_proba(X_test), y_test):.3f}" for model in (ours, *calibrated, theirs, pruned)
    ]
    ratios = [*(f"{x:.1f}x" for x in (fit, *fits, fit_pruned)), f"{predict:.0f}x"]
    row = [problem.name, f"{C:g}", *ratios, *losses]
    print(*row, sep=" | ", flush=True)
    return row


def main() -> None:
    options = arguments(__doc__, repeats=1)
    rows = [
        _race(problems.text(name, weighted=True), C, options.repeats)
        for name in ("onet_titles", "wordnet")
        for C in (1.0, 10.0)
    ]
    header = ["data", "C", "fit", *(f"our fit, {name}" for name in CALIBRATIONS), "its fit, pruned"]
    header += ["full distribution", "our NLL", *(f"our NLL, {name}" for name in CALIBRATIONS)]
    header += ["its NLL", "its NLL, pruned"]
    report("napkinxc_hsm", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
