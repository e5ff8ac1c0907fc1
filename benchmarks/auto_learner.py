"""The base learner that is chosen, against each candidate on its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks.problems import Problem, tfidf
from benchmarks.race import arguments, report
from dichotomies import NestedDichotomyClassifier, ScaledLogisticRegression
from dichotomies.estimators.warm_up import LEARNERS, warm_up
from dichotomies.rows.folds import hold_out
from dichotomies.training.learner_choice import boosted_trees
from experiments.datasets import load

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = """
# The choice of the base learner

`NestedDichotomyClassifier()` names no estimator: it chooses one. NLL and accuracy on test rows, and processor
time of the whole fit in seconds, with the default calibration and 2-means trees: of the choice, and of
candidates named one by one. "Trial" is the share of its fit that the choice took. Candidates that do not suit
the data are left out (-); so are boosted trees on more than 200 features. The last column compares the NLL of
the choice with the lowest in its row, which nobody could have known.
"""

CANDIDATES: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "standardised logistic": ScaledLogisticRegression(),
    "Gaussian NB": GaussianNB(),
    "multinomial NB": MultinomialNB(),
    "boosted trees": boosted_trees(),
}


def _problems() -> Iterator[Problem]:
    for name, read in {"breast cancer": load_breast_cancer, "digits": load_digits}.items():
        yield _part(name, *read(return_X_y=True))
    for name in ("micromass", "optdigits", "letter"):
        data = load(name)
        yield _part(name, data.X.astype(np.float64), data.y)
    omniglot = load("omniglot")
    few = np.isin(omniglot.y, np.unique(omniglot.y)[:150])
    yield _part("omniglot, 150 classes", omniglot.X[few].astype(np.float64), omniglot.y[few])
    for name in ("reuters52", "clinc150"):
        data = load(name)
        yield _part(f"{name}, counts", data.X, data.y)
        yield tfidf(_part(f"{name}, TF-IDF", data.X, data.y))


def _part(name: str, X: Any, y: Any) -> Problem:
    """A quarter of the rows, stratified, is for testing."""
    codes = np.unique(y, return_inverse=True)[1]
    test = hold_out(codes, 0.25, np.random.RandomState(0))
    return Problem(name, X[~test], codes[~test], X[test], codes[test])


def _suits(problem: Problem, name: str) -> bool:
    is_dense = isinstance(problem.X, np.ndarray)
    if name == "boosted trees":
        return is_dense and problem.X.shape[1] <= 200
    if name in ("standardised logistic", "Gaussian NB"):
        return is_dense
    return name != "multinomial NB" or problem.X.min() >= 0


def _measured(problem: Problem, estimator: Any) -> tuple[float, float, float, Any]:
    """NLL and accuracy on the test rows, seconds, and the classifier."""
    begun = time.process_time()
    clf = NestedDichotomyClassifier(estimator, "2-means", random_state=0).fit(problem.X, problem.y)
    took = time.process_time() - begun
    log_proba = clf.predict_log_proba(problem.X_test)
    nll = -log_proba[np.arange(len(problem.y_test)), problem.y_test].mean()
    return float(nll), float((log_proba.argmax(axis=1) == problem.y_test).mean()), took, clf


def _row(problem: Problem) -> list[str]:
    cells, best = [], np.inf
    for name, estimator in CANDIDATES.items():
        if not _suits(problem, name):
            cells.append("-")
            continue
        nll, accuracy, took, _ = _measured(problem, estimator)
        best = min(best, nll)
        cells.append(f"{nll:.3f} / {accuracy:.3f} / {took:.2f}")
    nll, accuracy, took, clf = _measured(problem, None)
    named = _measured(problem, clf.estimator_)[2]
    chosen = " ".join(repr(clf.estimator_).split()).removesuffix("()")
    return [
        f"{problem.name} ({problem.size})", *cells, f"{nll:.3f} / {accuracy:.3f} / {took:.2f}", chosen,
        f"{max(0.0, 1 - named / took):.0%}", f"{nll / min(best, nll):.2f}",
    ]  # fmt: skip


def main() -> None:
    options = arguments(__doc__, repeats=1)
    rows = []
    list(warm_up(list(LEARNERS)))  # kernels are compiled beforehand
    for problem in _problems():
        rows.append(_row(problem))
        print(*rows[-1], sep=" | ", flush=True)
    header = ["data", *CANDIDATES, "the choice", "chosen", "trial", "NLL / lowest"]
    report("auto_learner", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
