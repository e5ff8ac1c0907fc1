"""Clones get the columns of a data frame as the user gave them: categories stay categories."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble, load
from dichotomies.learners.frames import FrameColumns


@pytest.fixture(scope="module")
def people():
    """A frame with categories, words, whole numbers, fractions and gaps, and three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = pd.DataFrame(
        {
            "city": pd.Categorical(
                np.where(rng.random(300) < 0.8, np.array(["Ulm", "Bonn", "Köln"])[y], "Hof")
            ),
            "job": np.array(["nurse", "smith"])[rng.integers(2, size=300)].astype(object),
            "children": rng.integers(4, size=300),
            "height": rng.normal(size=300),
        }
    )
    X.loc[5, "city"] = None
    return X, y


class Watching(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the types of what it was given."""

    seen: ClassVar = []

    def fit(self, X, y):
        Watching.seen.append((list(X.columns), [str(kind) for kind in X.dtypes]))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        assert isinstance(X, pd.DataFrame)
        return np.full((len(X), 2), 0.5)


def test_clones_get_the_columns_of_the_frame_with_their_types(people):
    X, y = people
    Watching.seen.clear()
    clf = NestedDichotomyClassifier(Watching(), external_calibration=None, random_state=0).fit(X, y)
    expected = (list(X.columns), [str(kind) for kind in X.dtypes])
    assert all(seen == expected for seen in Watching.seen)
    assert len(Watching.seen) >= 2  # one for each node
    assert clf.learner_.startswith("clones: one Watching per node")


def test_two_classes_are_the_classifier_on_the_frame(people):
    X, y = people
    X, y = X.drop(columns="job")[y < 2], y[y < 2]
    base = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    plain = {"internal_calibration": None, "external_calibration": None}
    clf = NestedDichotomyClassifier(base, **plain, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), base.fit(X, y).predict_proba(X), rtol=1e-9)
    new = X.head(2).assign(city=pd.Categorical(["Paris", "Ulm"]))
    gaps = X.head(2).assign(city=pd.Categorical([None, "Ulm"], categories=X["city"].cat.categories))
    np.testing.assert_allclose(clf.predict_proba(new), base.predict_proba(gaps), rtol=1e-9)


def test_pipelines_find_columns_by_name(people):
    X, y = people
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "job"]), ("passthrough", ["children", "height"])
    )
    clf = NestedDichotomyEnsemble(make_pipeline(encode, LogisticRegression()), n_estimators=2, random_state=0)
    assert clf.fit(X, y).score(X, y) > 0.6


def test_a_model_of_a_frame_is_saved_and_needs_its_columns(people, tmp_path):
    X, y = people
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city", "job"]))
    clf = NestedDichotomyClassifier(make_pipeline(encode, LogisticRegression()), random_state=0).fit(X, y)
    clf.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(X), clf.predict_proba(X))
    with pytest.raises(ValueError, match="lacks 'city'"):
        clf.predict(X[["job"]])


def test_frames_of_numbers_are_arrays(people):
    X, _ = people
    assert FrameColumns.of(X[["children", "height"]]) is None
    assert FrameColumns.of(np.eye(2)) is None


def test_lightgbm_takes_categories(people):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = people
    X = X.drop(columns="job")
    clf = NestedDichotomyClassifier(lightgbm.LGBMClassifier(verbose=-1, n_estimators=5), random_state=0)
    assert clf.fit(X, y).score(X, y) > 0.6
