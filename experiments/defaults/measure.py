"""One trial measured, and the rows that it is measured on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.defaults.trial import DefaultsResult, DefaultsTrial
from experiments.defaults.ways import FLAT, classifier
from experiments.running.measurement import PreparedSplit, columns_of
from experiments.running.memory import PeakMemory
from experiments.running.seeds import derived_seed
from experiments.study.data import prepared_rows

if TYPE_CHECKING:
    from pathlib import Path

#: Most classes, training rows and test rows of any dataset, drawn at random: the study takes an hour or less.
CLASSES, TRAIN, TEST = 300, 3_000, 3_000
#: Fewer training rows, where a row is dear.
FEWER = {("nhcd", "logistic_regression"): 1_500, "boosted_trees": 1_500}


class _NoTree:
    """Stands for the tree of a model without one."""

    mean_depth = 0.0


def measure(trial: DefaultsTrial, *, data_dir: Path | None = None) -> DefaultsResult:
    """Run one trial twice, since the first time kernels may be compiled; the shorter time counts."""
    peak = PeakMemory()
    data = _prepared(trial.dataset, trial.learner, trial.repeat, trial.seed, data_dir)
    models = [_classifier(trial) for _ in range(2)]
    columns, again = (columns_of(each, data, peak) for each in models)
    columns["fit_seconds"], model = min(columns["fit_seconds"], again["fit_seconds"]), models[0]
    found = getattr(model, "calibration_", None)
    pair = () if found is None else (found.internal, found.external)
    return DefaultsResult(
        trial,
        **columns,
        reported_nll=float(found.nll.get(pair, -1.0)) if found is not None else -1.0,
        chosen="+".join(pair) or "vector",
    )


def _classifier(trial: DefaultsTrial) -> Any:
    model = classifier(trial)
    if trial.way == FLAT:
        model.tree_ = _NoTree()
    return model


@lru_cache(maxsize=1)  # trials that share it follow each other
def _prepared(name: str, learner: str, repeat: int, seed: int, data_dir: Path | None) -> PreparedSplit:
    """Training and test rows of a few classes, which all ways share."""
    most = FEWER.get((name, learner), FEWER.get(learner, TRAIN))
    data = prepared_rows(name, learner, repeat, seed, data_dir, CLASSES, most)
    rng = np.random.RandomState(derived_seed(seed, name, repeat, "test rows"))
    known = np.flatnonzero(np.isin(data.y_test, np.unique(data.y_train)))
    drawn = np.sort(rng.permutation(known)[:TEST])
    return data._replace(X_test=data.X_test[drawn], y_test=data.y_test[drawn])
