"""One trial measured: its data prepared, its classifier trained, its predictions judged."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dichotomies import datasets
from dichotomies.experiments import readings
from dichotomies.experiments.memory import PeakMemory
from dichotomies.experiments.result import Result, now, versions
from dichotomies.experiments.seeds import derived_seed
from dichotomies.metrics import RowFacts
from dichotomies.metrics.binning import binned
from dichotomies.metrics.calibration import expected_error
from dichotomies.metrics.scores import nll_of

if TYPE_CHECKING:
    from pathlib import Path

    from dichotomies._common.typing import LabelArray, Matrix
    from dichotomies.experiments.trial import Trial

#: What scikit-learn's log_loss read smaller probabilities as, when the paper was written.
CLIP = 1e-15
#: Bins of the calibration error.
N_BINS = 20
#: Bytes of class probabilities asked for at a time.
_CHUNK_BYTES = 64 * 2**20


class PreparedSplit(NamedTuple):
    """Rows to train on and rows to test on, as the classifier gets them."""

    X_train: Matrix
    y_train: LabelArray
    X_test: Matrix
    y_test: LabelArray


def measure(trial: Trial, *, folds: int = 10, data_dir: Path | None = None) -> Result:
    """Run one trial.

    Parameters
    ----------
    trial : Trial
        What to run; the same trial gives the same numbers.
    folds : int, default=10
        Folds of cross-validation, where the dataset has no standard split.
    data_dir : path, optional
        The folder of datasets, as in `dichotomies.datasets.load`.

    Returns
    -------
    Result
    """
    peak = PeakMemory()
    data = _prepared(trial, folds, data_dir)
    return Result(trial, **columns_of(readings.classifier(trial), data, peak))


def columns_of(classifier: Any, data: PreparedSplit, peak: PeakMemory) -> dict[str, Any]:
    """Everything measured of a classifier on a split: the columns of `Measured`, without the trial.

    Parameters
    ----------
    classifier : NestedDichotomyClassifier
        Not yet fitted.
    data : PreparedSplit
        What it is trained and tested on.
    peak : PeakMemory
        Since the trial began.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begun = time.process_time()
        classifier.fit(data.X_train, data.y_train)
        fitted = time.process_time()
        facts = _facts(classifier, data.X_test, data.y_test)
        predicted = time.process_time()
    return {
        "nll": nll_of(facts, CLIP),
        "nll_unclipped": nll_of(facts),
        "accuracy": facts.mean(facts.rank == 0),
        "top5_accuracy": facts.mean(facts.rank < 5),
        "ece": float(expected_error(binned(facts.events(), N_BINS, "uniform"))),
        "brier": facts.mean(facts.brier),
        "mean_depth": float(classifier.tree_.mean_depth),
        "n_train": len(data.y_train),
        "n_test": len(data.y_test),
        "n_classes": len(classifier.classes_),
        "n_features": int(data.X_train.shape[1]),
        "fit_seconds": fitted - begun,
        "predict_seconds": predicted - fitted,
        "peak_memory_mb": peak.megabytes(),
        "warnings": "\n".join(dict.fromkeys(" ".join(str(each.message).split()) for each in caught)),
        "finished_at": now(),
        "versions": versions(),
    }


def _facts(classifier: Any, X: Matrix, y: LabelArray) -> RowFacts:
    """What the metrics need to know of every row, from one chunk of predictions after another."""
    labels, n_rows = classifier.classes_, X.shape[0]
    step = max(1, _CHUNK_BYTES // (8 * len(labels)))
    chunks = (slice(start, start + step) for start in range(0, n_rows, step))
    return RowFacts.concatenate(
        [
            RowFacts.from_predictions(
                y[rows], classifier.predict_log_proba(X[rows]), labels=labels, is_log=True
            )
            for rows in chunks
        ]
    )


# Trials of one dataset and of one split follow each other, so a process needs to keep only the last.


@lru_cache(maxsize=1)
def loaded(name: str, data_dir: Path | None) -> datasets.Dataset:
    """The dataset, kept until another is asked for."""
    return datasets.load(name, data_dir=data_dir)


def split_of(dataset: datasets.Dataset, *, seed: int, repeat: int, fold: int, folds: int) -> datasets.Split:
    """The rows that one fold of one repeat trains on, and those it tests on."""
    splits = datasets.splits(dataset, seed=seed, repeats=repeat + 1, folds=folds)
    for split in splits:
        if (split.repeat, split.fold) == (repeat, fold):
            return split
    raise ValueError(
        f"The dataset {dataset.name!r} has no fold {fold} of repeat {repeat} with {folds} folds."
    )


def _prepared(trial: Trial, folds: int, data_dir: Path | None) -> PreparedSplit:
    preparation = tuple(sorted(readings.preparation(trial).items()))
    return _prepared_split(trial.dataset, trial.seed, trial.repeat, trial.fold, folds, preparation, data_dir)


@lru_cache(maxsize=1)
def _prepared_split(
    name: str,
    seed: int,
    repeat: int,
    fold: int,
    folds: int,
    preparation: tuple[tuple[str, Any], ...],
    data_dir: Path | None,
) -> PreparedSplit:
    dataset = loaded(name, data_dir)
    split = split_of(dataset, seed=seed, repeat=repeat, fold=fold, folds=folds)
    # one projection for all that share the split
    X_train, X_test = datasets.features(
        dataset, split, **dict(preparation), seed=derived_seed(seed, name, repeat, fold, "projection")
    )
    return PreparedSplit(X_train, dataset.y[split.train_rows], X_test, dataset.y[split.test_rows])
