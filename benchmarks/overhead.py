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
from dichotomies.datasets import load
from tests.reference import RecursiveNestedDichotomy

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, LabelArray

TEXT = """
# Overhead of the generic path

How many times as long a plain recursion over the same tree takes, which clones the same scikit-learn
estimator at every node and multiplies probabilities. Above 1 the package is faster. One worker on
either side; BLAS with one thread on both sides and, for the learner that uses BLAS most, with as many as the
machine has cores (the package then still gives each node one).
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
    ours = NestedDichotomyClassifier(learner, external_calibration=None, random_state=0).fit(X, y)
    theirs = RecursiveNestedDichotomy(learner, ours.tree_.to_nested()).fit(X, y)
    difference = np.abs(ours.predict_proba(X_test) - theirs.predict_proba(X_test)).max()
    fit = ratio(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats)
    predict = ratio(lambda: ours.predict_proba(X_test), lambda: theirs.predict_proba(X_test), repeats)
    return [f"{fit:.2f}", f"{predict:.2f}", f"{difference:.0e}"]


def main() -> None:
    options = arguments(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for dataset, data in {"letter": _letter(), "omniglot": _omniglot()}.items():
        for name, learner in LEARNERS.items():
            for threads in (1, None) if learner is LEARNERS["logistic regression"] else (1,):
                with threadpool_limits(threads, user_api="blas"):
                    result = _race(learner, data, options.repeats)
                rows.append([dataset, name, threads or "all", *result])
                print(*rows[-1])
    header = ["data", "learner", "BLAS threads", "fit", "predict_proba", "largest difference"]
    report("overhead", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
