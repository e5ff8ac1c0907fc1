"""The rows and features that a trial of the study is trained and tested on."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from dichotomies.rows.folds import hold_out
from experiments import datasets
from experiments.running.measurement import PreparedSplit, loaded, split_of
from experiments.running.seeds import derived_seed
from experiments.study import limits

if TYPE_CHECKING:
    from pathlib import Path

    from dichotomies._common.typing import LabelArray, Matrix
    from experiments.study.trial import StudyTrial

#: Stratified folds of a dataset without a test part of its own, one of which is held out.
FOLDS = 4
#: Features of text for boosted trees, by a Gaussian random projection.
PROJECTED = 200


def prepared(trial: StudyTrial, data_dir: Path | None) -> PreparedSplit:
    """Training and test rows of a trial; structures and calibrations share them."""
    return _prepared(trial.dataset, trial.learner, trial.repeat, trial.seed, data_dir)


@lru_cache(maxsize=1)  # trials that share it follow each other
def _prepared(name: str, learner: str, repeat: int, seed: int, data_dir: Path | None) -> PreparedSplit:
    most = limits.most_classes(name, learner), limits.most_rows(name, learner)
    return prepared_rows(name, learner, repeat, seed, data_dir, *most)


def prepared_rows(
    name: str,
    learner: str,
    repeat: int,
    seed: int,
    data_dir: Path | None,
    most_classes: int | None,
    most_rows: int | None,
) -> PreparedSplit:
    """Training and test rows of a dataset, as its features are prepared for a base learner."""
    dataset = loaded(name, data_dir)
    split = split_of(dataset, seed=seed, repeat=repeat, fold=0, folds=FOLDS)
    split = limited(split, dataset.y, most_classes, most_rows, seed)
    X_train, X_test = datasets.features(
        dataset, split, **_preparation(name, learner), seed=derived_seed(seed, name, repeat, "projection")
    )
    if learner == "logistic_regression" and datasets.DATASETS.create(name).kind == "dense":
        X_train, X_test = _standardised(X_train, X_test)
    return PreparedSplit(X_train, dataset.y[split.train_rows], X_test, dataset.y[split.test_rows])


def _preparation(name: str, learner: str) -> dict[str, Any]:
    """Arguments of `experiments.datasets.features`: naive Bayes gets counts of words, others TF-IDF."""
    if datasets.DATASETS.create(name).kind == "dense" or learner == "naive_bayes":
        return {}
    return {"weighting": "tfidf", "projection": PROJECTED if learner == "boosted_trees" else None}


def _standardised(X_train: Matrix, X_test: Matrix) -> tuple[Matrix, Matrix]:
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test)


def limited(
    split: datasets.Split, y: LabelArray, most_classes: int | None, most_rows: int | None, seed: int
) -> datasets.Split:
    """The split with fewer classes, drawn at random, and then fewer training rows, stratified.

    Test rows are kept, but for those of classes without training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.datasets import cross_validation
    >>> from experiments.study.data import limited
    >>> y = np.repeat(["a", "b", "c"], 8)
    >>> split = cross_validation(y, repeats=1, folds=4)[0]
    >>> fewer = limited(split, y, 2, 10, seed=0)
    >>> len(set(y[fewer.train_rows])), len(fewer.train_rows), len(fewer.test_rows)
    (2, 10, 4)
    """
    train, test = split.train_rows, split.test_rows
    rng = np.random.RandomState(derived_seed(seed, "limits"))
    classes = np.unique(y[train])
    if most_classes is not None and most_classes < len(classes):
        classes = rng.choice(classes, most_classes, replace=False)
    train, test = (rows[np.isin(y[rows], classes)] for rows in (train, test))
    if most_rows is not None and most_rows < len(train):
        codes = np.unique(y[train], return_inverse=True)[1]
        train = train[~hold_out(codes, 1 - most_rows / len(train), rng)]
    return replace(split, train_rows=train, test_rows=test)
