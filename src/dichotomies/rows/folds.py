"""Folds and samples of rows that respect the classes, however rare they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._common.chunks import row_slices

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.rows.rows import Rows


_ROWS_AT_A_TIME = 4_096


class Folds(NamedTuple):
    """Numbers of folds of a learner: the more, the closer are their models to the final one.

    Attributes
    ----------
    number : int
    of_many : int
        With many rows of a class, of which a part is nearly as good as all.
    many : int
        Mean number of rows of a class that are many.
    """

    number: int
    of_many: int
    many: int = 20


#: Folds that calibrators are fitted on; each is some folds of the models.
CALIBRATION_FOLDS = 3


def fold_count(n_rows: int, n_classes: int, folds: Folds) -> int:
    """Number of folds for so many rows.

    There are no more folds than rows of a class on average: models of the folds would miss a row of some
    classes only, those of the rows that they are to score.
    """
    rows_per_class = n_rows // n_classes
    return max(2, min(folds.number if rows_per_class < folds.many else folds.of_many, rows_per_class))


def fold_of_rows(codes: IntArray, cv: Any, rng: Any, first: int = 0) -> IntArray:
    """The fold of each row.

    Parameters
    ----------
    codes : (n_rows,)
        Class codes.
    cv : int, scikit-learn splitter or iterable of (train, test)
        A number of folds deals the rows of each class, shuffled, to the folds in turn, going on where
        the class before stopped: fold sizes differ by at most one, and a class with fewer rows than
        folds is simply missing from some. A splitter's test parts must cover every row once, and its
        train parts be all the other rows.
    rng : RandomState
        Shuffles.
    first : int
        Number of rows that were dealt before, in earlier batches: the next fold is the first.
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}.")
        return (_deal(codes, rng) + first) % int(cv)
    from sklearn.model_selection import check_cv  # takes long to import

    fold = np.full(len(codes), -1, dtype=np.intp)
    covered = 0
    for number, (train, test) in enumerate(check_cv(cv, codes, classifier=True).split(codes, codes)):
        rest = np.ones(len(codes), dtype=bool)
        rest[test] = False
        if not np.array_equal(np.flatnonzero(rest), np.sort(np.arange(len(codes))[train])):
            raise ValueError(f"The train part of fold {number} of cv must be all rows not in its test part.")
        fold[test] = number
        covered += len(codes) - int(rest.sum())
    if covered != len(codes) or (fold < 0).any():
        raise ValueError("The test parts of cv must hold every row exactly once.")
    return fold


def calibration_fold(fold: IntArray) -> IntArray:
    """Fold of calibrators for each fold of models: at most three, so that few calibrators are fitted."""
    return fold % CALIBRATION_FOLDS


def hold_out(codes: IntArray, share: float, rng: Any) -> BoolArray:
    """Choose about `share` of the rows, stratified, never the last row of a class.

    Returns
    -------
    ndarray of bool
        True for the rows held out.
    """
    counts = np.bincount(codes)
    quota = share * counts
    taken = np.floor(quota).astype(np.intp)
    # Hand out what rounding left over to classes at random, in proportion to what they lost.
    missing = round(float(quota.sum())) - int(taken.sum())
    lost = np.where(counts > taken + 1, quota - taken, 0.0)
    chosen = np.argsort(-(lost + 1e-9 * (lost > 0)) * rng.random_sample(len(lost)))[: max(0, missing)]
    taken[chosen[lost[chosen] > 0]] += 1
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    held = np.zeros(len(codes), dtype=bool)
    held[order] = rank < np.minimum(taken, counts - 1)[codes[order]]
    return held


def _deal(codes: IntArray, rng: Any) -> IntArray:
    """Number the rows class by class in shuffled order."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    number = np.empty(len(codes), dtype=np.intp)
    number[order] = np.arange(len(codes))
    return number


def stratified(codes: IntArray, among: IntArray, most: int, rng: Any) -> IntArray:
    """All of the row numbers in `among`, or a sample of at most so many, stratified by class."""
    if len(among) <= most:
        return among
    chosen: IntArray = among[fold_of_rows(codes[among], -(-len(among) // most), rng) == 0]
    return chosen


def sample_in_folds(rows: Rows, max_rows: int, n_folds: int, rng: Any, *, whole_classes: bool) -> Rows:
    """Draw at most about `max_rows` different rows and divide them into folds.

    Equal rows go into the same fold, so that a row twice is a row of weight two. Rows without weight are
    left out.

    Parameters
    ----------
    whole_classes : bool
        Draw all rows of some classes, instead of some rows of every class.
    """
    codes = np.argsort(rows.class_order)[rows.codes]  # so that the names of the classes have no part in it
    weighted = np.arange(len(rows)) if rows.weight is None else np.flatnonzero(rows.weight > 0)
    content = np.stack([codes, _content(rows.X)], axis=1)[weighted]
    _, first, which = np.unique(content, axis=0, return_index=True, return_inverse=True)
    different = codes[weighted[first]]
    chosen = _chosen(different, max_rows, rng, whole_classes=whole_classes)
    fold = np.full(len(different), -1, dtype=np.intp)
    fold[chosen] = fold_of_rows(different[chosen], n_folds, rng)
    of_row = fold[which.ravel()]
    return replace(rows.take(weighted[of_row >= 0]), fold=of_row[of_row >= 0])


def _chosen(codes: IntArray, max_rows: int, rng: Any, *, whole_classes: bool) -> IntArray:
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    if whole_classes:
        return np.flatnonzero(_some_classes(codes, max_rows, rng)[codes])
    return np.flatnonzero(fold_of_rows(codes, -(-len(codes) // max_rows), rng) == 0)


def _some_classes(codes: IntArray, max_rows: int, rng: Any) -> BoolArray:
    """Draw classes, at least two, that have at most so many rows between them."""
    counts = np.bincount(codes)
    order = rng.permutation(len(counts))
    is_chosen = np.zeros(len(counts), dtype=bool)
    is_chosen[order] = np.cumsum(counts[order]) <= max_rows
    is_chosen[order[:2]] = True
    return is_chosen


def _content(X: Matrix) -> FloatArray:
    """One number per row, the same to the last bit for equal rows."""
    mixing = np.random.RandomState(0).standard_normal(X.shape[1])
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ mixing)
    return np.concatenate([(X[rows] * mixing).sum(axis=1) for rows in row_slices(len(X), _ROWS_AT_A_TIME)])
