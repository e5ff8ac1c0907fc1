"""Reading datasets from a folder."""

import numpy as np
import pytest
from scipy.sparse import issparse

from dichotomies.datasets import DATA_DIR_VARIABLE, load


@pytest.fixture
def folder(tmp_path):
    for name, arrays in {
        "dense": {"X": np.eye(3), "y": np.array(["a", "b", "a"]), "train_idx": [0, 1], "test_idx": [2]},
        "sparse": {
            "data": np.array([2, 5], dtype=np.uint8),
            "indices": np.array([1, 0], dtype=np.int64),
            "indptr": np.array([0, 1, 2], dtype=np.int64),
            "shape": np.array([2, 3]),
            "y": np.array([7, 8]),
        },
    }.items():
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / f"{name}.npz", **arrays)
    return tmp_path


def test_dense_with_a_standard_split(folder):
    data = load("dense", folder)
    X, y = data.split("train")
    assert np.array_equal(X, np.eye(3)[:2])
    assert y.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="'dense' has no standard val part"):
        data.split("val")


def test_sparse(folder, monkeypatch):
    monkeypatch.setenv(DATA_DIR_VARIABLE, str(folder))
    data = load("sparse")
    assert issparse(data.X)
    assert data.X.indices.dtype == np.int32
    assert data.X.toarray().tolist() == [[0, 2, 0], [5, 0, 0]]


def test_what_is_missing_is_named(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"no dataset 'other': expected the file .*other\.npz"):
        load("other", folder)
    monkeypatch.delenv(DATA_DIR_VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match="set DICHOTOMIES_DATA to the folder that holds dense/dense"):
        load("dense")
