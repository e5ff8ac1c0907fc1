"""Time to fit and to predict by rows, features, classes and base learner, with all defaults."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

from benchmarks.race import report, seconds
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dichotomies._common.typing import IntArray, Matrix

TEXT = """
# How long it takes

Processor seconds of one thread to fit one tree and ten trees, and to predict all class probabilities of 1,000
rows by one tree, with everything but the base learner by default: tree, calibration and, in the rows
"chosen", the base learner are chosen on the data, which is part of the time. Kernels were compiled before.
*Flat* is scikit-learn's multinomial `LogisticRegression(max_iter=200)` on the same rows, once, without
calibration or search: time it on your machine to see how that compares with this one.

The data are generated, because sizes are the question. *Numbers* are normal around a random centre for each
class; *texts* have 15 words a row, a third of them from 30 words of the class, as TF-IDF in sparse rows. A
learner that needs more than {limit:.0f} s for one tree is not run on larger data (-); ten trees are not run
where one needs more than a tenth of that, and the flat model not where ten times the time of its last size
exceeds it.
"""
HEADER = [
    "rows x features",
    "classes",
    "base learner",
    "fit, one tree",
    "fit, ten trees",
    "predict 1,000 rows",
    "flat: fit",
]
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


def measured(limit: float) -> Iterator[list[object]]:
    """Lines of the table."""
    too_slow: set[tuple[bool, str]] = set()
    flat_took: dict[bool, float] = {}
    for size in SIZES:
        X, y = size.data()
        train, new = (X[: size.n_rows], y[: size.n_rows]), X[size.n_rows :]
        flat = "-"
        if 10 * flat_took.get(size.is_text, 0.0) < limit:  # the next size has ten times the work or more
            flat_took[size.is_text] = took(LogisticRegression(max_iter=200).fit, *train)
            flat = shown(flat_took[size.is_text])
        for name, estimator in learners(size).items():
            line: list[object] = [size.words, f"{size.n_classes:,}", name]
            if (size.is_text, name) in too_slow:
                yield [*line, "-", "-", "-", flat]
                continue
            tree = NestedDichotomyClassifier(estimator, random_state=0)
            one = took(tree.fit, *train)
            ten = "-"
            if one <= limit / 10:
                ten = shown(took(NestedDichotomyEnsemble(estimator, random_state=0).fit, *train))
            if one > limit:
                too_slow.add((size.is_text, name))
            yield [*line, shown(one), ten, shown(took(tree.predict_proba, new)), flat]


def took(work: Callable[..., Any], *arguments: Any) -> float:
    """Processor seconds of a call."""
    return seconds(lambda: work(*arguments), time.process_time)


def shown(value: float) -> str:
    """Seconds with two digits."""
    return f"{value:.2g} s" if value < 100 else f"{value:.0f} s"


def compile_kernels() -> None:
    """Fit every learner once, to rows enough that compiled kernels are used."""
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
    parser.add_argument(
        "--limit", type=float, default=30.0, help="seconds after which a learner gets no larger data"
    )
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        compile_kernels()
        for row in measured(options.limit):
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    report("how_long", TEXT.format(limit=options.limit), HEADER, rows, save=options.save)


if __name__ == "__main__":
    main()
