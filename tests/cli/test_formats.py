"""The same rows give the same model and the same predictions, whatever the format of the file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from tests.cli.conftest import fit, run, write_csv


@pytest.fixture(scope="module")
def files(digits, tmp_path_factory):
    """Rows of digits in every format, labels as whole numbers."""
    X, y = digits[0][:300, 2:60], digits[1][:300]
    folder = tmp_path_factory.mktemp("formats")
    names = [f"p{i}" for i in range(X.shape[1])]
    write_csv(folder / "d.csv", ["y", *names], np.column_stack([y.astype(object), X]).tolist())
    pq.write_table(pa.table({"y": y} | {name: X[:, i] for i, name in enumerate(names)}), folder / "d.parquet")
    dump_svmlight_file(X, y, str(folder / "d.svm"), zero_based=False)
    np.savez(folder / "dense.npz", X=X, y=y)
    np.savez(folder / "single.npz", X=X.astype(np.float32), y=y)  # sixteenths are exact in single precision
    S = csr_array(X)
    np.savez(folder / "sparse.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    return folder


def predictions(files, name):
    model = files / f"{name}.model"
    fit(files / name, model, "--estimator", "multinomial-nb", label="y")
    return run("predict", model, files / name, "-k", 3).stdout


@pytest.mark.parametrize("name", ["d.parquet", "d.svm", "dense.npz", "single.npz", "sparse.npz"])
def test_predictions_do_not_depend_on_the_format(name, files):
    assert predictions(files, name) == predictions(files, "d.csv")


def test_a_model_of_numbers_can_be_evaluated_on_text_labels(files):
    fit(files / "d.parquet", files / "m", label="y")
    data = [files / "d.parquet", files / "d.csv"]
    assert len({run("evaluate", files / "m", each, "--resamples", 1).stdout for each in data}) == 1
