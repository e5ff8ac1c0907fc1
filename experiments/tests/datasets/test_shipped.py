"""The datasets of the repository: found wherever others are not, as their notes say, and worth testing on."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import MultinomialNB

from dichotomies import NestedDichotomyClassifier
from experiments.datasets import DATA_DIR_VARIABLE, DATASETS, describe, features, load, splits
from experiments.datasets.folder import SHIPPED_FOLDER
from experiments.datasets.partial_file import digest_of
from tests.slow import slow

SHIPPED = {"clinc150": (22_500, 12_125, 150), "omniglot_100": (2_000, 288, 100)}


def test_nothing_else_is_shipped():
    assert {path.name for path in SHIPPED_FOLDER.iterdir()} == SHIPPED.keys()


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_what_its_note_says(name):
    data, note = load(name), (SHIPPED_FOLDER / name / "SOURCE.txt").read_text("utf-8")
    file, size, digest = re.search(r"^(\S+)  (\d+) bytes  sha256 (\w+)$", note, re.MULTILINE).groups()
    path = SHIPPED_FOLDER / name / file
    assert (path.stat().st_size, digest_of(path)) == (int(size), digest)
    assert (*data.X.shape, len(np.unique(data.y))) == SHIPPED[name]
    assert all(f"\n{part}:" in note for part in ("Authors", "Source", "Licence", "Changes"))
    if name in DATASETS.names():
        source = DATASETS.create(name)
        assert (source.rows, source.features, source.classes) == SHIPPED[name]


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("has_data_folder", [True, False])
def test_it_is_found_with_and_without_a_data_folder(name, has_data_folder, monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_DIR_VARIABLE, str(tmp_path) if has_data_folder else "")
    assert load(name, download=False).name == name
    assert describe("clinc150").place == "repository"


def test_the_data_folder_comes_first(tmp_path):
    (tmp_path / "clinc150").mkdir()
    np.savez(tmp_path / "clinc150" / "clinc150.npz", X=np.eye(2), y=["a", "b"], test_idx=[1])
    assert load("clinc150", tmp_path).y.tolist() == ["a", "b"]


@pytest.mark.parametrize("estimator", [MultinomialNB(), *slow(LogisticRegression(max_iter=1_000))], ids=repr)
@pytest.mark.parametrize(("name", "weighting"), [("clinc150", "tfidf"), ("omniglot_100", "unit")])
def test_calibration_inside_and_outside_lowers_the_nll_of_random_trees(name, weighting, estimator):
    data = load(name)
    (split,) = splits(data, repeats=1)
    X, X_test = features(data, split, weighting=weighting)
    y, y_test = data.y[split.train_rows], data.y[split.test_rows]

    def nll(internal, external):
        clf = NestedDichotomyClassifier(
            estimator,
            "random",
            internal_calibration=internal,
            external_calibration=external,
            random_state=0,
        ).fit(X, y)
        return log_loss(y_test, clf.predict_proba(X_test), labels=clf.classes_)

    assert nll("platt", "vector") < nll(None, None)
