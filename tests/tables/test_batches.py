"""Parquet files and Arrow record batches as batches of arrays."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dichotomies.tables import TableFileError, arrow_batches, parquet_batches


@pytest.fixture
def frame():
    return pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["x", "z", "x"], "b": [4, 5, 6], "w": [1.0, 2.0, 1.0]})


def test_batches_of_files_are_their_rows_again_at_every_call(frame, tmp_path):
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for path in paths:
        frame.to_parquet(path, index=False)
    batches = parquet_batches(paths, label="y", weight="w", rows=2)
    for _ in range(2):
        X, y, weight = (np.concatenate(each) for each in zip(*batches(), strict=True))
        np.testing.assert_array_equal(X, [[1, 4], [2, 5], [3, 6]] * 2)
        assert y.tolist() == ["x", "z", "x"] * 2
        assert weight.tolist() == [1, 2, 1] * 2


def test_record_batches_need_the_label(frame):
    table = pa.Table.from_pandas(frame.drop(columns="w"), preserve_index=False)
    [(X, y)] = arrow_batches(table.to_batches, label="y")()
    assert X.shape == (3, 2)
    assert y.dtype.kind == "U"
    with pytest.raises(TableFileError, match="no column 'label'"):
        next(arrow_batches(table.to_batches, label="label")())
