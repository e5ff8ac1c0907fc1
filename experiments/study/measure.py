"""One trial of the study measured, with everything compiled before the clock starts."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.running.measurement import PreparedSplit, columns_of
from experiments.running.memory import PeakMemory
from experiments.study.classifiers import REFERENCE, classifier
from experiments.study.data import prepared
from experiments.study.trial import StudyResult, StudyTrial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Classes and rows that warm up the base learner and its calibration: enough for large and small nodes.
_MANY = (40, 4_000)
#: Classes and rows that warm up the growing of a tree.
_FEW = (10, 300)
#: Fits shorter than so many seconds are repeated so many times; the least time counts.
_SHORT, _MORE = 0.5, 2


def measure(trial: StudyTrial, *, data_dir: Path | None = None) -> StudyResult:
    """Run one trial.

    Parameters
    ----------
    trial : StudyTrial
        Trial to run; the same trial gives the same numbers.
    data_dir : path, optional
        The folder of datasets, as in `experiments.datasets.load`.

    Returns
    -------
    StudyResult
    """
    peak = PeakMemory()
    data = prepared(trial, data_dir)
    _warm_up(replace(trial, structure=REFERENCE, repeat=0), data, _MANY)
    _warm_up(replace(trial, calibration="none", repeat=0), data, _FEW)
    model = classifier(trial)
    columns = columns_of(model, data, peak)
    times = [(columns.pop("fit_seconds"), model.structure.seconds_)]
    if times[0][0] < _SHORT:  # where a busy machine matters most
        times += [_seconds(trial, data) for _ in range(_MORE)]
    fit_seconds, grow_seconds = min(times)
    return StudyResult(
        trial,
        **columns,
        fit_seconds=fit_seconds,
        max_depth=int(model.tree_.max_depth),
        grow_seconds=grow_seconds,
    )


def _seconds(trial: StudyTrial, data: PreparedSplit) -> tuple[float, float]:
    """Processor time of fitting once more, and of growing the tree within it."""
    model = classifier(trial)
    with _unheard():
        begun = time.process_time()
        model.fit(data.X_train, data.y_train)
        return time.process_time() - begun, model.structure.seconds_


@contextmanager
def _unheard() -> Iterator[None]:
    """Nothing is warned of inside: it was, or will be, when it counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_warm: set[StudyTrial] = set()


def _warm_up(trial: StudyTrial, data: PreparedSplit, sizes: tuple[int, int]) -> None:
    """Once in a process, fit to a part of the data: what is compiled at first use is not measured later."""
    if trial in _warm:
        return
    _warm.add(trial)
    small = _part(data, *sizes)
    with _unheard():
        classifier(trial).fit(small.X_train, small.y_train).predict_log_proba(small.X_test)


def _part(data: PreparedSplit, n_classes: int, n_rows: int) -> PreparedSplit:
    """The rows of the first classes, at most so many, evenly spread."""
    classes = np.unique(data.y_train)[:n_classes]
    rows: Any = np.flatnonzero(np.isin(data.y_train, classes))
    rows = rows[:: -(-len(rows) // n_rows)]
    X, y = data.X_train[rows], data.y_train[rows]
    return PreparedSplit(X, y, X[:10], y[:10])
