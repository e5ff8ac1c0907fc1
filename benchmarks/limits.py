"""How far the fast learners are from what the machine can do, and where their time goes."""

from __future__ import annotations

from dataclasses import fields
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.race import arguments, report, seconds
from dichotomies import HistAdaBoostClassifier, NestedDichotomyClassifier
from dichotomies._common.chunks import chunk_rows
from dichotomies._kernels.composition import class_log_proba
from dichotomies.inference.scorers import base_scorers

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.problems import Problem

TEXT = """
# How far from the machine's limit

One thread. The machine's rates are measured first: a product of large matrices for arithmetic, a copy of
a large array for memory. *Least work* is what the answer cannot be had without; *of the limit* is the
time that work would take at those rates, divided by the time it took. The columns after it say where the
time of `predict_proba` goes: the nodes' log-odds, their sums along the paths (an exponential and a
logarithm per row and node), and the exponentials of the class log-probabilities at the end.

- Multiplying matrices, the least work is the multiplications and additions of one product (logistic
  regression) or two (Gaussian naive Bayes: x and its square).
- Text: reading and writing twice eight bytes for each entry of the weights that a row's words touch.
- Boosted trees: three comparisons per row, node and tree, counted like multiplications.
- Fitting naive Bayes: reading X and writing the weights once. Fitting a dense logistic regression: reading
  each node's rows five times, in single precision. Sparse: reading each node's rows ten times. Boosting: one
  addition of eight bytes per row, feature, tree and level, at the rate of memory.
"""


def _cpu(work: Callable[[], Any]) -> float:
    return seconds(work, process_time)


def _machine() -> tuple[float, float]:
    """Arithmetic in operations per second, and memory in bytes per second."""
    A = np.random.RandomState(0).random_sample((2_000, 2_000))
    arithmetic = 2 * 2_000**3 / min(_cpu(lambda: A @ A) for _ in range(3))
    big, copy = np.ones(2**26), np.ones(2**26)
    memory = 2 * big.nbytes / min(_cpu(lambda: np.copyto(copy, big)) for _ in range(3))
    return arithmetic, memory


def _stages(clf: Any, X: Any) -> tuple[float, float, float]:
    """Seconds for the log-odds of X, for their sums along the paths, and for the exponentials at the end."""
    scorer, tree, step = clf.model_.scorer, clf.tree_, chunk_rows(clf.tree_.n_nodes)
    out = np.zeros((min(step, X.shape[0]), tree.n_classes))
    spent = np.zeros(3)
    for i in range(0, X.shape[0], step):
        begun = process_time()
        log_odds = scorer.log_odds(X[i : i + step])
        scored = process_time()
        log_proba = class_log_proba(tree, log_odds, out[: len(log_odds)])
        composed = process_time()
        np.exp(log_proba, out=log_proba)
        spent += scored - begun, composed - scored, process_time() - composed
    scoring, composing, exponentials = spent.tolist()
    return scoring, composing, exponentials


def _dense_product(problem: Problem, n_products: int) -> float:
    return float(2 * n_products * problem.X_test.shape[0] * problem.X.shape[1] * problem.tree.n_nodes)


def _touched(problem: Problem, clf: Any) -> float:
    """Bytes moved for the entries of the weights that the words of the test rows have."""
    weights = base_scorers(clf.model_.scorer)[0]
    entries = np.diff(weights.feature_offsets)
    return float(16 * entries[problem.X_test.indices].sum())


def _node_rows(clf: Any, problem: Problem) -> Any:
    """Rows at every node."""
    sizes = np.concatenate([[0], np.cumsum(np.bincount(problem.y)[clf.tree_.leaf_order])])
    return sizes[clf.tree_.stop] - sizes[clf.tree_.start]


def _row(
    name: str,
    problem: Problem,
    model: Any,
    fit_work: Callable[[Any], float],
    predict_work: Callable[[Any], float],
) -> list[str]:
    """A row of the table; work is in seconds at the machine's rates."""
    clf = NestedDichotomyClassifier(
        model, problem.tree, internal_calibration=None, external_calibration=None, random_state=0
    )
    clf.fit(problem.X, problem.y).predict_proba(problem.X_test[:10])
    fit = _cpu(lambda: clf.fit(problem.X, problem.y))
    stages = _stages(clf, problem.X_test)
    scoring = stages[0]
    shares = [f"{100 * part / sum(stages):.0f} %" for part in stages]
    limits = [f"{100 * fit_work(clf) / fit:.0f} %", f"{100 * predict_work(clf) / scoring:.0f} %"]
    row = [name, problem.name, *limits, *shares]
    print(*row, sep=" | ", flush=True)
    return row


def main() -> None:
    options = arguments(__doc__)
    with threadpool_limits(1):
        arithmetic, memory = _machine()
        rates = f"Here: {arithmetic / 1e9:.0f} billion operations and {memory / 1e9:.1f} GB a second."
        rows = _rows(arithmetic, memory)
    header = [
        "learner",
        "data",
        "fit: of the limit",
        "log-odds: of the limit",
        "log-odds",
        "sums",
        "exponentials",
    ]
    report("limits", f"{TEXT}\n{rates}", header, rows, save=options.save)


def _rows(arithmetic: float, memory: float) -> list[list[str]]:
    def bayes_fit(problem: Problem) -> Callable[[Any], float]:
        return lambda clf: _bytes(problem.X, base_scorers(clf.model_.scorer)[0]) / memory

    def passes(problem: Problem) -> Callable[[Any], float]:
        return lambda clf: 5 * 4 * problem.X.shape[1] * float(_node_rows(clf, problem).sum()) / memory

    def sweeps(problem: Problem) -> Callable[[Any], float]:
        per_row = 12 * problem.X.nnz / problem.X.shape[0]
        return lambda clf: 10 * per_row * float(_node_rows(clf, problem).sum()) / memory

    def histograms(problem: Problem) -> Callable[[Any], float]:
        return lambda clf: 8 * 150 * problem.X.shape[1] * float(_node_rows(clf, problem).sum()) / memory

    omniglot, kanji = problems.omniglot(), problems.kanji_fonts()
    counts, weighted = (problems.text("wordnet", weighted=w) for w in (False, True))
    letter = problems.letter()
    return [
        _row(
            "multinomial naive Bayes",
            counts,
            MultinomialNB(),
            bayes_fit(counts),
            lambda clf: _touched(counts, clf) / memory,
        ),
        _row(
            "Gaussian naive Bayes",
            kanji,
            GaussianNB(),
            bayes_fit(kanji),
            lambda _: _dense_product(kanji, 2) / arithmetic,
        ),
        _row(
            "logistic regression",
            omniglot,
            LogisticRegression(),
            passes(omniglot),
            lambda _: _dense_product(omniglot, 1) / arithmetic,
        ),
        _row(
            "logistic regression",
            weighted,
            LogisticRegression(),
            sweeps(weighted),
            lambda clf: _touched(weighted, clf) / memory,
        ),
        _row(
            "boosted trees",
            letter,
            HistAdaBoostClassifier(),
            histograms(letter),
            lambda clf: 150 * len(letter.y_test) * clf.tree_.n_nodes / arithmetic,
        ),
    ]


def _bytes(X: Any, scorer: Any) -> float:
    """Size of the data and of every array of a scorer."""
    data = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    parts = [getattr(scorer, field.name) for field in fields(scorer)]
    arrays = [array for part in parts for array in (part if isinstance(part, tuple) else (part,))]
    return float(data + sum(array.nbytes for array in arrays))


if __name__ == "__main__":
    main()
