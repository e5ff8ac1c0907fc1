"""Laws of dividing rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold

from dichotomies.rows.folds import fold_of_rows, hold_out

class_sizes = st.lists(st.integers(1, 30), min_size=1, max_size=20)


def rows_of(sizes):
    return np.random.RandomState(1).permutation(np.repeat(np.arange(len(sizes)), sizes))


@given(class_sizes, st.integers(2, 7))
def test_folds_are_even_overall_and_within_every_class(sizes, n_folds):
    codes = rows_of(sizes)
    fold = fold_of_rows(codes, n_folds, np.random.RandomState(0))
    n_used = min(n_folds, len(codes))
    for part in (np.ones(len(codes), bool), *(codes == c for c in range(len(sizes)))):
        counts = np.bincount(fold[part], minlength=n_used)
        assert counts.max() - counts.min() <= 1
        assert len(counts) == n_used


def test_splitters_and_lists_of_splits_are_taken_as_they_are():
    codes = np.arange(30) % 3
    for cv in (KFold(3), StratifiedKFold(3), list(KFold(3).split(codes))):
        fold = fold_of_rows(codes, cv, np.random.RandomState(0))
        splits = cv if isinstance(cv, list) else cv.split(codes, codes)
        for number, (_, test) in enumerate(splits):
            assert (fold[test] == number).all()


def test_bad_folds_are_refused():
    codes = np.zeros(6, dtype=int)
    with pytest.raises(ValueError, match="at least 2 folds, got 1"):
        fold_of_rows(codes, 1, np.random.RandomState(0))
    with pytest.raises(ValueError, match="every row exactly once"):
        fold_of_rows(codes, [([0, 1, 4, 5], [2, 3])], np.random.RandomState(0))
    with pytest.raises(ValueError, match="train part of fold 0"):
        fold_of_rows(codes, [([0, 1], [2, 3])], np.random.RandomState(0))


@given(class_sizes, st.floats(0.01, 0.99))
def test_hold_out_is_stratified_and_leaves_every_class_a_row(sizes, share):
    codes = rows_of(sizes)
    held = hold_out(codes, share, np.random.RandomState(0))
    kept = np.bincount(codes[~held], minlength=len(sizes))
    taken = np.bincount(codes[held], minlength=len(sizes))
    assert (kept >= 1).all()
    assert (taken <= np.ceil(share * np.array(sizes))).all()
    assert (taken >= np.minimum(np.floor(share * np.array(sizes)), np.array(sizes) - 1)).all()


def test_hold_out_takes_its_share_where_classes_allow_it():
    codes = np.repeat(np.arange(200), 6)  # a tenth of six rows is less than one
    held = hold_out(codes, 0.1, np.random.RandomState(0))
    assert held.sum() == 120
    assert np.bincount(codes[held]).max() == 1


def test_hold_out_depends_on_the_seed_alone():
    codes = rows_of([5, 9, 1, 30])
    first, same, other = (hold_out(codes, 0.3, np.random.RandomState(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
