"""The shapes of the paper's largest datasets, generated: the memory and the time they take.

Rows are stored: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from benchmarks.race import Store, arguments, report, seconds
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import IntArray

TEXT = """
# The paper's largest shapes

Rows of the size of the paper's two largest datasets, generated, in single precision. *ODP-5K*: 361,488 rows,
422,712 words, 5,000 classes, about 80 different words a row; words have Zipf's frequencies, and 60 % of a
row's come from the 500 words of its class. *ILSVR2010*: 1,111,406 rows of counts of 1,000 visual words, 1,000
classes, about 180 different words a row; counts are Poisson's, the rates of a class those of all times
log-normal factors. Rows of logistic regression have logarithms of counts and unit length.

Platt scaling at the nodes and vector scaling behind them, both cross-fitted; the structure and the number of
folds are the defaults; boosting is of 10 trees of 16 leaves a node. Every fit runs in a process of its own,
on one thread. *Memory* is the largest resident size of the process, before the fit (data and libraries) and
in the end. *Time* is processor time, divided by that of one pass over the data: a product of its transpose
with a matrix of sixteen columns by scipy. A fit that took {limit} minutes would be ended, and show what it
had used by then.
"""

_LIMIT = 60 * 60
_WORDS, _OWN_WORDS = 88, 500  # some words are drawn twice: 80 different ones remain
_VISUAL_BATCH = 10_000


def texts(scale: float) -> tuple[csr_array, IntArray]:
    """Rows of word counts in the shape of ODP-5K and their classes, whose sizes vary as real ones do."""
    n_rows, n_features, n_classes = (int(scale * each) for each in (361_488, 422_712, 5_000))
    rng = np.random.default_rng(0)
    size = rng.lognormal(0, 1, n_classes)
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n_rows - n_classes, p=size / size.sum())])
    own = _zipf(rng, n_features, (n_classes, _OWN_WORDS))
    words = _zipf(rng, n_features, (n_rows, _WORDS))
    from_own = rng.random(words.shape, dtype=np.float32) < 0.6
    picks = rng.integers(0, _OWN_WORDS, size=words.shape, dtype=np.int32)
    np.copyto(words, own[y[:, None], picks], where=from_own)
    indptr = np.arange(0, words.size + 1, _WORDS, dtype=np.int32)
    ones = np.ones(words.size, dtype=np.float32)
    X = csr_array((ones, words.ravel(), indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, y


def _zipf(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> IntArray:
    """Draw numbers below n with probability about proportional to 1 / (number + 10)."""
    uniform = rng.random(shape, dtype=np.float32)
    drawn = 10 * (((n + 10) / 10) ** uniform.astype(np.float64)) - 10
    return np.minimum(drawn, n - 1).astype(np.int32)


def images(scale: float) -> tuple[csr_array, IntArray]:
    """Rows of counts of visual words in the shape of ILSVR2010, and their classes."""
    n_rows, n_words, n_classes = int(scale * 1_111_406), 1_000, int(scale * 1_000)
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n_rows) % n_classes)
    common = 0.21 * rng.gamma(2.0, 0.5, n_words)
    rates = common * rng.lognormal(0, 0.15, (n_classes, n_words))
    data, indices, lengths = [], [], []
    for begin in range(0, n_rows, _VISUAL_BATCH):
        batch = csr_array(rng.poisson(rates[y[begin : begin + _VISUAL_BATCH]]))
        data.append(batch.data.astype(np.float32))
        indices.append(batch.indices.astype(np.int32))
        lengths.append(np.diff(batch.indptr))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
    values = np.concatenate(data)
    del data
    return csr_array((values, np.concatenate(indices), indptr), shape=(n_rows, n_words)), y


SHAPES: dict[str, Callable[[float], tuple[csr_array, IntArray]]] = {"ODP-5K": texts, "ILSVR2010": images}
LEARNERS: dict[str, Callable[[], Any]] = {
    "naive Bayes": MultinomialNB,
    "logistic regression": LogisticRegression,
    "boosted trees": lambda: HistGradientBoostClassifier(10, max_leaf_nodes=16),
}


def _unit_length(X: csr_array) -> None:
    """Take logarithms of counts and divide every row by its length, in place."""
    np.log1p(X.data, out=X.data)
    length = np.sqrt(X.power(2).sum(axis=1)).astype(np.float32)
    X.data /= np.repeat(np.maximum(length, 1e-9), np.diff(X.indptr))


def _child(shape: str, learner: str, scale: str) -> None:
    """Entry of the process: generate, fit within the limit of time, predict; print what was measured."""
    X, y = SHAPES[shape](float(scale))
    if learner == "logistic regression":
        _unit_length(X)
    unit = seconds(lambda: X.T @ np.ones((X.shape[0], 16), dtype=np.float32), process_time)
    _print(values=X.nnz, unit=unit, before=_peak())
    resource.setrlimit(resource.RLIMIT_CPU, (int(process_time()) + _LIMIT, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXCPU, _out_of_time)
    clf = NestedDichotomyClassifier(
        LEARNERS[learner](), internal_calibration="platt", external_calibration="vector", random_state=0
    )
    fit = seconds(lambda: clf.fit(X, y), process_time)
    _print(fit=fit, peak=_peak())
    _print(predict=seconds(lambda: clf.predict_proba(X[:1_000]), process_time))


def _out_of_time(*_: Any) -> None:
    _print(peak=_peak())
    sys.exit()


def _print(**values: float) -> None:
    print(json.dumps(values), flush=True)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _row(shape: str, learner: str, scale: float) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.odp_shape", "--child", shape, learner, str(scale)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, float] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    if "peak" not in found:
        raise RuntimeError(f"{shape}, {learner}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    unit = found["unit"]
    part = shape if scale == 1 else f"{shape}, {scale:g} of it"
    row = [part, learner, f"{found['values']:,}", f"{found['before']:.1f} GB", f"{found['peak']:.1f} GB"]
    if "fit" not in found:
        return [*row, f"{unit:.2f} s", f"not finished within {_LIMIT / unit:.0f}x", ""]
    return [*row, f"{unit:.2f} s", f"{found['fit'] / unit:.0f}x", f"{found['predict'] / unit:.1f}x"]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
        return
    small = "a twentieth of the size, to try it; nothing is stored"
    options = arguments(__doc__, small=small, stored="measure nothing, show what is stored")
    cases = {f"{shape}, {learner}": (shape, learner) for learner in LEARNERS for shape in SHAPES}
    if options.small:
        rows = [_row(*case, 0.05) for case in cases.values()]
    else:
        store = Store("odp_shape")
        for title, case in cases.items():
            if title not in store and not options.stored:
                store.keep(title, _row(*case, 1.0))
        rows = [
            store[title]
            for title in sorted(cases, key=lambda title: title.split(",")[0], reverse=True)
            if title in store
        ]
    header = ["shape", "learner", "non-zeros", "memory before", "memory at most", "one pass", "fit"]
    text = TEXT.format(limit=_LIMIT // 60)
    report("odp_shape", text, [*header, "predict_proba of 1,000 rows"], rows, save=options.save)


if __name__ == "__main__":
    main()
