"""Searching several trees gives what sorting their pooled distribution gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dichotomies import ClassTree, HistAdaBoostClassifier, NestedDichotomyEnsemble
from dichotomies._kernels.compile import compiling_always
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.inference.answers import largest, top_k
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import GivenScores, JoinedScorer
from dichotomies.tree.forest import Forest
from tests.inference.test_search import LEARNERS, LOG_ODDS, _assert_sorted_alike, _dense, _problem, _sparse

POOLINGS = ("arithmetic", "geometric")


@st.composite
def scored_forests(draw):
    """Two or three trees over the same classes, and log-odds of a few rows at their different nodes."""
    n = draw(st.integers(2, 12))
    trees = []
    for _ in range(draw(st.integers(2, 3))):
        leaves = draw(st.permutations(range(n)))
        rank = draw(st.lists(st.integers(0, 5), min_size=n - 1, max_size=n - 1))
        trees.append(ClassTree(leaves, rank))
    forest = Forest.of(trees)
    shape = draw(st.integers(1, 4)), forest.n_different
    return forest, draw(arrays(np.float64, shape, elements=LOG_ODDS))


def _parts(forest):
    """Distinct nodes of each tree that no tree before it has."""
    sizes = [len(forest.new_nodes(t)) for t in range(len(forest.trees))]
    return [size for size in sizes if size]


def _joined(kind):
    def scorer_of(forest, log_odds):
        sizes = _parts(forest)
        columns = np.split(log_odds, np.cumsum(sizes)[:-1], axis=1)
        parts = [kind(part)[0] for part in columns]
        return JoinedScorer(parts, sizes), kind(log_odds)[1]

    return scorer_of


KINDS = {
    "given": lambda forest, log_odds: (GivenScores(), log_odds),
    "dense": _joined(_dense),
    "sparse": _joined(_sparse),
}


def test_turned_trees_have_the_sides_of_the_first_occurrence():
    trees = [ClassTree.from_nested([["a", "b"], ["c", "d"]]), ClassTree.from_nested([["d", "c"], ["a", "b"]])]
    forest = Forest.of(trees)
    turned, nodes = forest.oriented(1)
    assert turned.to_nested() == trees[0].to_nested()
    assert nodes.tolist() == forest.oriented(0)[1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
@given(scored=scored_forests(), data=st.data())
def test_the_best_classes_are_the_first_of_the_sorted_pool(kind, scored, data):
    forest, log_odds = scored
    k = data.draw(st.integers(1, forest.n_classes))
    scorer, X = KINDS[kind](forest, log_odds)
    for pooling in POOLINGS:
        model = FittedForest(forest, scorer, pooling)
        truth = model.log_proba(X)
        expected = np.take_along_axis(truth, largest(truth, k), axis=1)
        codes = model.search.best(X, k).codes
        assert all(len(set(row)) == k for row in codes.tolist())
        np.testing.assert_allclose(np.take_along_axis(truth, codes, axis=1), expected, rtol=1e-9, atol=1e-9)
        best = top_k(model, X, k, search="exact")
        np.testing.assert_allclose(best.proba, np.exp(expected), rtol=1e-9, atol=1e-6)
        assert (best.lower <= np.exp(expected) * (1 + 1e-9)).all()
        assert (best.upper >= np.exp(expected) * (1 - 1e-9)).all()


@given(scored_forests(), st.sampled_from([1e-12, 0.1, 0.5, 0.99]))
def test_thresholds_and_candidates_are_answered_by_search(scored, threshold):
    forest, log_odds = scored
    model = FittedForest(forest, GivenScores(), "arithmetic")
    search, proba = model.search, np.exp(model.log_proba(log_odds))
    found = search.best(log_odds, forest.n_classes, np.log(threshold))
    for codes, row in zip(found.codes, proba, strict=True):
        apart = np.abs(row - threshold) > 1e-12
        assert set(codes[codes >= 0]) - set(np.flatnonzero(~apart)) == set(
            np.flatnonzero(apart & (row > threshold))
        )
    codes = np.tile([forest.n_classes - 1, 0], (len(log_odds), 1))
    np.testing.assert_allclose(np.exp(search.log_proba_of(log_odds, codes)[0]), proba[:, [-1, 0]], rtol=1e-9)


@given(scored_forests(), st.data())
def test_under_external_calibration_order_and_intervals_hold(scored, data):
    forest, log_odds = scored
    k = data.draw(st.integers(1, forest.n_classes))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    calibrator = MULTICLASS.create("vector")
    n = calibrator.n_classes_ = forest.n_classes
    for pooling in POOLINGS:
        scale = rng.uniform(0, 2, n) if pooling == "arithmetic" else np.full(n, rng.uniform(0, 2))
        calibrator.scale_, calibrator.bias_ = scale, rng.normal(size=n)
        model = FittedForest(forest, GivenScores(), pooling, external=calibrator)
        truth = model.log_proba(log_odds)
        expected = np.take_along_axis(truth, largest(truth, k), axis=1)
        for tolerance in (1e-6, 0.3):
            best = top_k(model, log_odds, k, search="exact", tolerance=tolerance)
            found = np.take_along_axis(truth, best.codes, axis=1)
            certain = best.is_searched
            np.testing.assert_allclose(found[certain], expected[certain], rtol=1e-9, atol=1e-9)
            assert (best.lower <= np.exp(found) * (1 + 1e-9)).all()
            assert (best.upper >= np.exp(found) * (1 - 1e-9)).all()
            assert ((best.upper - best.lower) <= tolerance * (1 + 1e-9)).all()


def test_intervals_hold_where_the_calibrator_bounds_what_it_reads():
    """The bound holds for the normalised geometric mean, the search knows it before that."""
    trees = [ClassTree.from_nested([0, [1, 2]]), ClassTree.from_nested([[0, 1], 2])]
    calibrator = MULTICLASS.create("vector")
    calibrator.n_classes_, calibrator.scale_, calibrator.bias_ = 3, np.full(3, 0.1), np.zeros(3)
    model = FittedForest(Forest.of(trees), GivenScores(), "geometric", external=calibrator)
    log_odds = np.array([[800.0, 0.0, 0.0, 0.0]])
    best = top_k(model, log_odds, 1, search="exact", tolerance=0.3)
    proba = np.exp(model.log_proba(log_odds)).max()
    assert best.lower[0, 0] <= proba <= best.upper[0, 0] * (1 + 1e-12)


@pytest.mark.parametrize("internal", [None, "isotonic"])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_is_searched_exactly(name, internal):
    estimator, kind = LEARNERS[name]
    X, y = _problem(n_classes=20)
    clf = NestedDichotomyEnsemble(
        estimator, "random", n_estimators=3, pooling="arithmetic", internal_calibration=internal,
        external_calibration=None, random_state=0,
    ).fit(kind(X), y)  # fmt: skip
    rows = kind(X[:15])
    for k in (1, 4, 20):
        best = clf.predict_top_k(rows, k, search="exact")
        _assert_sorted_alike(clf, rows, k, best)
        assert best.is_searched.all()
    with compiling_always():
        _assert_sorted_alike(clf, rows, 4, clf.predict_top_k(rows, 4, search="exact"))


def test_large_forests_are_searched_and_small_ones_are_not(monkeypatch):
    X, y = _problem(n_classes=20)
    clf = NestedDichotomyEnsemble(
        LogisticRegression(), "random", n_estimators=2, pooling="arithmetic", random_state=0,
        internal_calibration=None, external_calibration=None,
    ).fit(csr_array(X), y)  # fmt: skip
    rows, proba = csr_array(X[:9]), clf.predict_proba(csr_array(X[:9]))
    assert not clf.predict_top_k(rows, 1).is_searched.any()
    expected = clf.predict(rows)
    free = dict.fromkeys(("sparse", "dense", "wave"), 0)
    monkeypatch.setattr("dichotomies.inference.search._COST_OF_VISIT", free)
    assert clf.predict_top_k(rows, 1).is_searched.all()
    assert np.array_equal(clf.predict(rows), expected)
    assert np.array_equal(clf.predict_above(rows, 0.05).toarray() > 0, proba >= 0.05)
    np.testing.assert_allclose(clf.proba_of(rows, [3, 1]), proba[:, [3, 1]], rtol=1e-9)


def test_geometric_pools_are_certified_or_computed_in_full():
    X, y = _problem(n_classes=12)
    clf = NestedDichotomyEnsemble(
        GaussianNB(), n_estimators=2, external_calibration=None, random_state=0
    ).fit(X, y)
    _assert_sorted_alike(clf, X[:9], 3, clf.predict_top_k(X[:9], 3, search="exact", tolerance=1e-12))
    loose = clf.predict_top_k(X[:9], 3, search="exact", tolerance=0.5)
    assert loose.is_searched.any()


def test_a_beam_needs_one_tree():
    X, y = _problem(n_classes=12)
    clf = NestedDichotomyEnsemble(HistAdaBoostClassifier(n_estimators=2), n_estimators=2, random_state=0)
    with pytest.raises(ValueError, match="needs one tree"):
        clf.fit(X, y).predict_top_k(X, 2, search="beam")
