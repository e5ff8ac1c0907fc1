"""What the package costs over bare scikit-learn: the same clones, trained by a plain recursion."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks.race import arguments, ratio, report
from dichotomies import NestedDichotomyClassifier
from experiments.datasets import load
from tests.reference import RecursiveNestedDichotomy

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, LabelArray

TEXT = """
# Overhead of the generic path

How many times as long a plain recursion over the same tree takes, which clones the same scikit-learn
estimator at every node and multiplies probabilities. Above 1 the package is faster. One worker on
either side; BLAS with one thread on both sides and, in the last row, with as many as the machine has cores
(the package then still gives each node one). Repeated runs differ by some 5 %.
"""

LEARNERS = {
    "logistic regression": LogisticRegression(),
    "Gaussian naive Bayes": GaussianNB(),
    "decision tree": DecisionTreeClassifier(random_state=0),
}


def _letter() -> tuple[FloatArray, LabelArray, FloatArray]:
    data = load("letter")
    (X, y), (X_test, _) = data.split("train"), data.split("test")
    return X / 15, y, X_test / 15


def _omniglot() -> tuple[FloatArray, LabelArray, FloatArray]:
    data = load("omniglot")
    train = data.extra["drawer"] <= 15
    return data.X[train] / 255, data.y[train], data.X[~train] / 255


def _race(learner: Any, data: tuple[FloatArray, LabelArray, FloatArray], repeats: int) -> list[str]:
    X, y, X_test = data
    ours = NestedDichotomyClassifier(
        learner,
        "random",
        internal_calibration=None,
        external_calibration=None,
        learner="clones",
        random_state=0,
    )
    ours.fit(X, y)
    theirs = RecursiveNestedDichotomy(learner, ours.tree_.to_nested()).fit(X, y)
    difference = np.abs(ours.predict_proba(X_test) - theirs.predict_proba(X_test)).max()
    fit = ratio(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats)
    predict = ratio(lambda: ours.predict_proba(X_test), lambda: theirs.predict_proba(X_test), repeats)
    return [f"{fit:.2f}", f"{predict:.2f}", f"{difference:.0e}"]


def main() -> None:
    options = arguments(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)
    letter, omniglot = _letter(), _omniglot()
    cases: list[tuple[str, Any, str, int | None, int]] = []
    cases += [("letter", letter, name, 1, 5 * options.repeats) for name in LEARNERS]
    cases += [("omniglot", omniglot, name, 1, options.repeats) for name in list(LEARNERS)[:2]]
    cases += [("omniglot", omniglot, "logistic regression", None, options.repeats)]
    rows = []
    for dataset, data, name, threads, repeats in cases:
        with threadpool_limits(threads, user_api="blas"):
            result = _race(LEARNERS[name], data, repeats)
        rows.append([dataset, name, threads or "all", *result])
        print(*rows[-1])
    header = ["data", "learner", "BLAS threads", "fit", "predict_proba", "largest difference"]
    report("overhead", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
