"""Searching gives what sorting the whole distribution gives, for every learner and calibration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies import HistAdaBoostClassifier, NestedDichotomyClassifier
from dichotomies._kernels.compile import compiling_always
from dichotomies._kernels.composition import class_log_proba
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.inference.answers import largest
from dichotomies.inference.search import TreeSearch
from dichotomies.learners.weights import DenseWeights, SparseWeights
from tests.tree.test_class_tree import trees
from tests.uncalibrated import Uncalibrated

#: Few different values, so that there are ties; 37 is a probability of 1 in double precision.
LOG_ODDS = st.sampled_from([0.0, 0.5, -0.5, 1.0, 37.0, -37.0, 800.0, -1e9])


@st.composite
def scored_trees(draw):
    """A tree, log-odds of a few rows at its nodes, and weights that give them: row i has only feature i."""
    tree = draw(trees())
    log_odds = draw(arrays(np.float64, (draw(st.integers(1, 4)), tree.n_nodes), elements=LOG_ODDS))
    return tree, log_odds


def _dense(log_odds):
    n_rows, n_nodes = log_odds.shape
    return DenseWeights(log_odds.T.copy(), np.zeros(n_nodes), np.ones(n_nodes, bool)), np.eye(n_rows)


def _sparse(log_odds):
    n_rows, n_nodes = log_odds.shape
    entries = csr_array(log_odds)
    none = np.zeros(n_nodes)
    weights = SparseWeights(
        none, none, np.ones(n_nodes, bool), entries.indptr, entries.indices, entries.data.astype(float)
    )
    return weights, csr_array(np.eye(n_rows))


class _Pairs:
    """Only what every scorer has, so that the search goes by waves."""

    def __init__(self, log_odds):
        self.pair_log_odds = lambda X, rows, nodes: log_odds[X[rows, 0].astype(int), nodes]


def _waves(log_odds):
    return _Pairs(log_odds), np.arange(float(len(log_odds)))[:, None]


@pytest.mark.parametrize("kind", [_dense, _sparse, _waves])
@given(scored=scored_trees(), data=st.data())
def test_the_best_classes_are_the_first_of_the_sorted_distribution(kind, scored, data):
    tree, log_odds = scored
    k = data.draw(st.integers(1, tree.n_classes))
    scorer, X = kind(log_odds)
    found = TreeSearch.of(tree, scorer, None).best(X, k)
    log_proba = class_log_proba(tree, log_odds)
    expected = largest(log_proba, k)
    assert np.array_equal(found.codes, expected)
    np.testing.assert_allclose(found.log_proba, np.take_along_axis(log_proba, expected, axis=1), rtol=1e-12)
    assert (found.n_visits <= tree.n_nodes).all()


@given(scored_trees(), st.sampled_from([1e-12, 0.1, 0.5, 0.99, 1.0]))
def test_classes_above_a_threshold_are_all_found(scored, threshold):
    tree, log_odds = scored
    log_proba = class_log_proba(tree, log_odds)
    for kind in (_sparse, _waves):
        scorer, X = kind(log_odds)
        found = TreeSearch.of(tree, scorer, None).best(X, tree.n_classes, np.log(threshold))
        for codes, row in zip(found.codes, log_proba, strict=True):
            assert set(codes[codes >= 0]) == set(np.flatnonzero(row >= np.log(threshold)))


@given(scored_trees(), st.data())
def test_a_beam_of_full_width_is_exact(scored, data):
    tree, log_odds = scored
    k = data.draw(st.integers(1, tree.n_classes))
    scorer, X = _waves(log_odds)
    search = TreeSearch.of(tree, scorer, None)
    assert np.array_equal(search.beam(X, k, tree.n_classes).codes, search.best(X, k).codes)


@given(scored_trees(), st.data())
def test_given_classes_are_evaluated_along_their_paths(scored, data):
    tree, log_odds = scored
    codes = data.draw(arrays(np.intp, (len(log_odds), 3), elements=st.integers(0, tree.n_classes - 1)))
    scorer, X = _waves(log_odds)
    found, _ = TreeSearch.of(tree, scorer, None).log_proba_of(X, codes)
    expected = np.take_along_axis(class_log_proba(tree, log_odds), codes, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@given(scored_trees(), st.data())
def test_under_external_calibration_the_order_is_kept(scored, data):
    tree, log_odds = scored
    seed, k = data.draw(st.integers(0, 1000)), data.draw(st.integers(1, tree.n_classes))
    rng = np.random.default_rng(seed)
    calibrator = MULTICLASS.create("vector")
    calibrator.n_classes_ = tree.n_classes
    calibrator.scale_, calibrator.bias_ = rng.uniform(0, 2, (tree.n_classes)), rng.normal(size=tree.n_classes)
    scorer, X = _waves(log_odds)
    truth = calibrator.predict_log_proba(class_log_proba(tree, log_odds))
    expected = np.take_along_axis(truth, largest(truth, k), axis=1)
    search = TreeSearch.of(tree, scorer, calibrator)
    found = search.best(X, k)
    np.testing.assert_allclose(np.take_along_axis(truth, found.codes, axis=1), expected, rtol=1e-9, atol=1e-9)


def _problem(seed=0, n_classes=60):
    rng = np.random.default_rng(seed)
    y = np.arange(12 * n_classes) % n_classes
    X = rng.poisson(0.15 + 2.0 * (rng.random((n_classes, 30)) < 0.1)[y]).astype(float)
    return X, y


LEARNERS = {
    "logistic": (LogisticRegression(), np.asarray),
    "logistic, sparse": (LogisticRegression(), csr_array),
    "multinomial": (MultinomialNB(), np.asarray),
    "multinomial, sparse": (MultinomialNB(), csr_array),
    "bernoulli, sparse": (BernoulliNB(), csr_array),
    "gaussian": (GaussianNB(var_smoothing=1e-2), np.asarray),
    "boosting": (HistAdaBoostClassifier(n_estimators=3), np.asarray),
    "clones": (DecisionTreeClassifier(max_depth=3), np.asarray),
}


def _assert_sorted_alike(clf, X, k, best):
    """Labels may differ from the sorted distribution only among probabilities that are equal but rounded."""
    proba = clf.predict_proba(X)
    codes = largest(np.log(proba + 1e-300), k)
    expected = np.take_along_axis(proba, codes, axis=1)
    labels, found = best
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    of_labels = np.take_along_axis(proba, np.searchsorted(clf.classes_, labels), axis=1)
    np.testing.assert_allclose(of_labels, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("internal", BINARY.names())
def test_every_internal_calibration_is_searched_exactly(internal):
    X, y = _problem()
    clf = Uncalibrated(MultinomialNB(), "random", internal_calibration=internal, random_state=0)
    clf.fit(csr_array(X), y)
    _assert_sorted_alike(clf, csr_array(X[:20]), 4, clf.predict_top_k(csr_array(X[:20]), 4, search="exact"))
    with compiling_always():
        best = clf.predict_top_k(csr_array(X[:20]), 4, search="exact")
    _assert_sorted_alike(clf, csr_array(X[:20]), 4, best)


@pytest.mark.parametrize("internal", [None, "isotonic"])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_is_searched_exactly(name, internal):
    estimator, kind = LEARNERS[name]
    X, y = _problem()
    clf = Uncalibrated(estimator, "random", internal_calibration=internal, random_state=0).fit(kind(X), y)
    rows = kind(X[:40])
    for k in (1, 4, 60):
        for best in (clf.predict_top_k(rows, k, "exact"), clf.predict_top_k(rows[:1], k, search="exact")):
            _assert_sorted_alike(clf, rows[: len(best[0])], k, best)
            assert best.is_searched.all()
    with compiling_always():
        _assert_sorted_alike(clf, rows, 4, clf.predict_top_k(rows, 4, search="exact"))


@pytest.mark.parametrize("flat", [False, True])
def test_many_rows_are_searched_unless_the_first_are_flat(monkeypatch, flat):
    X, y = _problem()
    clf = Uncalibrated(MultinomialNB(), "class-balanced", random_state=0).fit(X, y)
    monkeypatch.setattr("dichotomies.inference.search.TreeSearch.pays", lambda *_: True)
    _set_cost(monkeypatch, 6)
    rows = np.tile(30 * X, (9, 1))[:600]
    if flat:
        rows[:32] = 0.0
    best = clf.predict_top_k(rows, 1)
    assert best.is_searched.any() == (not flat)
    _assert_sorted_alike(clf, rows, 1, best)
    assert (clf.predict_top_k(rows, 1, search="exact").n_visits < clf.tree_.n_nodes).any()


def test_averaged_folds_are_searched_exactly():
    X, y = _problem()
    clf = Uncalibrated(
        GaussianNB(), "random", internal_calibration="platt", average_folds=True, random_state=0
    )
    clf.fit(X, y)
    _assert_sorted_alike(clf, X[:40], 4, clf.predict_top_k(X[:40], 4, search="exact"))


@pytest.mark.parametrize("external", MULTICLASS.names())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_external_calibration_is_answered_exactly_or_in_full(external):
    X, y = _problem(n_classes=12)
    clf = NestedDichotomyClassifier(
        MultinomialNB(), "random", external_calibration=external, calibration_size="cross-fit", random_state=0
    ).fit(X, y)
    best = clf.predict_top_k(X[:30], 3, search="exact")
    np.testing.assert_allclose(clf.proba_of(X[:30], best[0]), best[1], rtol=1e-9)
    assert (best.n_visits[~best.is_searched] == clf.tree_.n_nodes).all()


def test_where_a_search_takes_longer_than_the_whole_distribution_that_is_the_exact_answer():
    """Flat distributions of many classes: a search would visit nearly every node."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (900, 6)), np.arange(900) % 300
    clf = Uncalibrated(MultinomialNB(), "random", random_state=0).fit(X, y)
    best = clf.predict_top_k(X, 3, search="exact")
    _assert_sorted_alike(clf, X, 3, best)
    assert not best.is_searched.all()
    assert (best.n_visits[best.is_searched] <= 64).all()


def _set_cost(monkeypatch, cost):
    costs = dict.fromkeys(("sparse", "dense", "wave"), cost)
    monkeypatch.setattr("dichotomies.inference.search._COST_OF_VISIT", costs)


def test_large_trees_are_searched_and_small_ones_are_not(monkeypatch):
    X, y = _problem()
    clf = Uncalibrated(MultinomialNB(), "class-balanced", random_state=0).fit(csr_array(X), y)
    assert not clf.predict_top_k(csr_array(X[:9]), 1).is_searched.any()
    expected = clf.predict(X)
    _set_cost(monkeypatch, 0)
    assert clf.predict_top_k(csr_array(X[:9]), 1).is_searched.all()
    assert np.array_equal(clf.predict(X), expected)
    above = clf.predict_above(X, 0.05)
    proba = clf.predict_proba(X)
    assert np.array_equal(above.toarray() > 0, proba >= 0.05)
    np.testing.assert_allclose(clf.proba_of(X, [3, 1]), proba[:, [3, 1]], rtol=1e-9)


def test_the_answer_depends_on_neither_chunks_nor_workers(monkeypatch):
    X, y = _problem()
    clf = Uncalibrated(MultinomialNB(), "random", random_state=0).fit(csr_array(X), y)
    whole = clf.predict_top_k(csr_array(X), 4, search="exact")
    monkeypatch.setattr("dichotomies._common.chunks.CHUNK_BYTES", 64 * 8 * 59)
    parts = clf.set_params(n_jobs=2).predict_top_k(csr_array(X), 4, search="exact")
    assert np.array_equal(whole[0], parts[0])
    assert np.array_equal(whole[1], parts[1])


def test_wrong_arguments_are_named():
    X, y = _problem(n_classes=12)
    clf = NestedDichotomyClassifier(GaussianNB(), "random", external_calibration="vector", random_state=0)
    clf.fit(X, y)
    with pytest.raises(ValueError, match="search must be one of"):
        clf.predict_top_k(X, 2, search="fast")
    with pytest.raises(ValueError, match="needs one tree whose probabilities need no sum"):
        clf.predict_top_k(X, 2, search="beam")
    with pytest.raises(ValueError, match="threshold must be a probability"):
        clf.predict_above(X, 0)
    with pytest.raises(ValueError, match="99 is not a class"):
        clf.proba_of(X, [1, 99])
    with pytest.raises(ValueError, match="labels must have shape"):
        clf.proba_of(X, [[1, 2], [3, 4]])


def test_flat_distributions_are_given_up_and_computed_in_full(monkeypatch):
    X, y = _problem()
    clf = Uncalibrated(MultinomialNB(), "class-balanced", random_state=0).fit(X, y)
    monkeypatch.setattr("dichotomies.inference.search.TreeSearch.pays", lambda *_: True)
    _set_cost(monkeypatch, 6)
    nothing = np.zeros_like(X[:20])  # no word: as probable as the classes are frequent
    rows = np.vstack([nothing, X[:20]])
    best = clf.predict_top_k(rows, 5)
    assert not best.is_searched[:20].any()
    assert (best.n_visits[:20] == clf.tree_.n_nodes).all()
    _assert_sorted_alike(clf, rows, 5, best)
    assert np.array_equal(clf.predict(rows), clf.classes_[clf.predict_proba(rows).argmax(axis=1)])
