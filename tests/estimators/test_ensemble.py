"""The ensemble: equal to trees trained one by one and pooled by hand, in every combination."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import dichotomies
from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.diagnostics import ledger
from dichotomies.inference.answers import largest
from dichotomies.structures import STRUCTURES

LR = LogisticRegression(C=0.1)


@parametrize_with_checks(
    [
        NestedDichotomyEnsemble(
            GaussianNB(), n_estimators=3, internal_calibration=None, external_calibration=None
        )
    ]
)
def test_it_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits_parts(digits):
    X, y = digits
    return X[:900], y[:900], X[900:], y[900:]


def fitted(parts, estimator=LR, **params):
    clf = NestedDichotomyEnsemble(estimator, n_estimators=4, random_state=0).set_params(**params)
    return clf.fit(*parts[:2])


def alone(tree, parts, estimator=LR):
    """One tree, not calibrated."""
    X, y, X_test, _ = parts
    return (
        NestedDichotomyClassifier(estimator, tree, internal_calibration=None, external_calibration=None)
        .fit(X, y)
        .predict_log_proba(X_test)
    )


def pooled_by_hand(trees, parts, pooling, estimator=LR):
    each = np.stack([alone(tree, parts, estimator) for tree in trees])
    if pooling == "arithmetic":
        return logsumexp(each, axis=0) - np.log(len(trees))
    mean = each.mean(axis=0)
    return mean - logsumexp(mean, axis=1, keepdims=True)


@pytest.mark.parametrize("estimator", [LR, GaussianNB()])
@pytest.mark.parametrize("pooling", ["geometric", "arithmetic"])
def test_it_is_the_pool_of_trees_trained_one_by_one(digits_parts, pooling, estimator):
    clf = fitted(
        digits_parts, estimator, pooling=pooling, internal_calibration=None, external_calibration=None
    )
    expected = pooled_by_hand(clf.trees_, digits_parts, pooling, estimator)
    np.testing.assert_allclose(clf.predict_log_proba(digits_parts[2]), expected, rtol=1e-6, atol=1e-6)


def test_trees_differ_and_share_nodes(digits_parts):
    clf = fitted(digits_parts, n_estimators=10)
    assert len({str(tree) for tree in clf.trees_}) > 1
    assert 9 < clf.n_different_nodes_ < 90
    assert clf.model_.scorer.log_odds(digits_parts[2]).shape[1] == clf.n_different_nodes_


def test_one_tree_is_the_classifier(digits_parts):
    X, y, X_test, _ = digits_parts
    clf = fitted(digits_parts, n_estimators=1, structure="random", max_features=1.0)
    single = NestedDichotomyClassifier(LR, "random", random_state=0).fit(X, y)
    assert clf.tree_ == single.tree_
    np.testing.assert_allclose(clf.predict_proba(X_test), single.predict_proba(X_test), atol=1e-12)


@pytest.mark.parametrize("calibration_size", [0.2, "cross-fit"])
@pytest.mark.parametrize("internal", [None, "platt"])
@pytest.mark.parametrize("external", [None, "vector"])
def test_every_combination_gives_probabilities(digits_parts, calibration_size, internal, external):
    clf = NestedDichotomyEnsemble(
        GaussianNB(),
        n_estimators=3,
        calibration_size=calibration_size,
        internal_calibration=internal,
        external_calibration=external,
        random_state=0,
    ).fit(*digits_parts[:2])
    proba = clf.predict_proba(digits_parts[2])
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert np.array_equal(clf.predict(digits_parts[2]), clf.classes_[proba.argmax(axis=1)])
    assert (clf.external_calibrator_ is None) == (external is None)
    assert clf.score(digits_parts[2], digits_parts[3]) > 0.6


@pytest.mark.parametrize("pooling", ["geometric", "arithmetic"])
def test_at_every_row_the_pool_loses_no_more_than_its_trees_on_average(digits_parts, pooling):
    clf = fitted(digits_parts, internal_calibration=None, external_calibration=None, pooling=pooling)
    rows, y = np.arange(len(digits_parts[3])), digits_parts[3]
    each = np.mean([alone(tree, digits_parts)[rows, y] for tree in clf.trees_], axis=0)
    assert (clf.predict_log_proba(digits_parts[2])[rows, y] >= each - 1e-6).all()


def test_the_seed_decides_and_the_workers_do_not(digits_parts):
    one, two, again, other = (
        fitted(digits_parts, n_jobs=n_jobs, random_state=seed)
        for n_jobs, seed in ((1, 0), (2, 0), (1, 0), (1, 1))
    )
    one, two, again, other = (clf.predict_proba(digits_parts[2]) for clf in (one, two, again, other))
    assert np.array_equal(one, again)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert not np.array_equal(one, other)


def test_string_labels_sparse_rows_and_pipelines(digits_parts):
    X, y, X_test, y_test = digits_parts
    names = np.array([f"digit {i}" for i in range(10)])
    clf = fitted((csr_array(X), names[y]))
    assert clf.score(csr_array(X_test), names[y_test]) > 0.9
    piped = make_pipeline(StandardScaler(), NestedDichotomyEnsemble(LR, n_estimators=2, random_state=0))
    assert piped.fit(X, y).score(X_test, y_test) > 0.85


def test_it_comes_back_from_a_file_bit_for_bit(digits_parts, tmp_path):
    for params in (
        {},
        {"internal_calibration": "isotonic"},
    ):
        clf = fitted(digits_parts, **params)
        clf.save(tmp_path / "pool.model")
        loaded = dichotomies.load(tmp_path / "pool.model")
        assert loaded.trees_ == clf.trees_
        assert np.array_equal(
            loaded.predict_log_proba(digits_parts[2]), clf.predict_log_proba(digits_parts[2])
        )


def test_a_ledger_takes_the_pooled_nll_apart(digits_parts):
    clf = fitted(digits_parts, internal_calibration=None, external_calibration=None)
    book = ledger(clf, *digits_parts[2:])
    assert book.nll.sum() == pytest.approx(
        log_loss(digits_parts[3], clf.predict_proba(digits_parts[2])), rel=1e-9
    )


def test_a_report_can_be_made(digits_parts):
    report = fitted(digits_parts).report(*digits_parts[2:])
    assert "NestedDichotomyEnsemble" in report.html
    assert "4, their probabilities pooled (geometric mean)" in report.html


def test_trees_that_are_all_the_same_are_told_of(digits_parts):
    with pytest.warns(UserWarning, match="All 3 trees are the same"):
        fitted(digits_parts, structure="2-means", max_features=1.0, n_estimators=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(digits_parts, structure="2-means", max_features=1.0, n_estimators=1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number, 1 or more, got 0"),
        ({"n_estimators": 2.0}, "n_estimators must be a whole number, 1 or more, got 2.0"),
        ({"max_features": 0}, "max_features must be a share of the features, above 0 and up to 1, got 0"),
        ({"max_features": 1.5}, "max_features must be a share"),
        ({"pooling": "median"}, "pooling must be one of .*'arithmetic', 'geometric'.* got 'median'"),
    ],
)
def test_bad_parameters_get_a_sentence(digits_parts, params, message):
    with pytest.raises(ValueError, match=message):
        fitted(digits_parts, **params)


@pytest.mark.parametrize("kind", [NestedDichotomyClassifier, NestedDichotomyEnsemble])
def test_the_top_k_are_the_most_probable_in_their_order(digits_parts, kind):
    X, y, X_test, _ = digits_parts
    clf = kind(GaussianNB(), random_state=0).fit(X, y)
    proba = clf.predict_proba(X_test)
    order = np.argsort(-proba, axis=1, kind="stable")
    for k in (1, 3, 10, 50):
        labels, best = clf.predict_top_k(X_test, k)
        assert np.array_equal(labels, clf.classes_[order[:, :k]])
        assert np.array_equal(best, np.take_along_axis(proba, order[:, :k], axis=1))
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="k must be a whole number, 1 or more"):
            clf.predict_top_k(X_test, bad)


def test_equally_probable_classes_come_in_their_order():
    values = np.array([[0.0, 3.0, 1.0, 3.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0]])
    assert largest(values, 4).tolist() == [[1, 3, 2, 4], [0, 1, 2, 3]]


def test_it_can_be_cloned_and_set(digits_parts):
    clf = clone(fitted(digits_parts)).set_params(n_estimators=2, estimator__C=1.0)
    assert len(clf.fit(*digits_parts[:2]).trees_) == 2


def test_fewer_features_make_trees_without_chance_differ(digits_parts):
    params = {"structure": "2-means", "external_calibration": None}
    assert fitted(digits_parts, max_features=0.3, **params).n_different_nodes_ > 9
    with pytest.warns(UserWarning, match="All 4 trees are the same"):
        assert fitted(digits_parts, max_features=1.0, **params).n_different_nodes_ == 9


def test_where_no_row_can_be_held_out_nothing_is_calibrated(rng):
    X, y = rng.normal(size=(20, 3)), np.arange(20)
    clf = NestedDichotomyEnsemble(GaussianNB(), calibration_size=0.1, n_estimators=2).fit(X, y)
    assert clf.external_calibrator_ is None
    assert clf.member_calibrators_ == []
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("kind", [NestedDichotomyClassifier, NestedDichotomyEnsemble])
def test_classes_with_few_rows_are_not_calibrated_to_nothing(rng, kind):
    centres = rng.normal(size=(300, 20))
    y = np.repeat(np.arange(300), 3)
    X, X_test = (centres[y] + 0.1 * rng.normal(size=(900, 20)) for _ in range(2))
    calibrated, plain = (
        kind(GaussianNB(), random_state=0),
        kind(GaussianNB(), internal_calibration=None, external_calibration=None),
    )
    plain.set_params(random_state=0)
    nll = [log_loss(y, clf.fit(X, y).predict_proba(X_test)) for clf in (calibrated, plain)]
    assert nll[0] < nll[1]
    assert calibrated.score(X_test, y) > 0.9 * plain.score(X_test, y)


@pytest.mark.parametrize("kind", [NestedDichotomyClassifier, NestedDichotomyEnsemble])
def test_a_fit_that_fails_leaves_the_fitted_model_as_it_was(digits_parts, kind):
    X, y, X_test, _ = digits_parts
    clf = kind(GaussianNB(), random_state=0).fit(X, y)
    before = clf.predict_proba(X_test)
    with pytest.raises(ValueError, match="Class 'a' is missing from the tree"):
        clf.set_params(structure=[0, 1]).fit(X[:, :5], np.array(list("abcdefghij"))[y])
    assert np.array_equal(clf.predict_proba(X_test), before)


def test_a_pool_stays_what_it_was_fitted_as(digits_parts):
    clf = fitted(digits_parts)
    before = clf.predict_proba(digits_parts[2])
    assert np.array_equal(clf.set_params(pooling="arithmetic").predict_proba(digits_parts[2]), before)


def test_auto_as_an_object_is_auto_by_name(digits_parts):
    named, given = (fitted(digits_parts, structure=each) for each in ("auto", STRUCTURES.create("auto")))
    assert named.trees_ == given.trees_


def test_a_number_of_folds_may_be_of_numpy(digits_parts):
    one, other = (fitted(digits_parts, internal_calibration="platt", cv=cv) for cv in (3, np.int64(3)))
    assert np.array_equal(one.predict_proba(digits_parts[2]), other.predict_proba(digits_parts[2]))
