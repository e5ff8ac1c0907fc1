"""A fixed number of boosted trees, spent on few class trees with many rounds or on many with few."""

from __future__ import annotations

import argparse
import time
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.boosting_race import _nll, _rows, _scaled_nll
from benchmarks.boosting_race_data import DATA
from benchmarks.race import report
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies._kernels.compile import compiling_always
from dichotomies.learners.boosting import gradient
from dichotomies.learners.boosting.gradient import by_rows

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

TEXT = """
# A budget of boosted trees

Ensembles with about the same number of boosted trees: more members with fewer rounds and larger steps, or
fewer with more. *Rounds* multiplies the default number of rounds of every node, *step* is the learning rate.
No calibration; *scaled* is the NLL after temperature scaling, as the calibration of the pool would have it. A
quarter of the **training** rows of each dataset is held out, and the test rows are not read. NLL and
processor time (one thread) to fit are relative to four members by default on the same rows, in the last
lines to ten: geometric means over the datasets; and the NLL of each.
"""

NAMES = ("letter", "table", "omniglot-100", "kanji_fonts-100")

#: Members, multiple of the default number of rounds, learning rate, and parameters of the ensemble. Within a
#: group, results are relative to the first.
WAYS: dict[str, list[tuple[int, float, float, dict[str, Any]]]] = {
    "four": [
        (4, 1.0, 0.35, {}),
        (1, 4.0, 0.1, {}),
        (2, 2.0, 0.2, {}),
        (8, 0.5, 0.5, {}),
        (8, 0.5, 0.7, {}),
        (16, 0.25, 0.7, {}),
        (16, 0.25, 1.0, {}),
        (8, 0.5, 0.5, {"structure": "2-means"}),
        (8, 0.5, 0.5, {"structure": "random"}),
    ],
    "ten": [
        (10, 1.0, 0.35, {}),
        (10, 0.5, 0.5, {}),
        (20, 0.5, 0.6, {}),
        (40, 0.25, 1.0, {}),
    ],
}


def rounds(factor: float) -> AbstractContextManager[Any]:
    """Multiply the default number of rounds of all nodes."""

    def scaled(*sizes: Any) -> dict[str, Any]:
        auto = by_rows(*sizes)
        return auto | {"n_estimators": np.maximum(np.rint(factor * auto["n_estimators"]), 1.0)}

    return patch.object(gradient, "by_rows", scaled)


def model(n_members: int, step: float, given: dict[str, Any]) -> Any:
    """One tree, or an ensemble, without calibration."""
    node = HistGradientBoostClassifier(learning_rate=step)
    given = {"internal_calibration": None, "external_calibration": None, "random_state": 0, **given}
    if n_members == 1:
        return NestedDichotomyClassifier(node, **given)
    return NestedDichotomyEnsemble(node, n_estimators=n_members, **given)


def measured(name: str, way: tuple[int, float, float, dict[str, Any]]) -> tuple[float, float, float]:
    """NLL of training rows held out, also scaled, and processor seconds."""
    problem, (n_members, factor, step, given) = DATA[name](), way
    held = np.random.default_rng(1).random(len(problem.y)) < 0.25
    X, y = _rows(problem.X, np.flatnonzero(~held)), problem.y[~held]
    with rounds(factor):
        begun = time.process_time()
        fitted = model(n_members, step, given).fit(X, y)
        seconds = time.process_time() - begun
    known = np.isin(problem.y, y)
    X_held, y_held = _rows(problem.X, np.flatnonzero(held & known)), problem.y[held & known]
    log_proba = fitted.predict_log_proba(X_held)
    codes = np.searchsorted(fitted.classes_, y_held)
    return _nll(log_proba, codes), _scaled_nll(log_proba, codes), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--save", action="store_true", help="write the page")
    options, rows = parser.parse_args(), []
    with threadpool_limits(1):
        for name in NAMES[:2]:  # compiled beforehand, with categories and without
            problem = DATA[name]()
            few = np.flatnonzero(problem.y < 4)[:300]
            with compiling_always():
                clf = model(2, 0.35, {}).fit(_rows(problem.X, few), problem.y[few])
                clf.predict_log_proba(_rows(problem.X, few))
        for group in options.groups:
            rows += _compared(WAYS[group])
    header = ["members", "rounds", "step", "other", "NLL", "NLL, scaled", "fit", *NAMES]
    report("boosting_budget", TEXT, header, rows, save=options.save)


def _compared(ways: list[tuple[int, float, float, dict[str, Any]]]) -> list[list[object]]:
    """Rows of the table, relative to the first."""
    found = []
    for way in ways:
        found.append([measured(name, way) for name in NAMES])
        print(way, *(f"{a:.4f} {b:.4f} {c:.2f} s" for a, b, c in found[-1]), sep=" | ", flush=True)
    rows = []
    for (n_members, factor, step, given), each in zip(ways, found, strict=True):
        ratios = [geometric_mean(a[i] / b[i] for a, b in zip(each, found[0], strict=True)) for i in range(3)]
        other = ", ".join(f"{key}={value!r}" for key, value in given.items())
        begin = [n_members, f"{factor:g}", step, other]
        rows.append([*begin, *(f"{ratio:.3f}" for ratio in ratios), *(f"{a[0]:.3f}" for a in each)])
    return rows


if __name__ == "__main__":
    main()
