"""Preparing a dataset as the paper does: which rows train and test, TF-IDF weights, random projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.feature_extraction.text import TfidfTransformer

from dichotomies.rows.folds import fold_of_rows
from experiments.datasets.sources import DATASETS

if TYPE_CHECKING:
    from dichotomies._common.typing import IntArray, LabelArray, Matrix
    from experiments.datasets.folder import Dataset

#: Entries of the projection matrix that are held at a time: 64 MB.
_PROJECTION_BLOCK = 1 << 23


@dataclass(frozen=True)
class Split:
    """The rows of one training and one test part.

    Parameters
    ----------
    repeat, fold : int
        Repetition, and fold of it; a standard split has fold 0 only.
    train_rows, test_rows : ndarray of int
        Rows of the dataset, ascending.

    Examples
    --------
    >>> from experiments.datasets import cross_validation
    >>> split = cross_validation(["a", "b"] * 3, repeats=1, folds=3)[2]
    >>> split.repeat, split.fold, len(split.train_rows), len(split.test_rows)
    (0, 2, 4, 2)
    """

    repeat: int
    fold: int
    train_rows: IntArray
    test_rows: IntArray


def splits(dataset: Dataset, *, seed: int = 0, repeats: int = 10, folds: int = 10) -> list[Split]:
    """The train and test parts on which the paper would evaluate.

    Datasets of the registry that the paper cross-validates give `repeats` x `folds` splits; the larger ones
    give their standard split once per repeat, for as many random trees. Other datasets are cross-validated
    unless they have a standard split.

    Parameters
    ----------
    dataset : Dataset
    seed : int
        Decides on the folds, together with the number of the repeat.
    repeats, folds : int
        10 and 10 in the paper.

    Returns
    -------
    list of Split
        By repeat, then by fold.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.datasets import Dataset, splits
    >>> data = Dataset("mine", np.eye(6), np.array([0, 0, 0, 1, 1, 1]))
    >>> [(s.repeat, s.fold, len(s.train_rows), len(s.test_rows)) for s in splits(data, repeats=1, folds=3)]
    [(0, 0, 4, 2), (0, 1, 4, 2), (0, 2, 4, 2)]
    """
    if not has_standard_split(dataset):
        return cross_validation(dataset.y, seed=seed, repeats=repeats, folds=folds)
    train, test = (np.asarray(dataset.extra[f"{part}_idx"], dtype=np.intp) for part in ("train", "test"))
    return [Split(repeat, 0, train, test) for repeat in range(repeats)]


def has_standard_split(dataset: Dataset) -> bool:
    """Return True if the dataset is evaluated on one fixed test part rather than by cross-validation."""
    if dataset.name in DATASETS.names():
        return DATASETS.create(dataset.name).evaluation != "cross-validation"
    return "train_idx" in dataset.extra and "test_idx" in dataset.extra


def cross_validation(y: LabelArray, *, seed: int = 0, repeats: int = 10, folds: int = 10) -> list[Split]:
    """Repeated stratified cross-validation; a repeat's folds depend on the seed and its number alone.

    Examples
    --------
    >>> from experiments.datasets import cross_validation
    >>> parts = cross_validation(["a", "b"] * 20)
    >>> len(parts), parts[0].test_rows.size
    (100, 4)
    """
    codes = np.unique(y, return_inverse=True)[1]
    found = []
    for repeat in range(repeats):
        fold_of_row = fold_of_rows(codes, folds, np.random.RandomState([seed, repeat]))
        found += [
            Split(repeat, fold, np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold))
            for fold in range(folds)
        ]
    return found


def features(
    dataset: Dataset,
    split: Split,
    *,
    weighting: Literal["none", "tfidf", "unit"] = "none",
    projection: int | None = None,
    seed: int = 0,
) -> tuple[Matrix, Matrix]:
    """The features of the training and the test rows of a split.

    Parameters
    ----------
    dataset : Dataset
    split : Split
    weighting : {"none", "tfidf", "unit"}
        "tfidf" turns counts of terms into log TF-IDF weights with unit rows; document frequencies are those
        of the training rows. "unit" divides all features by the largest value among the training rows, as is
        usual with grey values.
    projection : int, optional
        The number of dimensions of a Gaussian random projection, applied after the weighting; the paper
        takes 1,000 for boosted trees on text.
    seed : int
        Decides on the projection.

    Returns
    -------
    X_train, X_test
        Of the dataset's own kind; dense, in single precision, if projected.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from experiments.datasets import Dataset, features, splits
    >>> counts = Dataset("mine", csr_array(np.eye(6)), np.array([0, 0, 0, 1, 1, 1]))
    >>> X_train, X_test = features(counts, splits(counts, folds=3)[0], weighting="tfidf", projection=4)
    >>> X_train.shape, X_test.shape
    ((4, 4), (2, 4))
    """
    X_train, X_test = dataset.X[split.train_rows], dataset.X[split.test_rows]
    if weighting == "tfidf":
        X_train, X_test = _tfidf(dataset, X_train, X_test)
    elif weighting == "unit":
        largest = abs(X_train).max() or 1
        X_train, X_test = X_train / largest, X_test / largest
    elif weighting != "none":
        raise ValueError(f'weighting must be "none", "tfidf" or "unit", got {weighting!r}.')
    if projection is None:
        return X_train, X_test
    projected_train, projected_test = project([X_train, X_test], projection, seed)
    return projected_train, projected_test


def _tfidf(dataset: Dataset, X_train: Matrix, X_test: Matrix) -> tuple[Matrix, Matrix]:
    source = DATASETS.create(dataset.name) if dataset.name in DATASETS.names() else None
    if not issparse(dataset.X) or (source is not None and source.values != "counts"):
        raise ValueError(
            f"TF-IDF weighs counts of terms, which the features of {dataset.name!r} are not: "
            f'take weighting="none".'
        )
    weights = TfidfTransformer(sublinear_tf=True).fit(X_train)
    return weights.transform(X_train), weights.transform(X_test)


def project(matrices: list[Matrix], n_dimensions: int, seed: int = 0) -> tuple[Any, ...]:
    """Project the rows of matrices to fewer dimensions by the same Gaussian random matrix.

    The result is that of scikit-learn's GaussianRandomProjection for the same seed, without its matrix of
    `n_dimensions` x features, which would be gigabytes for 400,000 features: a few of its rows are drawn at
    a time.

    Parameters
    ----------
    matrices : list of (n_rows, n_features) matrices
    n_dimensions : int
    seed : int

    Returns
    -------
    tuple of ndarray of shape (n_rows, n_dimensions), float32
    """
    if n_dimensions < 1:
        raise ValueError(f"A projection needs at least one dimension, got {n_dimensions}.")
    n_features = matrices[0].shape[1]
    rng = np.random.RandomState(seed)
    projected = tuple(np.empty((X.shape[0], n_dimensions), dtype=np.float32) for X in matrices)
    block = max(1, _PROJECTION_BLOCK // n_features)
    for first in range(0, n_dimensions, block):
        columns = slice(first, min(first + block, n_dimensions))
        size = (columns.stop - first, n_features)
        directions = rng.normal(scale=1 / np.sqrt(n_dimensions), size=size).T
        for X, result in zip(matrices, projected, strict=True):
            result[:, columns] = X @ directions
    return projected
