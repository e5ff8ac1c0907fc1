"""Top-5 answers by search against the whole distribution, napkinXC and PECOS."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix, issparse, save_npz
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.napkinxc_tree import structure
from benchmarks.race import report
from dichotomies import NestedDichotomyClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.problems import Problem

TEXT = """
# Search

Microseconds of processor time per row, one thread, for the five most probable classes: of 2,000 rows
together, and of one row at a time (200 calls). *Whole* is `predict_proba`, the whole distribution; *search*
is `predict_top_k(X, 5, search="exact")`, whose answers are the same; *top 1* is `predict`. *Visits* are the
nodes that a search evaluates, of as many as there are classes less one. Logistic regression has C = 10 on log
TF-IDF; trees are those of 2-means; no calibration (internal calibration costs a multiplication per visit).
napkinXC's hierarchical softmax has our tree, PECOS its own; both have their defaults and the same C, in an
environment of their own (`python -m venv peers && peers/bin/pip install napkinxc libpecos`, then
`python -m benchmarks.search --peers peers/bin/python --save`); they are compared on texts. *First* and *five*
are how often the true class is the first, and among the five.
"""

C = 10.0
_ROWS, _SINGLE = 2_000, 200


def _subjects() -> Iterator[tuple[Problem, Any]]:
    for name in ("clinc150", "onet_titles"):
        yield problems.text(name, weighted=True), LogisticRegression(C=C)
    yield problems.omniglot(), GaussianNB(var_smoothing=0.1)
    yield problems.text("wordnet", weighted=True), LogisticRegression(C=C)
    yield problems.kanji_fonts(), GaussianNB(var_smoothing=0.1)


def _batch(work: Callable[[], Any], n_rows: int) -> float:
    """Microseconds per row, the median of five runs."""
    times = []
    for _ in range(5):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return 1e6 * median(times) / n_rows


def _one_by_one(answer: Callable[[Any], Any], X: Any) -> float:
    ones = [X[i : i + 1] for i in range(_SINGLE)]
    answer(ones[0])
    begun = process_time()
    for one in ones:
        answer(one)
    return 1e6 * (process_time() - begun) / _SINGLE


def _row(problem: Problem, estimator: Any, peers: str | None) -> list[str]:
    few = np.random.RandomState(0).permutation(len(problem.y_test))[:_ROWS]
    X, y = problem.X_test[few], problem.y_test[few]
    clf = NestedDichotomyClassifier(estimator, "2-means", external_calibration=None, random_state=0)
    clf.fit(problem.X, problem.y)
    best = clf.predict_top_k(X, 5, search="exact")  # compiles, and lays out the weights
    clf.predict_proba(X[:10])
    clf.predict(X[:10])
    whole = _batch(lambda: clf.predict_proba(X), len(y))
    search = _batch(lambda: clf.predict_top_k(X, 5, search="exact"), len(y))
    first = _batch(lambda: clf.predict(X), len(y))
    single = [
        _one_by_one(answer, X)
        for answer in (clf.predict_proba, lambda x: clf.predict_top_k(x, 5, search="exact"))
    ]
    hits = best[0] == y[:, None]
    cells = [f"{whole:.0f}", f"{search:.1f} ({whole / search:.1f}x)", f"{first:.1f} ({whole / first:.1f}x)"]
    cells += [f"{each:.0f}" for each in single]
    cells += [f"{best.n_visits.mean():.0f}", f"{hits[:, 0].mean():.3f}, {hits.any(axis=1).mean():.3f}"]
    row = [problem.name, f"{clf.tree_.n_classes:,}", type(estimator).__name__, *cells]
    row += _peers(problem, X, y, clf.tree_, peers) if peers and issparse(X) else ["", ""]
    print(*row, sep=" | ", flush=True)
    return row


def _peers(problem: Problem, X: Any, y: Any, tree: Any, python: str) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_npz(folder / "X.npz", csr_matrix(problem.X))
        save_npz(folder / "X_test.npz", csr_matrix(X))
        np.save(folder / "y.npy", problem.y)
        np.save(folder / "y_test.npy", y)
        np.save(folder / "tree.npy", np.array(structure(tree)))
        script = Path(__file__).with_name("search_peers.py")
        command = [python, str(script), name, str(C)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return [
        f"{each['batch']:.0f}, {each['single']:.0f}; {each['first']:.3f}, {each['five']:.3f}"
        for each in found.values()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of an environment with napkinxc and libpecos")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    with threadpool_limits(1):
        rows = [_row(problem, estimator, options.peers) for problem, estimator in _subjects()]
    header = ["data", "classes", "learner", "whole", "search", "top 1", "whole, single", "search, single"]
    header += ["visits", "first, five", "napkinXC: batch, single; first, five", "PECOS: the same"]
    report("search", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
