"""A classifier measured on one split of a dataset: trained, asked for its probabilities, judged."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dichotomies._common.chunks import predictions, rows_within
from dichotomies.metrics import RowFacts
from dichotomies.metrics.binning import binned
from dichotomies.metrics.calibration import expected_error
from dichotomies.metrics.scores import nll_of
from experiments import datasets
from experiments.running.result import now, versions

if TYPE_CHECKING:
    from pathlib import Path

    from dichotomies._common.typing import LabelArray, Matrix
    from experiments.running.memory import PeakMemory

#: Floor of probabilities in scikit-learn's log_loss when the paper was written.
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


def columns_of(classifier: Any, data: PreparedSplit, peak: PeakMemory) -> dict[str, Any]:
    """Measure a classifier on a split: the columns of `Result`, without the trial.

    Parameters
    ----------
    classifier : NestedDichotomyClassifier
        Not yet fitted.
    data : PreparedSplit
        Training and test rows.
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
    """Facts about every row that the metrics are made of, from predictions chunk by chunk."""
    labels = classifier.classes_
    chunks = predictions(classifier.predict_log_proba, X, rows_within(_CHUNK_BYTES, len(labels)))
    return RowFacts.concatenate(
        [RowFacts.from_predictions(y[rows], found, labels=labels, is_log=True) for rows, found in chunks]
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
