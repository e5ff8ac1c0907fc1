"""Datasets as files: reading, writing, and the folders they lie in."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from experiments.datasets import DATA_DIR_VARIABLE, Dataset, FetchError, cache_folder, load
from experiments.datasets.folder import read, write


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


@pytest.mark.parametrize("X", [np.arange(6).reshape(2, 3), csr_array(np.eye(2, 3, dtype=np.uint8))], ids=type)
def test_what_is_written_is_read(tmp_path, X):
    written = Dataset("mine", X, np.array(["x", "y"]), {"train_idx": np.array([1])})
    path = write(written, tmp_path)
    assert [each.name for each in path.parent.iterdir()] == ["mine.npz"]
    found = read("mine", path)
    assert issparse(found.X) == issparse(X)
    assert np.array_equal(*(each.toarray() if issparse(each) else each for each in (found.X, X)))
    assert found.y.tolist() == ["x", "y"]
    assert found.extra["train_idx"].tolist() == [1]


def test_python_objects_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="'y' holds Python objects"):
        write(Dataset("mine", np.eye(2), np.array(["x", None])), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_that_cannot_be_written_whole_is_not_there_at_all(tmp_path, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez_compressed", full)
    with pytest.raises(FetchError, match=r"The disk that holds .*mine\.npz is full"):
        write(Dataset("mine", np.eye(2), np.arange(2)), tmp_path)
    assert list((tmp_path / "mine").iterdir()) == []


def test_the_cache_is_where_the_user_says_or_the_system_keeps_such(monkeypatch, cache, tmp_path):
    assert cache_folder() == cache
    monkeypatch.delenv("DICHOTOMIES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "dichotomies"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "dichotomies"
