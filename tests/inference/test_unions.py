"""Unions of subtrees against all unions, and their coverage."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

from dichotomies import NestedDichotomyClassifier, load
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import GivenScores
from dichotomies.inference.unions import confident_unions, wrong_unions
from dichotomies.tree.forest import Forest
from tests.inference.test_search import scored_trees


def _all_unions(tree, most):
    """Every union of at most `most` disjoint subtrees, as tuples of ranges."""
    groups = [(p, p + 1) for p in range(tree.n_classes)]
    groups += list(zip(tree.start.tolist(), tree.stop.tolist(), strict=True))
    for n in range(1, most + 1):
        for some in combinations(groups, n):
            if all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(some, 2)):
                yield some


@settings(max_examples=25)
@given(scored_trees(), st.integers(1, 3), st.sampled_from([0.3, 0.5, 0.8, 0.95, 0.9999]))
def test_no_union_with_the_confidence_is_smaller(scored, most, confidence):
    tree, log_odds = scored
    model = FittedForest(Forest.of([tree]), GivenScores())
    answers = confident_unions(model, log_odds, most, confidence)
    proba = np.exp(model.log_proba(log_odds))[:, tree.leaf_order]
    for row, p in enumerate(proba):
        unions = [
            (sum(b - a for a, b in union), sum(p[a:b].sum() for a, b in union))
            for union in _all_unions(tree, most)
        ]
        # sums that differ from the confidence by rounding may count or not
        at_least, at_most = (
            min(size for size, total in unions if total >= confidence + rounding)
            for rounding in (-1e-12, 1e-12)
        )
        assert at_least <= answers.size[row] <= at_most
        assert answers.n_groups[row] <= most
        assert answers.proba[row] >= confidence - 1e-9
        assert p[np.isin(tree.leaf_labels, answers.labels(row))].sum() == pytest.approx(answers.proba[row])


@settings(max_examples=25)
@given(scored_trees(), st.integers(1, 3), st.data())
def test_unions_above_the_score_hold_the_class_and_the_union_at_the_score_does_not(scored, most, data):
    tree, log_odds = scored
    model = FittedForest(Forest.of([tree]), GivenScores())
    leaf = np.full(len(log_odds), data.draw(st.integers(0, tree.n_classes - 1)))
    proba = np.exp(model.log_proba(log_odds))
    score = wrong_unions(tree, proba, leaf, most)
    y = tree.leaf_labels[leaf]
    for row in range(len(log_odds)):
        at = score[row, most - 1]
        one = log_odds[row : row + 1]
        above = confident_unions(model, one, most, float(np.nextafter(at, 2)))
        assert above.holds(y[row : row + 1]).all()
        if at > 0:
            assert not confident_unions(model, one, most, float(at)).holds(y[row : row + 1]).any()


@pytest.fixture(scope="module")
def digits():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    clf = NestedDichotomyClassifier(internal_calibration=None, external_calibration=None, random_state=0)
    clf.fit(X[:200] / 16, y[:200])
    return clf.calibrate_sets(X[200:1000] / 16, y[200:1000], groups=3), X[1000:] / 16, y[1000:]


def test_unions_hold_their_coverage_and_get_smaller_with_more_groups(digits, tmp_path):
    clf, X, y = digits
    for coverage in (0.9, 0.97):
        sizes = []
        for groups in (1, 2, 3):
            answers = clf.predict_node(X, coverage=coverage, groups=groups)
            assert answers.holds(y).mean() > coverage - 0.03
            sizes.append(answers.size.mean())
        assert sizes[0] >= sizes[2]
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model").predict_node(X[:5], coverage=0.9, groups=2)
    assert again.names == clf.predict_node(X[:5], coverage=0.9, groups=2).names


def test_one_group_is_the_node_and_more_need_preparation(digits):
    clf, X, _ = digits
    few = X[:50]
    nodes = clf.predict_node(few, 0.8)
    unions = confident_unions(clf.model_, few, 1, 0.8)
    assert np.array_equal(nodes.size, unions.size)
    assert nodes.names == unions.names
    with pytest.raises(ValueError, match="groups=4"):
        clf.predict_node(few, coverage=0.9, groups=4)
