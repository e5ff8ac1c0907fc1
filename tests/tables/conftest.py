"""The same small table, written in every format."""

import csv
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

N_ROWS, N_FEATURES = 50, 4


@pytest.fixture(scope="session")
def rows():
    """Features, a few of them zero, and integer labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).round(3) * (rng.random((N_ROWS, N_FEATURES)) < 0.7)
    X[0] = 1.5  # every feature occurs, the last one too
    return X, rng.integers(10, 14, size=N_ROWS)


@pytest.fixture(scope="session")
def names():
    return tuple(f"x{i}" for i in range(N_FEATURES))


@pytest.fixture(scope="session")
def written(rows, names, tmp_path_factory):
    """The path of the table in each format."""
    X, y = rows
    folder = tmp_path_factory.mktemp("tables")
    paths = {
        ending: folder / f"table.{ending}" for ending in ("csv", "csv.gz", "tsv", "parquet", "svm", "npz")
    }
    paths |= {
        "svm.gz": folder / "table.svm.gz",
        "sparse": folder / "sparse.npz",
        "fortran": folder / "fortran.npz",
    }
    for ending, mark in {"csv": ",", "tsv": "\t"}.items():
        with paths[ending].open("w", newline="") as file:
            writer = csv.writer(file, delimiter=mark)
            writer.writerow(["label", *names])
            writer.writerows([label, *row] for label, row in zip(y, X.tolist(), strict=True))
    columns = {"label": y} | {name: X[:, i] for i, name in enumerate(names)}
    pq.write_table(pa.table(columns), paths["parquet"])
    dump_svmlight_file(X, y, str(paths["svm"]), zero_based=False)
    for plain, packed in {"csv": "csv.gz", "svm": "svm.gz"}.items():
        paths[packed].write_bytes(gzip.compress(paths[plain].read_bytes()))
    np.savez(paths["npz"], X=X, y=y)
    np.savez_compressed(paths["fortran"], X=np.asfortranarray(X), y=y)
    sparse = csr_array(X)
    parts = {"data": sparse.data, "indices": sparse.indices, "indptr": sparse.indptr, "shape": sparse.shape}
    np.savez_compressed(paths["sparse"], y=y, **parts)
    return paths
