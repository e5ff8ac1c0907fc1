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
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.napkinxc_tree import structure
from benchmarks.race import markdown_table, report
from dichotomies import HistAdaBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.problems import Problem

TEXT = """
# Search

Microseconds of processor time per row, one thread, for the five most probable classes: of 2,000 rows
together, and of one row at a time (200 calls). *Whole* is `predict_proba`, the whole distribution; *search*
is `predict_top_k(X, 5, search="exact")`, whose answers are the same; *top 1* is `predict`. *Visits* are the
nodes that a search evaluates, of as many as there are classes less one in each tree. Logistic regression has
C = 10 on log TF-IDF, trees are those of 2-means. *Platt* is `internal_calibration="platt"`, which the
automatic choice has among its candidates; *3 trees* are an ensemble with `pooling="arithmetic"`. napkinXC's
hierarchical softmax has our tree, PECOS its own; both have their defaults and the same C, in an environment
of their own (`python -m venv peers && peers/bin/pip install napkinxc libpecos`, then
`python -m benchmarks.search --peers peers/bin/python --save`); they are compared on texts. *First* and *five*
are how often the true class is the first, and among the five.
"""

CROSSOVER = """
## Where searching pays

Time of the whole distribution over that of a search (above 1 searching is faster) on 500 rows, for the first
classes of a set, and whether `search="auto"` searches. Multinomial naive Bayes of pixels has flat
distributions, so that a search visits a large part of the nodes: "auto" gives it up. *Boosted* nodes are
searched in waves, and only for single rows: their column is the mean of 20 requests.
"""

C = 10.0
_ROWS, _SINGLE = 2_000, 200
_PLATT = {"internal_calibration": "platt"}


def _subjects() -> Iterator[tuple[Problem, Any, str, dict[str, Any], int]]:
    """Problem, base learner, name of the model, its parameters, and number of trees."""
    for name in ("clinc150", "onet_titles", "wordnet"):
        problem, estimator = problems.text(name, weighted=True), LogisticRegression(C=C)
        yield problem, estimator, "LogisticRegression", {}, 1
        yield problem, estimator, "LogisticRegression, Platt", _PLATT, 1
        if name != "clinc150":
            yield problem, estimator, "LogisticRegression, Platt, 3 trees", _PLATT, 3
    for problem in (problems.omniglot(), problems.kanji_fonts()):
        yield problem, GaussianNB(var_smoothing=0.1), "GaussianNB", {}, 1
        yield problem, GaussianNB(var_smoothing=0.1), "GaussianNB, Platt", _PLATT, 1
    yield problem, GaussianNB(var_smoothing=0.1), "GaussianNB, 3 trees", {}, 3


def _classifier(estimator: Any, parameters: dict[str, Any], n_trees: int) -> Any:
    plain = {"internal_calibration": None, "external_calibration": None, "random_state": 0, **parameters}
    if n_trees == 1:
        return NestedDichotomyClassifier(estimator, "2-means", **plain)
    return NestedDichotomyEnsemble(estimator, "2-means", n_estimators=n_trees, pooling="arithmetic", **plain)


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


def _row(subject: tuple[Problem, Any, str, dict[str, Any], int], peers: str | None) -> list[str]:
    problem, estimator, name, parameters, n_trees = subject
    few = np.random.RandomState(0).permutation(len(problem.y_test))[:_ROWS]
    X, y = problem.X_test[few], problem.y_test[few]
    clf = _classifier(estimator, parameters, n_trees).fit(problem.X, problem.y)
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
    row = [problem.name, f"{clf.tree_.n_classes:,}", name, *cells]
    is_text = issparse(X) and name == "LogisticRegression"
    row += _peers(problem, X, y, clf.tree_, peers) if peers and is_text else ["", ""]
    print(*row, sep=" | ", flush=True)
    return row


def _crossover() -> str:
    """Table of the ratios by number of classes."""
    learners: dict[str, tuple[Any, Any]] = {
        "LogisticRegression, sparse": (LogisticRegression(C=C), _text_of),
        "MultinomialNB, dense": (MultinomialNB(), problems.kanji_fonts),
        "GaussianNB": (GaussianNB(var_smoothing=0.1), problems.kanji_fonts),
        "boosted, single row": (HistAdaBoostClassifier(n_estimators=3), problems.kanji_fonts),
    }
    rows = []
    for name, (estimator, problem_of) in learners.items():
        is_boosted = name.startswith("boosted")
        for n_classes in (250, 1_000) if is_boosted else (125, 250, 500, 1_000, 2_000, 4_000):
            problem = problem_of(n_classes)
            clf = _classifier(estimator, {}, 1).fit(problem.X, problem.y)
            X = problem.X_test[:20] if is_boosted else problem.X_test[:500]
            cells = [_ratio(clf, X, k, one_by_one=is_boosted) for k in (1, 5)]
            rows.append([name, f"{n_classes:,}", *cells])
            print(*rows[-1], sep=" | ", flush=True)
    header = ["learner", "classes", "top 1: ratio, auto", "top 5: ratio, auto"]
    return f"{CROSSOVER}\n{markdown_table(header, rows)}"


def _text_of(n_classes: int) -> Problem:
    return problems.text("wordnet", weighted=True, n_classes=n_classes)


def _ratio(clf: Any, X: Any, k: int, *, one_by_one: bool) -> str:
    def timed(work: Callable[[Any], Any]) -> float:
        work(X[:1])
        work(X)
        if not one_by_one:
            return _batch(lambda: work(X), X.shape[0])
        begun = process_time()
        for i in range(X.shape[0]):
            work(X[i : i + 1])
        return process_time() - begun

    whole = timed(clf.predict_proba)
    search = timed(lambda rows: clf.predict_top_k(rows, k, search="exact"))
    is_searched = clf.predict_top_k(X[:1] if one_by_one else X, k).is_searched.all()
    return f"{whole / search:.1f}, {'search' if is_searched else 'whole'}"


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
        rows = [_row(subject, options.peers) for subject in _subjects()]
        crossover = _crossover()
    header = ["data", "classes", "model", "whole", "search", "top 1", "whole, single", "search, single"]
    header += ["visits", "first, five", "napkinXC: batch, single; first, five", "PECOS: the same"]
    text = f"{crossover.strip()}\n\n## Against the whole distribution and other libraries"
    report("search", f"{TEXT}\n{text}", header, rows, save=options.save)


if __name__ == "__main__":
    main()
