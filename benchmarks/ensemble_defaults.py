"""Ensembles with other numbers of trees, structures, features and pools than by default."""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.race import arguments, report
from dichotomies import NestedDichotomyEnsemble
from experiments.defaults.measure import prepared
from experiments.defaults.ways import base_learner

if TYPE_CHECKING:
    from experiments.running.measurement import PreparedSplit

TEXT = """
# The defaults of ensembles

One parameter of `NestedDichotomyEnsemble` at a time, the others by default: 10 trees of random pairs, each on
half of the features, their geometric mean, one chosen calibration for the nodes of all trees and one for the
pool. The six cases are three datasets (at most 100 classes and 3,000 rows) with logistic regression and with
naive Bayes. NLL on test rows is relative to the default in the same case, the geometric mean over the cases;
in how many of them it is lower; and the difference in accuracy, in points.
"""

DATASETS = ("optdigits", "letter", "clinc150")
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "5 trees": {"n_estimators": 5},
    "20 trees": {"n_estimators": 20},
    "40 trees": {"n_estimators": 40},
    "2-means": {"structure": "2-means"},
    "random": {"structure": "random"},
    "a quarter of the features": {"max_features": 0.25},
    "all features": {"max_features": 1.0},
    "arithmetic mean": {"pooling": "arithmetic"},
    "nodes not calibrated": {"internal_calibration": None},
    "pool not calibrated": {"external_calibration": None},
}


def _measured(data: PreparedSplit, base: Any, way: dict[str, Any]) -> tuple[float, float]:
    """NLL and accuracy."""
    clf = NestedDichotomyEnsemble(base, **way, random_state=0).fit(data.X_train, data.y_train)
    log_proba = clf.predict_log_proba(data.X_test)
    codes = np.searchsorted(clf.classes_, data.y_test)
    nll = -log_proba[np.arange(len(codes)), codes].mean()
    return float(nll), float((log_proba.argmax(axis=1) == codes).mean())


def main() -> None:
    options = arguments(__doc__, repeats=1)
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for dataset in DATASETS:
        for learner in ("logistic_regression", "naive_bayes"):
            data = prepared(dataset, learner, 0, 0, None)
            for name, way in WAYS.items():
                found[name].append(_measured(data, base_learner(dataset, learner), way))
            print(dataset, learner, *(f"{way} {each[-1][0]:.3f}" for way, each in found.items()), flush=True)
    rows = []
    for name, each in found.items():
        pairs = list(zip(each, found["default"], strict=True))
        nll = [a[0] / b[0] for a, b in pairs]
        points = 100 * float(np.mean([a[1] - b[1] for a, b in pairs]))
        lower = sum(ratio < 1 for ratio in nll)
        rows.append([name, f"{geometric_mean(nll):.3f}", f"{lower} of {len(nll)}", f"{points:+.2f}"])
    header = ["ensemble", "NLL / default", "lower in", "accuracy"]
    report("ensemble_defaults", TEXT, header, rows, save=options.save)


if __name__ == "__main__":
    main()
