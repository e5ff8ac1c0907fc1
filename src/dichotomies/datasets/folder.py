"""Real datasets with many classes, read from a local folder.

The folder is named by the argument `data_dir` or the environment variable ``DICHOTOMIES_DATA``. It holds
one sub-folder per dataset with a file ``<name>.npz`` of plain arrays: ``X`` and ``y`` for dense data;
``data``, ``indices``, ``indptr``, ``shape`` and ``y`` for a CSR matrix; optionally ``train_idx``,
``val_idx``, ``test_idx`` and further arrays about the rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dichotomies._typing import LabelArray, Matrix

DATA_DIR_VARIABLE = "DICHOTOMIES_DATA"


@dataclass(frozen=True)
class Dataset:
    """Rows and labels of one dataset, with whatever else its file says about the rows."""

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


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a dataset by name.

    Parameters
    ----------
    name : str
        The dataset's name, such as ``"letter"``.
    data_dir : path, optional
        The folder of datasets; by default the environment variable ``DICHOTOMIES_DATA``.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no folder was named.
    """
    with np.load(_path(name, data_dir), allow_pickle=False) as file:
        arrays = dict(file)
    y = arrays.pop("y")
    if "indptr" in arrays:
        data, indices, indptr, shape = (arrays.pop(key) for key in ("data", "indices", "indptr", "shape"))
        # int32 is what scikit-learn's compiled code expects of indices
        parts = data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32)
        return Dataset(name, csr_array(parts, shape=tuple(shape.tolist())), y, arrays)
    return Dataset(name, arrays.pop("X"), y, arrays)


def _path(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    folder = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    if not folder:
        raise FileNotFoundError(
            f"No data folder is set: pass data_dir, or set {DATA_DIR_VARIABLE} to the folder that holds "
            f"{name}/{name}.npz."
        )
    path = Path(folder) / name / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"There is no dataset {name!r}: expected the file {path}.")
    return path
