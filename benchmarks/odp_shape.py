"""The shape of the paper's largest dataset, generated: the memory and the time it takes."""

from __future__ import annotations

import multiprocessing
import resource
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from benchmarks.race import arguments, report, seconds
from dichotomies import NestedDichotomyClassifier

if TYPE_CHECKING:
    from dichotomies._common.typing import IntArray

TEXT = """
# The shape of ODP-5K

Text of the size of the paper's largest dataset, generated: 361,488 rows, 422,712 features, 5,000 classes,
about 80 different words a row. Words have Zipf's frequencies; 60 % of a row's come from the 500 words of
its class, the others from all. Two workers. Memory is the largest resident size of a process that also
holds the data and the Python libraries; time is measured against one product of the data's transpose with a
matrix of sixteen columns, dense on that side, by scipy in the same process.
"""

N_ROWS, N_FEATURES, N_CLASSES = 361_488, 422_712, 5_000
_WORDS, _OWN_WORDS = 88, 500  # some words are drawn twice: 80 different ones remain


def generate(n_rows: int, n_features: int, n_classes: int) -> tuple[csr_array, IntArray]:
    """Rows of word counts and their classes, whose sizes vary as real ones do."""
    rng = np.random.default_rng(0)
    size = rng.lognormal(0, 1, n_classes)
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n_rows - n_classes, p=size / size.sum())])
    own = _zipf(rng, n_features, (n_classes, _OWN_WORDS))
    words = _zipf(rng, n_features, (n_rows, _WORDS))
    from_own = rng.random(words.shape, dtype=np.float32) < 0.6
    picks = rng.integers(0, _OWN_WORDS, size=words.shape, dtype=np.int32)
    np.copyto(words, own[y[:, None], picks], where=from_own)
    indptr = np.arange(0, words.size + 1, _WORDS, dtype=np.int32)
    X = csr_array((np.ones(words.size), words.ravel(), indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, y


def _zipf(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> IntArray:
    """Draw numbers below n with probability about proportional to 1 / (number + 10)."""
    uniform = rng.random(shape, dtype=np.float32)
    drawn = 10 * (((n + 10) / 10) ** uniform.astype(np.float64)) - 10
    return np.minimum(drawn, n - 1).astype(np.int32)


def _measure(model: Any, internal: str | None, scale: float, weighted: bool, answer: Any) -> None:
    """Fit in a process of its own and answer with what it took."""
    X, y = generate(int(scale * N_ROWS), int(scale * N_FEATURES), int(scale * N_CLASSES))
    if weighted:
        X.data = np.log1p(X.data)
        X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    before = _peak()
    unit = seconds(lambda: X.T @ np.ones((X.shape[0], 16)))
    clf = NestedDichotomyClassifier(model, internal_calibration=internal, n_jobs=2, random_state=0, verbose=1)
    fit = seconds(lambda: clf.fit(X, y))
    peak = _peak()
    predict = seconds(lambda: clf.predict_proba(X[:1_000]))
    answer.put(
        [f"{X.nnz:,}", f"{before:.1f} GB", f"{peak:.1f} GB", f"{fit / unit:.0f}x", f"{predict / unit:.1f}x"]
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    options = arguments(__doc__, small="a quarter of the size, to try it")
    context = multiprocessing.get_context("spawn")
    rows = []
    for name, model, internal, weighted in (
        ("multinomial naive Bayes, 3-fold Platt, vector scaling", MultinomialNB(), "platt", False),
        ("logistic regression, vector scaling", LogisticRegression(), None, True),
    ):
        answer = context.Queue()
        arguments_of_it = (model, internal, 0.25 if options.small else 1.0, weighted, answer)
        process = context.Process(target=_measure, args=arguments_of_it)
        process.start()
        rows.append([name, *answer.get()])
        process.join()
        print(rows[-1], flush=True)
    header = ["model", "non-zeros", "memory before", "memory at most", "fit", "predict_proba of 1,000 rows"]
    report("odp_shape", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
