"""Coverage and size of prediction sets on rows held out, beside MAPIE's, and depth of tree answers."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from benchmarks import problems
from benchmarks.race import report
from dichotomies import NestedDichotomyClassifier
from dichotomies.inference.conformal import GROUPS, SCORES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.problems import Problem

TEXT = """
# Prediction sets

Share of held-out rows whose set (of `predict_set(..., allow_empty=True)`) holds the true class, and mean
size of the sets, for three coverages. Half of the test rows calibrate the sets, the other half is measured;
*interval* is the central 99 % of the coverage that chance allows with so many rows of both kinds. *Rare*
and *frequent* are the coverages over the third of the classes with the fewest and the most training rows.
Logistic regression (C = 10) on log TF-IDF with the tree of 2-means and vector scaling. MAPIE has the same
probabilities, in an environment of its own (`python -m venv peers && peers/bin/pip install mapie`, then
`python -m benchmarks.prediction_sets --peers peers/bin/python --save`); its regularised sets need many more
calibration rows than there are classes. *Node* answers are the deepest node that holds the coverage: the
share that does, the mean number of classes, and how often it is a single class.
"""

COVERAGES = (0.8, 0.9, 0.95)
_MOST_ROWS = 2_000
_THEIRS = {"least-ambiguous": "lac", "adaptive": "aps"}


def _interval(coverage: float, n_calibration: int, n_test: int) -> str:
    """Coverage varies with both samples; normal approximation around a binomial."""
    low, high = binom.interval(0.99, n_test, coverage)
    wider = np.sqrt(1 + n_test / n_calibration)
    low, high = (coverage + (each / n_test - coverage) * wider for each in (low, high))
    return f"{low:.3f} to {high:.3f}"


def _third(y: Any, codes: Any) -> tuple[Any, Any]:
    """Masks of rows of rare and of frequent classes."""
    size = np.bincount(codes)
    low, high = np.quantile(size, [1 / 3, 2 / 3])
    return size[y] <= low, size[y] >= high


def _rows(problem: Problem, peers: str | None) -> Iterator[list[str]]:
    order = np.random.RandomState(0).permutation(len(problem.y_test))[: 2 * _MOST_ROWS]
    cal, test = np.array_split(order, 2)
    clf = NestedDichotomyClassifier(LogisticRegression(C=10), "2-means", random_state=0)
    clf.fit(problem.X, problem.y).calibrate_sets(problem.X_test[cal], problem.y_test[cal])
    X, y = problem.X_test[test], problem.y_test[test]
    rare, frequent = _third(y, problem.y)
    theirs = _mapie(clf, problem, cal, test, peers) if peers else {}
    for c, coverage in enumerate(COVERAGES):
        interval = _interval(coverage, len(cal), len(test))
        for score in SCORES:
            for by in GROUPS if score == SCORES[0] else GROUPS[:1]:
                sets = clf.predict_set(X, coverage, score=score, by=by, allow_empty=True)
                held = np.array([label in labels for label, labels in zip(y, sets, strict=True)])
                size = np.mean([len(labels) for labels in sets])
                other = theirs.get(_THEIRS.get(score, "")) if by == "all" else None
                row = [problem.name, f"{coverage:.2f}", interval, f"{score}, {by}", f"{held.mean():.3f}"]
                row += [f"{held[rare].mean():.3f}, {held[frequent].mean():.3f}", f"{size:.1f}"]
                row += [f"{other[0][c]:.3f}, {other[1][c]:.1f}" if other else ""]
                print(*row, sep=" | ", flush=True)
                yield row
        answers = clf.predict_node(X, coverage=coverage)
        held = answers.holds(y)
        row = [problem.name, f"{coverage:.2f}", interval, "node", f"{held.mean():.3f}"]
        row += [f"{held[rare].mean():.3f}, {held[frequent].mean():.3f}"]
        row += [f"{answers.size.mean():.1f}; one class: {(answers.size == 1).mean():.2f}", ""]
        print(*row, sep=" | ", flush=True)
        yield row


def _mapie(clf: Any, problem: Problem, cal: Any, test: Any, python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proba.npz"
        parts = {"calibration": cal, "test": test}
        proba = {name: clf.predict_proba(problem.X_test[rows]) for name, rows in parts.items()}
        labels = {f"y_{name}": problem.y_test[rows] for name, rows in parts.items()}
        np.savez(file, **proba, **labels)
        command = [python, str(Path(__file__).with_name("mapie_sets.py")), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of an environment with mapie")
    parser.add_argument("--save", action="store_true", help="write the table to docs/benchmarks/")
    options = parser.parse_args()
    rows = [
        row
        for name in ("clinc150", "onet_titles", "wordnet")
        for row in _rows(problems.text(name, weighted=True), options.peers)
    ]
    header = ["data", "coverage", "interval", "sets", "held", "rare, frequent", "size", "MAPIE: held, size"]
    report("prediction_sets", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
