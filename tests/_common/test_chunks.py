"""Chunks fit into their bytes, and together they are all rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array

from dichotomies._common.chunks import predictions, row_slices, rows_within


@pytest.mark.parametrize("width", [0, 1, 7, 1000, 10**7])
@pytest.mark.parametrize("multiple_of", [1, 64])
def test_as_many_rows_as_fit_and_never_none(width, multiple_of):
    rows = rows_within(2**20, width, multiple_of=multiple_of)
    assert rows >= multiple_of
    assert rows % multiple_of == 0
    assert rows == multiple_of or rows * width * 8 <= 2**20 < (rows + multiple_of) * max(1, width) * 8
    assert rows_within(2**20, width, multiple_of=multiple_of, at_most=128) == min(rows, 128)


@pytest.mark.parametrize(("n_rows", "step"), [(0, 3), (1, 3), (9, 3), (10, 3), (10, 100)])
def test_slices_cover_every_row_once(n_rows, step):
    slices = list(row_slices(n_rows, step))
    assert [i for rows in slices for i in range(n_rows)[rows]] == list(range(n_rows))
    assert all(0 < rows.stop - rows.start <= step for rows in slices)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, csr_array, coo_array, np.ndarray.tolist])
def test_predictions_of_any_container_come_in_order(container, rng):
    X = rng.normal(size=(10, 3))

    def predict(rows):
        dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        assert len(dense) <= 4
        return dense.sum(axis=1)

    found = list(predictions(predict, container(X), 4))
    assert [rows for rows, _ in found] == [slice(0, 4), slice(4, 8), slice(8, 10)]
    np.testing.assert_allclose(np.concatenate([sums for _, sums in found]), X.sum(axis=1))


def test_the_logarithm_of_zero_is_no_warning():
    with np.errstate(divide="raise"):
        for _, found in predictions(np.log, np.zeros((2, 1)), 1):
            assert np.isneginf(found).all()
            with pytest.raises(FloatingPointError):  # only predictions may divide by zero
                np.log(np.zeros(1))
