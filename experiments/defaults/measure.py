"""One trial measured, and the rows that it is measured on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.defaults.trial import DefaultsResult, DefaultsTrial
from experiments.defaults.ways import FLAT, classifier
from experiments.running.measurement import N_BINS, PreparedSplit, columns_of
from experiments.running.memory import PeakMemory
from experiments.running.seeds import derived_seed
from experiments.study.data import prepared_rows

if TYPE_CHECKING:
    from pathlib import Path

    from dichotomies._common.typing import FloatArray

#: Most classes, training rows and test rows of any dataset, drawn at random: the study takes an hour or less.
CLASSES, TRAIN, TEST = 100, 3_000, 10_000
#: Fewer training rows, where a row is dear.
FEWER = {"nhcd": 1_500, "boosted_trees": 1_000}
#: Fits shorter than so many seconds are repeated, since kernels may have been compiled; the shorter counts.
SHORT = 2.0


class _NoTree:
    """Stands for the tree of a model without one."""

    mean_depth = 0.0


def measure(trial: DefaultsTrial, *, data_dir: Path | None = None) -> DefaultsResult:
    """Run one trial."""
    peak = PeakMemory()
    data = prepared(trial.dataset, trial.learner, trial.repeat, trial.seed, data_dir)
    if trial.rows_per_class:
        data = with_few_rows(data, trial)
    model = _classifier(trial)
    columns = columns_of(model, data, peak)
    if columns["fit_seconds"] < SHORT and not trial.rows_per_class:
        again = columns_of(_classifier(trial), data, peak)
        columns["fit_seconds"] = min(columns["fit_seconds"], again["fit_seconds"])
    found = getattr(model, "calibration_", None)
    pair = () if found is None else (found.internal, found.external)
    return DefaultsResult(
        trial,
        **columns,
        reported_nll=float(found.nll.get(pair, -1.0)) if found is not None else -1.0,
        chosen="+".join(pair) or "vector",
        calibrated_ece=_calibrated_ece(np.exp(model.predict_log_proba(data.X_test).max(axis=1))),
    )


def _calibrated_ece(confidence: FloatArray) -> float:
    """Calibration error to expect of sampling noise: mean deviations of the number of right rows by bin."""
    in_bin = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    variance = np.bincount(in_bin, confidence * (1 - confidence))
    return float(np.sqrt(2 / np.pi * variance).sum() / len(confidence))


def _classifier(trial: DefaultsTrial) -> Any:
    model = classifier(trial)
    if trial.way == FLAT:
        model.tree_ = _NoTree()
    return model


def with_few_rows(data: PreparedSplit, trial: DefaultsTrial) -> PreparedSplit:
    """The same classes with a few training rows each."""
    rng = np.random.RandomState(derived_seed(trial.seed, trial.dataset, trial.repeat, "few rows"))
    order = rng.permutation(len(data.y_train))
    classes = np.unique(data.y_train)
    places = [order[data.y_train[order] == label][: trial.rows_per_class] for label in classes]
    rows = np.sort(np.concatenate(places))
    return data._replace(X_train=data.X_train[rows], y_train=data.y_train[rows])


@lru_cache(maxsize=1)  # trials that share it follow each other
def prepared(name: str, learner: str, repeat: int, seed: int, data_dir: Path | None) -> PreparedSplit:
    """Training and test rows of a few classes, which all ways share."""
    most = FEWER.get(name, FEWER.get(learner, TRAIN))
    data = prepared_rows(name, learner, repeat, seed, data_dir, CLASSES, most)
    rng = np.random.RandomState(derived_seed(seed, name, repeat, "test rows"))
    known = np.flatnonzero(np.isin(data.y_test, np.unique(data.y_train)))
    drawn = np.sort(rng.permutation(known)[:TEST])
    return data._replace(X_test=data.X_test[drawn], y_test=data.y_test[drawn])
