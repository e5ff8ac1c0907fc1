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
from benchmarks.race import markdown_table, report
from dichotomies import NestedDichotomyClassifier
from dichotomies.inference.conformal import GROUPS, SCORES
from dichotomies.structures import STRUCTURES
from experiments.datasets import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.problems import Problem

TEXT = """
# Prediction sets

Share of held-out rows whose set (of `predict_set(..., allow_empty=True)`) holds the true class, and mean
size of the sets, for three coverages. *Split*: half of the test rows calibrate the sets, the other half is
measured; *folds*: `prediction_sets=1`, scores of the training rows from the folds of calibration, no row
held out. *Interval* is the central 99 % of the coverage that chance allows with so many rows of both kinds.
*Rare* and *frequent* are the coverages over the third of the classes with the fewest and the most training
rows; a star marks those outside of the interval for so many rows. Logistic regression (C = 10) on log TF-IDF
with the tree of 2-means and Platt scaling at the nodes. MAPIE has the same probabilities, in an environment
of its own (`python -m venv peers && peers/bin/pip install mapie`, then
`python -m benchmarks.prediction_sets --peers peers/bin/python --save`); its regularised sets need many more
calibration rows than there are classes.
"""

TREE = """
## Answers of the tree

Occupations by job title (onet_titles), with the tree of their official codes (`structure="hierarchy"`): 22
major groups, then minor groups, broad occupations and occupations. Answers of `predict_node`, of 1 to 3
groups: how many rows hold the true class, mean number of classes, and for how many rows the answer, or every
group of it, is within an occupation, a broad occupation, a minor group, a major group, or no group; in
brackets how often such an answer holds the true class. 1,000 rows calibrate the coverage, 1,000 are measured.
"""

#: Characters that the codes of a level have in common: major group, minor group, broad occupation.
LEVELS = {"occupation": 10, "broad": 6, "minor": 4, "major": 2}

COVERAGES = (0.8, 0.9, 0.95)
_MOST_ROWS = 2_000
_PLATT: dict[str, Any] = {"internal_calibration": "platt", "external_calibration": None, "random_state": 0}
_THEIRS = {"least-ambiguous": "lac", "adaptive": "aps"}


def _interval(coverage: float, n_calibration: float, n_test: int) -> tuple[float, float]:
    """Coverage varies with both samples; normal approximation around a binomial."""
    low, high = binom.interval(0.99, n_test, coverage)
    wider = np.sqrt(1 + n_test / n_calibration)
    return coverage + (low / n_test - coverage) * wider, coverage + (high / n_test - coverage) * wider


def _third(y: Any, codes: Any) -> tuple[Any, Any]:
    """Masks of rows of rare and of frequent classes."""
    size = np.bincount(codes)
    low, high = np.quantile(size, [1 / 3, 2 / 3])
    return size[y] <= low, size[y] >= high


def _rows(problem: Problem, peers: str | None) -> Iterator[list[str]]:
    order = np.random.RandomState(0).permutation(len(problem.y_test))[: 2 * _MOST_ROWS]
    cal, test = np.array_split(order, 2)
    clf = NestedDichotomyClassifier(LogisticRegression(C=10), "2-means", prediction_sets=1, **_PLATT)
    folds = clf.fit(problem.X, problem.y).conformal_
    split = clf.calibrate_sets(problem.X_test[cal], problem.y_test[cal]).conformal_
    theirs = _mapie(clf, problem, cal, test, peers) if peers else {}
    for c, coverage in enumerate(COVERAGES):
        for rows, name in ((split, "split"), (folds, "folds")):
            clf.conformal_ = rows
            for score in SCORES:
                for by in GROUPS if score == SCORES[0] else GROUPS[:1]:
                    other = theirs.get(_THEIRS.get(score, "")) if by == "all" and rows is split else None
                    cells = _set_cells(clf, problem, test, coverage, score, by)
                    row = [problem.name, f"{coverage:.2f}", f"{name}, {score}, {by}", *cells]
                    row += [f"{other[0][c]:.3f}, {other[1][c]:.1f}" if other else ""]
                    print(*row, sep=" | ", flush=True)
                    yield row


def _set_cells(clf: Any, problem: Problem, test: Any, coverage: float, score: str, by: str) -> list[str]:
    X, y = problem.X_test[test], problem.y_test[test]
    sets = clf.predict_set(X, coverage, score=score, by=by, allow_empty=True)
    held = np.array([label in labels for label, labels in zip(y, sets, strict=True)])
    n_rows = len(clf.conformal_.codes)
    low, high = _interval(coverage, n_rows, len(y))
    parts = []
    for few in _third(y, problem.y):
        a, b = _interval(coverage, n_rows * few.mean(), int(few.sum()))
        mean = held[few].mean()
        parts.append(f"{mean:.3f}{'' if a <= mean <= b else '*'}")
    size = np.mean([len(labels) for labels in sets])
    return [f"{low:.3f} to {high:.3f}", f"{held.mean():.3f}", ", ".join(parts), f"{size:.1f}"]


def _tree_answers() -> str:
    """Table of the levels at which the answers of a tree are given."""
    problem = problems.text("onet_titles", weighted=True)
    labels = np.unique(load("onet_titles").y)
    order = np.random.RandomState(0).permutation(len(problem.y_test))[:2_000]
    (X_cal, y_cal), (X, y) = (
        (problem.X_test[o], labels[problem.y_test[o]]) for o in np.array_split(order, 2)
    )
    tree = STRUCTURES.create("hierarchy", levels=(2, 4, 6))
    clf = NestedDichotomyClassifier(LogisticRegression(C=10), tree, **_PLATT).fit(
        problem.X, labels[problem.y]
    )
    clf.calibrate_sets(X_cal, y_cal, groups=3)
    rows = []
    for asked in ({"confidence": 0.8}, *({"coverage": coverage} for coverage in COVERAGES)):
        for groups in (1, 2, 3):
            answers = clf.predict_node(X, **asked, groups=groups)
            held, level = answers.holds(y), _level(answers)
            cells = [
                f"{(level == i).mean():.2f} ({held[level == i].mean():.2f})" if (level == i).any() else "0.00"
                for i in range(len(LEVELS) + 1)
            ]
            name, value = next(iter(asked.items()))
            rows.append(
                [f"{name} {value}", groups, f"{held.mean():.3f}", f"{answers.size.mean():.1f}", *cells]
            )
            print(*rows[-1], sep=" | ", flush=True)
    header = ["asked", "groups", "held", "size", *LEVELS, "more"]
    return f"{TREE}\n{markdown_table(header, rows)}"


def _level(answers: Any) -> Any:
    """Number of the narrowest level that every group of an answer is within."""
    start, stop = answers.start.reshape(len(answers), -1), answers.stop.reshape(len(answers), -1)
    labels = answers.tree.leaf_labels
    level = np.zeros(len(answers), dtype=int)
    for i in range(len(answers)):
        for a, b in zip(start[i].tolist(), stop[i].tolist(), strict=True):
            same = [len({label[:n] for label in labels[a:b].tolist()}) <= 1 for n in LEVELS.values()]
            level[i] = max(level[i], [*same, True].index(True))
    return level


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
    header = ["data", "coverage", "sets", "interval", "held", "rare, frequent", "size", "MAPIE: held, size"]
    text = f"{TEXT.strip()}\n\n{_tree_answers().strip()}\n\n## Sets"
    report("prediction_sets", text, header, rows, save=options.save)


if __name__ == "__main__":
    main()
