"""``python -m experiments.defaults.held_out``: the choice with few rows, on training rows that are held out.

The rules of the choice are set by this, not on the rows that the page's tables are made of: a quarter of the
training rows of each dataset stands for new rows.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import fmean, geometric_mean
from typing import NamedTuple

import numpy as np

from experiments.defaults.choice import FEW_ROWS
from experiments.defaults.measure import prepared, with_few_rows
from experiments.defaults.page import HALF_A_POINT
from experiments.defaults.trial import DefaultsTrial
from experiments.defaults.ways import CANDIDATES, LEARNERS, NOW, PLAIN, classifier
from experiments.running.measurement import PreparedSplit, columns_of
from experiments.running.memory import PeakMemory
from experiments.study.limits import DATASETS

#: Divisions of each dataset, and the share of its training rows that is held out.
DIVISIONS, SHARE = 3, 0.25


class Outcome(NamedTuple):
    """NLL relative to the best candidate's and the plain tree's; points of accuracy more than the former."""

    to_best: float
    to_plain: float
    accuracy: float


def divided(data: PreparedSplit, division: int) -> PreparedSplit:
    """The training rows, divided into rows to train on and rows that stand for new ones."""
    order = np.random.RandomState(division).permutation(len(data.y_train))
    n_held = int(SHARE * len(order))
    kept, held = np.sort(order[n_held:]), np.sort(order[:n_held])
    held = held[np.isin(data.y_train[held], data.y_train[kept])]
    X, y = data.X_train, data.y_train
    return PreparedSplit(X[kept], y[kept], X[held], y[held])


def outcome(data: PreparedSplit, trial: DefaultsTrial) -> Outcome:
    """Fit the default and every candidate, and compare them on the test rows of `data`."""
    data = with_few_rows(data, trial)
    found = {
        way: columns_of(classifier(replace(trial, way=way)), data, PeakMemory()) for way in (NOW, *CANDIDATES)
    }
    best, now = min((found[way] for way in CANDIDATES), key=lambda each: each["nll"]), found[NOW]
    accuracy = 100 * (now["accuracy"] - best["accuracy"])
    return Outcome(now["nll"] / best["nll"], now["nll"] / found[PLAIN]["nll"], accuracy)


def line(rows_per_class: int, found: list[Outcome]) -> str:
    """One line of the table."""
    best, plain, gaps = zip(*found, strict=True)
    cells = (
        *(f"{rows_per_class}", f"{len(found)}", f"{geometric_mean(best):.3f}", f"{max(best):.2f}"),
        *(f"{geometric_mean(plain):.3f}", f"{max(plain):.3f}", f"{fmean(gaps):+.2f}", f"{min(gaps):+.2f}"),
        f"{sum(gap >= -HALF_A_POINT for gap in gaps)}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a line for each number of rows of a class, of all datasets or of those that are named."""
    learners = [name for name in LEARNERS if name != "boosted_trees"]
    cases = [(name, learner) for name in sys.argv[1:] or DATASETS for learner in learners]
    found: dict[int, list[Outcome]] = {n_rows: [] for n_rows in FEW_ROWS}
    for name, learner in cases:
        data = prepared(name, learner, 0, 0, None)
        for division in range(DIVISIONS):
            for n_rows, outcomes in found.items():
                trial = DefaultsTrial(name, learner, NOW, n_rows, division)
                outcomes.append(outcome(divided(data, division), trial))
    print("rows of a class | cases | NLL now / best: mean | worst | now / plain: mean | worst", end=" | ")
    print("accuracy now - that of the best: mean | worst | within half a point")
    print("\n".join(line(n_rows, outcomes) for n_rows, outcomes in found.items()))


if __name__ == "__main__":
    main()
