"""Places of new classes: beside the class they are like, by features and by the model."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.rows import Rows
from dichotomies.training.updating import class_cosines
from dichotomies.tree.edited_forest import greatest_depth

PLAIN = {"internal_calibration": None, "external_calibration": None, "random_state": 0}


def _blobs(n_classes, n_rows=12, seed=0):
    rng = np.random.RandomState(seed)
    y = np.repeat(np.arange(n_classes), n_rows)
    return rng.normal(0, 4, (n_classes, 5))[y] + rng.normal(size=(len(y), 5)), y


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_cosines_are_those_of_centred_class_means(form):
    X, y = _blobs(6)
    rows = Rows(form(X), y, np.arange(6))
    mean = np.array([X[y == c].mean(axis=0) for c in range(6)])
    points = (mean - mean.mean(axis=0)) / (X.std(axis=0) if form is np.asarray else 1.0)
    points /= np.linalg.norm(points, axis=1)[:, None]
    np.testing.assert_allclose(class_cosines(rows, np.array([4, 1])), points[[4, 1]] @ points.T, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_cosines_are_finite_whatever_the_features(form):
    X = np.zeros((6, 3))
    X[:, 1] = np.arange(6) * 1e200
    found = class_cosines(Rows(form(X), np.arange(6) // 2, np.arange(3)), np.array([2]))
    assert np.isfinite(found).all()
    with_holes = np.array([[np.nan, 1.0], [2.0, np.inf], [1.0, 3.0], [4.0, 1.0]])
    assert np.isfinite(class_cosines(Rows(with_holes, np.array([0, 0, 1, 1]), np.arange(2)), [1])).all()


@pytest.mark.parametrize("kind", [NestedDichotomyClassifier, NestedDichotomyEnsemble])
def test_a_class_is_placed_beside_its_twin_in_every_tree(kind):
    X, y = _blobs(8)
    twin, shallow = X[y == 3] + 0.01, {"structure": "balanced-2-means"}
    clf = kind(LogisticRegression(), keep_rows="all", **shallow, **PLAIN).fit(X, y)
    clf.update(twin, np.full(12, 8))
    for tree in clf.model_.forest.trees:
        spans = zip(tree.start, tree.stop, strict=True)
        assert {3, 8} in [set(tree.leaf_labels[a:b].tolist()) for a, b in spans]


def test_classes_added_one_by_one_or_together_keep_the_tree_shallow():
    X, y = _blobs(24)
    X[y >= 4] = X[y == 0][0] + np.random.RandomState(1).normal(size=X[y >= 4].shape)  # all like class 0
    old = y < 4
    first = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN)
    clf = first.fit(X[old], y[old])
    for label in range(4, 14):
        clf.update(X[y == label], y[y == label])
        assert clf.tree_.max_depth <= greatest_depth(label + 1)
    clf.update(X[y >= 14], y[y >= 14])
    assert clf.tree_.max_depth <= greatest_depth(24)


def test_places_do_not_depend_on_the_names_of_new_classes():
    X, y = _blobs(12)
    old = y < 6
    clf = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN)
    one = clf.fit(X[old], y[old]).update(X[~old], y[~old]).tree_
    two = clf.fit(X[old], y[old]).update(X[~old], 100 - y[~old]).tree_
    renamed = np.where(two.leaf_labels > 12, 100 - two.leaf_labels, two.leaf_labels)
    np.testing.assert_array_equal(renamed, one.leaf_labels)
    np.testing.assert_array_equal(two.split_depth, one.split_depth)
