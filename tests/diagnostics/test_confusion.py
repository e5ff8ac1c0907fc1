"""Confused pairs, against the whole matrix."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix
from sklearn.naive_bayes import GaussianNB

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.diagnostics import confused_pairs
from dichotomies.diagnostics.confusion import separating_nodes


def test_pairs_are_those_of_the_whole_matrices(scored):
    clf, X, y = scored
    pairs = confused_pairs(clf, X, y, top=1000)
    proba, k = clf.predict_proba(X), len(clf.classes_)
    mass = np.stack([proba[y == c].sum(axis=0) for c in clf.classes_])
    errors = confusion_matrix(y, clf.predict(X))
    assert len(pairs) == k * (k - 1) / 2
    for first, second, m, e, rows in zip(
        pairs.first, pairs.second, pairs.mass, pairs.errors, pairs.rows, strict=True
    ):
        assert m == pytest.approx(mass[first, second] + mass[second, first])
        assert e == errors[first, second] + errors[second, first]
        assert rows == np.isin(y, [first, second]).sum()
    assert (np.diff(pairs.mass) <= 0).all()
    assert pairs.errors.sum() == (clf.predict(X) != y).sum()


def test_ordered_by_errors(calibrated):
    clf, X, y = calibrated
    pairs = confused_pairs(clf, X, y, top=5, by="errors")
    assert len(pairs) == 5
    assert (np.diff(pairs.errors) <= 0).all()
    with pytest.raises(ValueError, match="'mass' or 'errors', not by 'name'"):
        confused_pairs(clf, X, y, by="name")


def test_the_node_of_a_pair_separates_it(calibrated):
    clf, X, y = calibrated
    pairs, tree = confused_pairs(clf, X, y), clf.tree_
    for first, second, node in zip(pairs.first, pairs.second, pairs.node, strict=True):
        assert first in tree.leaf_labels[tree.start[node] : tree.split[node]]
        assert second in tree.leaf_labels[tree.split[node] : tree.stop[node]]


def test_separating_nodes_of_a_small_tree():
    tree = ClassTree.from_nested([["a", "b"], ["c", ["d", "e"]]])
    left, right = np.array([0, 0, 2, 3]), np.array([1, 4, 4, 4])
    assert separating_nodes(tree, left, right).tolist() == [1, 0, 2, 3]


def test_weight_two_is_the_row_twice(calibrated, rng):
    clf, X, y = calibrated
    weight = rng.integers(0, 3, len(y))
    one, two = (
        confused_pairs(clf, X, y, sample_weight=weight),
        confused_pairs(clf, X.repeat(weight, 0), y.repeat(weight)),
    )
    np.testing.assert_allclose(one.mass, two.mass)
    np.testing.assert_array_equal(one.errors, two.errors)


def test_there_are_no_pairs_where_every_row_is_certain_and_right(rng):
    y = np.repeat([0, 1], 20)
    X = y[:, None] * 1e6 + rng.standard_normal((40, 2))
    clf = NestedDichotomyClassifier(GaussianNB(), external_calibration=None, random_state=0).fit(X, y)
    assert (clf.predict_proba(X).max(axis=1) == 1).all()
    assert len(confused_pairs(clf, X, y)) == 0
    assert "2 classes" in repr(clf.report(X, y))
