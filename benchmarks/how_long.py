"""Time to fit and to predict by rows, features, classes and base learner, with all defaults."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

from benchmarks.race import RESULTS, report, seconds
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dichotomies._common.typing import IntArray, Matrix

TEXT = """
# How long it takes

Processor seconds of one thread to fit one tree and ten trees, and to predict all class probabilities of 1,000
rows by one tree, with everything but the base learner by default: tree, calibration and, in the rows
"chosen", the base learner are chosen on the data, which is part of the time. Kernels were compiled before.
*Flat* is scikit-learn's multinomial `LogisticRegression(max_iter=200)` on the same rows, without calibration
or search: time it on your machine to see how that compares with this one.

The data are generated, because sizes are the question. *Numbers* are normal around a random centre for each
class; *texts* have 15 words a row, a third of them from 30 words of the class, as TF-IDF in sparse rows. What
would need more than {limit:.0f} s by the time of the size before is left out; ten trees are not run (-) where
one needs more than a tenth of that.
"""
HEADER = [
    "rows x features",
    "classes",
    "base learner",
    "fit, one tree",
    "fit, ten trees",
    "predict 1,000 rows",
]
STORE = RESULTS / "how_long.jsonl"
_PREDICTED = 1_000


@dataclass(frozen=True)
class Size:
    """A problem: rows, features, classes, sparse or not."""

    n_rows: int
    n_features: int
    n_classes: int
    is_text: bool = False

    def data(self) -> tuple[Matrix, IntArray]:
        """Rows for training and, after them, those to predict."""
        return self._texts() if self.is_text else self._numbers()

    def _numbers(self) -> tuple[Matrix, IntArray]:
        rng = np.random.default_rng(0)
        y = self._labels(rng)
        centres = rng.normal(size=(self.n_classes, self.n_features))
        return centres[y] + 1.2 * rng.normal(size=(len(y), self.n_features)), y

    def _texts(self) -> tuple[Matrix, IntArray]:
        rng = np.random.default_rng(0)
        y = self._labels(rng)
        common = (rng.pareto(1.0, size=(len(y), 10)) * 50).astype(int) % self.n_features
        of_class = rng.integers(self.n_features, size=(self.n_classes, 30))
        own = of_class[y[:, None], rng.integers(30, size=(len(y), 5))]
        words = np.hstack([common, own])
        rows = np.repeat(np.arange(len(y)), words.shape[1])
        counts = sp.csr_matrix((np.ones(words.size), (rows, words.ravel())), shape=(len(y), self.n_features))
        frequency = np.bincount(counts.indices, minlength=self.n_features)
        counts.data = np.log1p(counts.data) * np.log(len(y) / frequency[counts.indices])
        length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        return sp.csr_matrix(sp.diags(1 / length) @ counts), y

    def _labels(self, rng: np.random.Generator) -> IntArray:
        n = self.n_rows + _PREDICTED
        return rng.permutation(np.arange(n) % self.n_classes).astype(np.int64)

    @property
    def work(self) -> float:
        """A guess at how the time grows from size to size."""
        return self.n_rows * (15 if self.is_text else self.n_features) * float(np.log2(self.n_classes))

    @property
    def words(self) -> str:
        """The size as the table has it."""
        return f"{self.n_rows:,} x {self.n_features:,}, {'texts' if self.is_text else 'numbers'}"


SIZES = (
    Size(1_000, 20, 10),
    Size(10_000, 20, 10),
    Size(10_000, 50, 100),
    Size(100_000, 50, 100),
    Size(30_000, 100, 1_000),
    Size(5_000, 10_000, 100, is_text=True),
    Size(30_000, 30_000, 1_000, is_text=True),
)


def learners(size: Size) -> dict[str, Any]:
    """Base learners that suit the data, the quickest first."""
    if size.is_text:
        return {
            "`MultinomialNB()`": MultinomialNB(),
            "`LogisticRegression(C=10)`": LogisticRegression(C=10),
            "chosen": None,
        }
    return {
        "`GaussianNB()`": GaussianNB(),
        "`LogisticRegression()`": LogisticRegression(),
        "`HistGradientBoostClassifier()`": HistGradientBoostClassifier(),
        "chosen": None,
    }


def measured(limit: float, *, only_stored: bool = False) -> Iterator[list[Any]]:
    """Lines of the table; what is in the store is not measured again."""
    store = {tuple(line[:3]): line for line in map(json.loads, STORE.open())} if STORE.exists() else {}
    last: dict[tuple[bool, str], tuple[float, float]] = {}
    for size in SIZES:
        problem = size.data()
        for name, estimator in {"flat": None, **learners(size)}.items():
            kind, key = (size.is_text, name), (size.words, f"{size.n_classes:,}", name)
            took_before, work_before = last.get(kind, (0.0, 1.0))
            is_left_out = only_stored or took_before * size.work / work_before > limit
            if key not in store and is_left_out:
                continue
            if key not in store:
                store[key] = [*key, *_times(problem, size.n_rows, name, estimator, limit)]
                with STORE.open("a") as file:
                    print(json.dumps(store[key]), file=file)
            last[kind] = store[key][3], size.work
            if name != "flat":
                yield store[key]
            else:
                yield [*key[:2], "flat `LogisticRegression()`", *store[key][3:]]


def _times(
    problem: tuple[Matrix, IntArray], n_rows: int, name: str, estimator: Any, limit: float
) -> list[float | None]:
    """Seconds of one tree, of ten, and of predicting, or those of the flat model."""
    compile_kernels()
    X, y = problem
    train = X[:n_rows], y[:n_rows]
    tree = NestedDichotomyClassifier(estimator, random_state=0)
    model = LogisticRegression(max_iter=200) if name == "flat" else tree
    one = took(model.fit, *train)
    ten = None
    if name != "flat" and one <= limit / 10:
        ten = took(NestedDichotomyEnsemble(estimator, random_state=0).fit, *train)
    model.predict_proba(X[n_rows:])  # loads what was compiled
    return [one, ten, took(model.predict_proba, X[n_rows:])]


def took(work: Callable[..., Any], *arguments: Any) -> float:
    """Processor seconds of a call."""
    return seconds(lambda: work(*arguments), time.process_time)


def shown(value: float | None) -> str:
    """Seconds with two digits."""
    if value is None:
        return "-"
    return f"{value:.2g} s" if value < 100 else f"{value:.0f} s"


@cache
def compile_kernels() -> None:
    """Fit every learner once, before the first measurement, to rows enough that compiled kernels are used."""
    for size in (Size(6_000, 20, 10), Size(6_000, 2_000, 20, is_text=True)):
        X, y = size.data()
        for estimator in learners(size).values():
            for model in (
                NestedDichotomyClassifier(estimator),
                NestedDichotomyEnsemble(estimator, n_estimators=2),
            ):
                model.fit(X, y).predict_proba(X[:_PREDICTED])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=20.0, help="most seconds of one fit")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    parser.add_argument("--stored", action="store_true", help="measure nothing, write what is stored")
    options = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        for row in measured(options.limit, only_stored=options.stored):
            rows.append([*row[:3], *map(shown, row[3:])])
            print(*rows[-1], sep=" | ", flush=True)
    report("how_long", TEXT.format(limit=options.limit), HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
