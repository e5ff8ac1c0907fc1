"""Classes added to a fitted model, one at a time, against fitting it again.

Rows are stored: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import problems
from benchmarks.race import Store, arguments, markdown_table, report
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.problems import Problem

TEXT = """
# Models that grow

*One class*: a class is left out, the classifier is fitted to the rows of all others with `keep_rows="all"`,
and `update` adds the class; *refit* is `fit` on all rows. NLL on test rows of all classes, and processor time
of the refit divided by that of the update, one thread; means over {trials} classes drawn at random. *Trained*
is the share of the nodes that the update trained. Vector scaling, cross-fitted on three folds, in both; trees
of 2-means.

*A hundred classes*: a model of {first} classes is made, and a hundred more are added one by one. NLL after
the last of them against one refit; the time of all hundred updates, in refits of the final size (a hundred
refits of growing size would take about 60 of those); and the mean depth of the trees. Means over {trials}
orders of the classes.
"""

_TRIALS, _FIRST, _ADDED = 3, 20, 100
_PARAMETERS: dict[str, Any] = {
    "structure": "2-means",
    "internal_calibration": None,
    "external_calibration": "vector",
    "cv": 3,
    "random_state": 0,
}


#: One class added: by title, data and learner.
ONE: dict[str, Callable[[], tuple[Problem, Any]]] = {
    "letter, logistic": lambda: (problems.letter(), LogisticRegression()),
    "letter, boosted": lambda: (problems.letter(), HistGradientBoostClassifier(10)),
    "clinc150": lambda: (problems.text("clinc150", weighted=True), LogisticRegression(C=10)),
    "onet_titles": lambda: (problems.text("onet_titles", weighted=False, n_classes=400), MultinomialNB()),
    "omniglot": lambda: (problems.omniglot(200), GaussianNB(var_smoothing=0.1)),
    "kanji_fonts": lambda: (problems.kanji_fonts(100), GaussianNB(var_smoothing=0.1)),
}
_ALL = _FIRST + _ADDED
#: A hundred classes added one by one.
HUNDRED: dict[str, Callable[[], tuple[Problem, Any]]] = {
    "clinc150": lambda: (problems.text("clinc150", weighted=True, n_classes=_ALL), LogisticRegression(C=10)),
    "omniglot": lambda: (problems.omniglot(_ALL), GaussianNB(var_smoothing=0.1)),
    "onet_titles": lambda: (problems.text("onet_titles", weighted=False, n_classes=_ALL), MultinomialNB()),
}


def _fitted(problem: Problem, estimator: Any, rows: Any, **more: Any) -> tuple[Any, float]:
    begun = process_time()
    clf = NestedDichotomyClassifier(estimator, **_PARAMETERS, **more).fit(problem.X[rows], problem.y[rows])
    return clf, process_time() - begun


def _nll(clf: Any, problem: Problem) -> float:
    codes = np.searchsorted(clf.classes_, problem.y_test)
    return float(-clf.predict_log_proba(problem.X_test)[np.arange(len(codes)), codes].mean())


def _updated(clf: Any, problem: Problem, label: Any) -> float:
    """Add a class; return the processor seconds it takes."""
    rows = np.flatnonzero(problem.y == label)
    begun = process_time()
    clf.update(problem.X[rows], problem.y[rows])
    return process_time() - begun


def _one(problem: Problem, estimator: Any) -> list[str]:
    everything = np.arange(len(problem.y))
    _fitted(problem, estimator, everything)  # compiles
    refit, seconds = _fitted(problem, estimator, everything)
    labels = np.random.RandomState(0).permutation(np.unique(problem.y))[:_TRIALS]
    nll, spent, trained = [], [], []
    for label in (labels[0], *labels):
        clf, _ = _fitted(problem, estimator, np.flatnonzero(problem.y != label), keep_rows="all")
        spent.append(_updated(clf, problem, label))
        nll.append(_nll(clf, problem))
        trained.append(clf.drift_.share_retrained)
    nll, spent, trained = nll[1:], spent[1:], trained[1:]  # the first compiles
    row = [problem.name, problem.size, type(estimator).__name__, f"{_nll(refit, problem):.3f}"]
    row += [f"{np.mean(nll):.3f}", f"{seconds / np.mean(spent):.1f}", f"{np.mean(trained):.0%}"]
    return row


def _hundred(problem: Problem, estimator: Any) -> list[str]:
    _fitted(problem, estimator, np.arange(len(problem.y)))  # compiles
    refit, seconds = _fitted(problem, estimator, np.arange(len(problem.y)))
    nll, spent, depth = [], [], []
    for order in range(_TRIALS):
        labels = np.random.RandomState(order).permutation(np.unique(problem.y))
        first = np.flatnonzero(np.isin(problem.y, labels[:_FIRST]))
        clf, _ = _fitted(problem, estimator, first, keep_rows="all")
        spent.append(sum(_updated(clf, problem, label) for label in labels[_FIRST:]))
        nll.append(_nll(clf, problem))
        depth.append(clf.tree_.mean_depth)
    row = [problem.name, type(estimator).__name__, f"{_nll(refit, problem):.3f}", f"{np.mean(nll):.3f}"]
    row += [f"{np.mean(spent) / seconds:.0f}", f"{refit.tree_.mean_depth:.1f}", f"{np.mean(depth):.1f}"]
    return row


def main() -> None:
    options = arguments(__doc__, stored="measure nothing, show what is stored")
    store = Store("growing")
    cases = {f"one: {name}": (_one, make) for name, make in ONE.items()}
    cases |= {f"hundred: {name}": (_hundred, make) for name, make in HUNDRED.items()}
    for title, (measure, make) in cases.items():
        if title not in store and not options.stored:
            store.keep(title, measure(*make()))
    rows = {
        kind: [store[each] for each in cases if each.startswith(kind) and each in store]
        for kind in ("one", "hundred")
    }
    more = ["data", "learner", "NLL refit", "NLL updated", "time, in refits", "depth refit", "depth updated"]
    table = markdown_table(more, rows["hundred"])
    text = TEXT.format(trials=_TRIALS, first=_FIRST).strip()
    text += f"\n\n## A hundred classes one by one\n\n{table}\n\n## One class"
    header = ["data", "rows x features", "learner", "NLL refit", "NLL updated", "times faster", "trained"]
    report("growing", text, header, rows["one"], save=options.save)


if __name__ == "__main__":
    main()
