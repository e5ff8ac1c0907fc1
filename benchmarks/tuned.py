"""A penalty for every node or depth, against the best single one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks import problems
from benchmarks.race import arguments, report
from dichotomies import NestedDichotomyClassifier, TunedLogisticRegression
from dichotomies.structures import STRUCTURES

TEXT = """
# A penalty for every node

NLL on rows held out of logistic regression at the nodes of random trees (omniglot, 200 classes), without
calibration: with C chosen per node and per depth by `TunedLogisticRegression`, and with the single C that
is best on those very rows, which nobody could have known. The grid has two values a decade from 0.01 to
1,000.
"""

GRID = tuple(10.0 ** (power / 2) for power in range(-4, 7))


def _nll(problem: problems.Problem, tree: Any, model: Any) -> float:
    clf = NestedDichotomyClassifier(
        model, tree, internal_calibration=None, external_calibration=None, random_state=0
    )
    log_proba = clf.fit(problem.X, problem.y).predict_log_proba(problem.X_test)
    return float(-log_proba[np.arange(len(problem.y_test)), problem.y_test].mean())


def main() -> None:
    options = arguments(__doc__, repeats=3)
    problem = problems.omniglot(200)
    rows = []
    for seed in range(options.repeats):
        tree = STRUCTURES.create("random").grow(None, problem.y, random_state=seed)
        single = [_nll(problem, tree, LogisticRegression(C=C)) for C in GRID]
        tuned = [_nll(problem, tree, TunedLogisticRegression(GRID, per=per)) for per in ("node", "depth")]
        best = f"{min(single):.3f} (C = {GRID[int(np.argmin(single))]:.3g})"
        rows.append([seed, best, *(f"{nll:.3f}" for nll in tuned)])
        print(*rows[-1], sep=" | ", flush=True)
    report("tuned", TEXT, ["tree", "best single C", "per node", "per depth"], rows, save=options.save)


if __name__ == "__main__":
    main()
