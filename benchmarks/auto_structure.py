"""The tree that is chosen, against the shallow tree and the deep one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks import problems
from benchmarks.race import arguments, report
from dichotomies import NestedDichotomyClassifier
from dichotomies.estimators.warm_up import warm_up
from dichotomies.structures import Single

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = """
# The choice of the tree

With a hundred classes or more, `structure="auto"` compares the shallow tree of 2-means with deeper ones, and
takes those that lower the NLL by at least 1 % for every doubling of the work, up to eight times the work. NLL
and accuracy on test rows, and the processor time of the fit, the choice included, in times that of 2-means:
logistic regression with the default calibration. "Single among 64" is deep only within groups of 64 similar
classes.
"""

STRUCTURES: dict[str, Any] = {
    "2-means": "2-means",
    "single among 64": Single(max_classes=64),
    "single": "single",
    "auto": "auto",
}


def _problems() -> Iterator[tuple[problems.Problem, float]]:
    """Problems with the C to use."""
    yield problems.text("clinc150", weighted=True), 10
    yield problems.text("onet_titles", weighted=True, n_classes=300), 10
    yield problems.text("wordnet", weighted=True, n_classes=600), 10
    yield problems.omniglot(300), 0.3
    yield problems.kanji_fonts(300), 0.3


def _row(problem: problems.Problem, C: float) -> list[str]:
    cells, shallow = [], None
    for structure in STRUCTURES.values():
        clf = NestedDichotomyClassifier(LogisticRegression(C=C), structure, random_state=0)
        begun = time.process_time()
        clf.fit(problem.X, problem.y)
        took = time.process_time() - begun
        shallow = shallow or took
        log_proba = clf.predict_log_proba(problem.X_test)
        nll = -log_proba[np.arange(len(problem.y_test)), problem.y_test].mean()
        accuracy = (log_proba.argmax(axis=1) == problem.y_test).mean()
        cells.append(f"{nll:.3f} / {accuracy:.3f} / {took / shallow:.1f}")
    chosen = (clf.structure_ or "").partition(",")[0].removeprefix("tree: ")
    return [f"{problem.name} ({problem.size})", *cells, chosen]


def main() -> None:
    options = arguments(__doc__, repeats=1)
    list(warm_up(["logistic"]))  # kernels are compiled beforehand
    rows = []
    for problem, C in _problems():
        rows.append(_row(problem, C))
        print(*rows[-1], sep=" | ", flush=True)
    report("auto_structure", TEXT, ["data", *STRUCTURES, "chosen"], rows, save=options.save)


if __name__ == "__main__":
    main()
