"""Datasets as files: the documented form of arrays in an npz file, and the folders that hold such files.

A folder holds one sub-folder per dataset with a file ``<name>.npz`` of plain arrays: ``X`` and ``y`` for
dense data; ``data``, ``indices``, ``indptr``, ``shape`` and ``y`` for a CSR matrix; optionally ``train_idx``,
``val_idx``, ``test_idx`` and further arrays about the rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from dichotomies._common.atomic_files import replaced_when_done
from experiments.datasets.partial_file import disk_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dichotomies._common.typing import LabelArray, Matrix

DATA_DIR_VARIABLE = "DICHOTOMIES_DATA"
CACHE_DIR_VARIABLE = "DICHOTOMIES_CACHE"
#: The folder of datasets that are part of the repository, under free licences.
SHIPPED_FOLDER = Path(__file__).with_name("shipped")


@dataclass(frozen=True)
class Dataset:
    """Rows and labels of one dataset, with whatever else its file says about the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.datasets import Dataset
    >>> data = Dataset("mine", np.eye(3), np.array(["a", "b", "a"]), {"test_idx": np.array([2])})
    >>> X, y = data.split("test")
    >>> y
    array(['a'], dtype='<U1')
    """

    name: str
    X: Matrix
    y: LabelArray
    extra: Mapping[str, Any] = field(default_factory=dict)

    def split(self, part: str) -> tuple[Matrix, LabelArray]:
        """Rows and labels of one part ("train", "val", "test") of the dataset's standard split."""
        rows = self.extra.get(f"{part}_idx")
        if rows is None:
            raise ValueError(f"The dataset {self.name!r} has no standard {part} part.")
        return self.X[rows], self.y[rows]


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of datasets: the argument, else the environment variable ``DICHOTOMIES_DATA``, else none."""
    folder = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    return Path(folder).expanduser() if folder else None


def cache_folder() -> Path:
    """The folder for what was downloaded: ``DICHOTOMIES_CACHE``, else the user's cache folder."""
    named = os.environ.get(CACHE_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dichotomies"


def npz_path(folder: Path, name: str) -> Path:
    """Path of the dataset of that name in a folder of datasets."""
    return folder / name / f"{name}.npz"


def read(name: str, path: Path) -> Dataset:
    """Read a dataset from its npz file."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    y = arrays.pop("y")
    if "indptr" not in arrays:
        return Dataset(name, arrays.pop("X"), y, arrays)
    data, indices, indptr, shape = (arrays.pop(key) for key in ("data", "indices", "indptr", "shape"))
    # int32 is what scikit-learn's compiled code expects of indices
    index = np.int32 if len(data) <= np.iinfo(np.int32).max else np.int64
    parts = data.astype(np.float64), indices.astype(index), indptr.astype(index)
    return Dataset(name, csr_array(parts, shape=tuple(shape.tolist())), y, arrays)


def write(dataset: Dataset, folder: Path) -> Path:
    """Write a dataset into a folder of datasets; the file appears when it is whole."""
    path = npz_path(folder, dataset.name)
    sparse = issparse(dataset.X)
    arrays = {**(_csr_parts(dataset.X) if sparse else {"X": dataset.X}), "y": dataset.y, **dataset.extra}
    _refuse_objects(arrays)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_when_done(path) as unfinished, unfinished.open("xb") as file:
            np.savez_compressed(file, **arrays)
    return path


def _csr_parts(X: Matrix) -> dict[str, Any]:
    X = X.tocsr()
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}


def _refuse_objects(arrays: Mapping[str, Any]) -> None:
    for key, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise ValueError(f"The array {key!r} holds Python objects; only plain arrays can be written.")
