"""Laws of the whole classifier, on whatever data hypothesis thinks of."""

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies.structures import STRUCTURES
from tests.uncalibrated import Uncalibrated

BASE = GaussianNB(var_smoothing=1e-3)


@st.composite
def problems(draw):
    """Rows of 2 to 8 classes, at least two of each, and any structure."""
    k, extra = draw(st.integers(2, 8)), draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = np.concatenate([np.repeat(np.arange(k), 2), rng.integers(k, size=extra)])
    X = rng.normal(size=(len(y), 3)) + y[:, None] * draw(st.floats(0, 3))
    return X, y, draw(st.sampled_from(STRUCTURES.names()))


@given(problems())
@settings(max_examples=25)
def test_rows_sum_to_one_and_the_best_class_is_predicted(problem):
    X, y, structure = problem
    clf = Uncalibrated(BASE, structure, random_state=0).fit(X, y)
    proba = clf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert np.array_equal(clf.predict(X), clf.classes_[proba.argmax(axis=1)])


@given(problems(), st.integers(1, 4), st.integers(2, 3))
@settings(max_examples=15)
def test_workers_and_chunks_do_not_change_a_bit(problem, chunks, n_jobs):
    X, y, structure = problem
    tree = DecisionTreeClassifier(max_features=1)
    alone = Uncalibrated(tree, structure, random_state=0).fit(X, y)
    with parallel_config("threading"):
        many = Uncalibrated(tree, structure, random_state=0, n_jobs=n_jobs).fit(X, y)
        rows = np.tile(X, (8, 1))
        with patch("dichotomies._common.chunks.CHUNK_BYTES", 64 * chunks * 8 * alone.tree_.n_nodes):
            assert np.array_equal(many.predict_log_proba(rows), alone.predict_log_proba(rows))
    assert np.array_equal(many.predict_log_proba(rows), alone.predict_log_proba(rows))


@given(problems(), st.data())
@settings(max_examples=25)
def test_weight_two_is_a_row_twice(problem, data):
    X, y, structure = np.abs(problem[0]), *problem[1:]
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y))))
    weighted = Uncalibrated(MultinomialNB(), structure, random_state=0).fit(X, y, weight)
    repeated = Uncalibrated(MultinomialNB(), structure, random_state=0)
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)
