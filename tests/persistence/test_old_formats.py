"""Files of earlier formats are read, and predict what they did."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from dichotomies import load
from dichotomies.persistence import save_load
from tests.persistence.models import rows_for

FILES = Path(__file__).parent / "format_1"

#: Probabilities of every tenth row of iris, by the version that wrote the files.
PREDICTIONS = np.load(FILES / "predictions.npz")


@pytest.mark.parametrize("name", sorted(PREDICTIONS))
def test_models_of_format_1_predict_what_they_did(name):
    X, _ = load_iris(return_X_y=True)
    model = load(FILES / f"{name}.model")
    np.testing.assert_allclose(model.predict_proba(X[::10]), PREDICTIONS[name], rtol=1e-12)


@pytest.mark.parametrize("name", sorted(PREDICTIONS))
def test_models_of_format_1_are_saved_in_the_format_of_today(name, tmp_path):
    X, _ = load_iris(return_X_y=True)
    before = load(FILES / f"{name}.model")
    before.save(tmp_path / "new.model")
    document = save_load._document((tmp_path / "new.model").read_bytes(), tmp_path)
    assert document["format"] == save_load.FORMAT
    np.testing.assert_array_equal(load(tmp_path / "new.model").predict_proba(X), before.predict_proba(X))


def test_parameters_of_format_1_have_their_names_of_today():
    params = load(FILES / "averaged.model").get_params(deep=False)
    assert (params["average_folds"], params["internal_calibration"]) == (True, "platt")


BOOSTING = Path(__file__).parent / "format_2"


@pytest.mark.parametrize("name", ["gradient", "ada"])
def test_boosted_trees_with_thresholds_predict_what_they_did_and_are_saved_anew(name, tmp_path):
    """Trees of one depth, as a heap, by the version that wrote the files; it summed them in doubles."""
    X = load_digits().data[:50, 20:40] / 16
    model = load(BOOSTING / f"boosting_{name}.model")
    expected = np.load(BOOSTING / "predictions.npz")[name]
    np.testing.assert_allclose(model.predict_log_proba(X), expected, rtol=1e-7)
    pairs = np.arange(50), np.arange(50) % 9
    np.testing.assert_allclose(
        model.model_.scorer.pair_log_odds(X, *pairs), model.model_.scorer.log_odds(X)[pairs], rtol=1e-12
    )
    model.save(tmp_path / "new.model")
    np.testing.assert_array_equal(
        load(tmp_path / "new.model").predict_log_proba(X), model.predict_log_proba(X)
    )


def test_boosting_limited_by_depth_stays_so():
    estimator = load(BOOSTING / "boosting_gradient.model").estimator
    assert (estimator.max_depth, estimator.max_leaf_nodes, estimator.max_tree_features) == (3, None, 1.0)


VERSIONS = sorted(Path(__file__).parent.glob("version_*"))


@pytest.mark.parametrize(
    "path",
    [path for folder in VERSIONS for path in sorted(folder.glob("*.model"))],
    ids=lambda path: path.stem,
)
def test_models_of_each_version_predict_what_they_did(path, tmp_path):
    """Written by ``python -m tests.persistence.keep``."""
    X = rows_for(path.stem)[0][::10]
    fitted = load(path)
    expected = np.load(path.parent / "predictions.npz")[path.stem]
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-7, atol=1e-12)
    if path.stem == "prediction sets":
        assert all(len(labels) for labels in fitted.predict_set(X, 0.9))
    fitted.save(tmp_path / "new.model")
    np.testing.assert_array_equal(load(tmp_path / "new.model").predict_proba(X), fitted.predict_proba(X))
