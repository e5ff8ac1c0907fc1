"""Weights are one finite number per row, or refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import _NotAnArray

from dichotomies._common.weights import row_weights


@pytest.mark.parametrize(
    "given",
    [
        [1, 0, 2],
        np.array([1.0, 9.0, 0.0, 9.0, 2.0])[::2],
        pd.Series([1, 0, 2], index=[7, 8, 9]),
        _NotAnArray([1.0, 0.0, 2.0]),
    ],
)
def test_weights_of_any_container_are_doubles(given):
    weight = row_weights(given, 3)
    assert weight.dtype == np.float64
    assert weight.flags.c_contiguous
    assert weight.tolist() == [1.0, 0.0, 2.0]


def test_none_and_numbers_are_the_same_weight_for_all_rows():
    assert row_weights(None, 3).tolist() == [1.0, 1.0, 1.0]
    assert row_weights(0.5, 3).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], r"one value for each of the 3 rows, got shape \(2,\)"),
        ([[1.0], [2.0], [3.0]], r"got shape \(3, 1\)"),
        ([1.0, -2.0, 1.0], r"finite and not negative, but sample_weight\[1\] is -2"),
        ([1.0, 1.0, np.nan], r"sample_weight\[2\] is nan"),
        ([np.inf, 1.0, 1.0], r"sample_weight\[0\] is inf"),
        ([0.0, 0.0, 0.0], "must not be zero for all rows"),
        (0, "must not be zero for all rows"),
    ],
)
def test_other_weights_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        row_weights(given, 3)


def test_no_rows_have_no_weights():
    with pytest.raises(ValueError, match="There are no rows"):
        row_weights(None, 0)
