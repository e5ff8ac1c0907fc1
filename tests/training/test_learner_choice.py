"""The base learner is chosen by what the candidates are worth, and those who name one see no difference."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB

from dichotomies import (
    HistGradientBoostClassifier,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
    load,
)


def fitted(X, y, **params):
    return NestedDichotomyClassifier(**{"random_state": 0, **params}).fit(X, y)


@pytest.fixture
def units(rng):
    """Five classes that differ along columns whose sizes differ."""
    y = np.arange(600) % 5
    return (rng.normal(size=(600, 8)) + 2 * rng.normal(size=(5, 8))[y]) * np.logspace(-4, 4, 8), y


def test_columns_of_different_sizes_are_standardised(units):
    X, y = units
    clf = fitted(X, y)
    assert clf.learner_.startswith("scaled-logistic: ")
    ours, plain = (
        log_loss(y, each.predict_proba(X)) for each in (clf, fitted(X, y, estimator=LogisticRegression()))
    )
    assert ours < 0.8 * plain


def test_a_few_features_that_separate_many_classes_get_a_large_c(rng):
    y = np.arange(600) % 60
    X = rng.normal(size=(60, 2))[y] + 0.01 * rng.normal(size=(600, 2))
    clf = fitted(X, y)
    tried = [name for name in clf.learner_nll_ if "LogisticRegression" in name]
    assert len(tried) > 4
    assert clf.estimator_.C * np.var(X, axis=0).sum() > 5_000


def test_counts_of_words_may_be_naive_bayes(rng):
    y = np.arange(240) % 40
    topics = rng.dirichlet(np.full(300, 0.05), size=40)
    X = np.array([rng.multinomial(40, topics[label]) for label in y]).astype(float)
    clf = fitted(csr_array(X), y)
    assert isinstance(clf.estimator_, MultinomialNB)
    assert all(isinstance(nll, float) for nll in clf.learner_nll_.values())
    assert min(clf.learner_nll_, key=clf.learner_nll_.get).startswith("MultinomialNB(")


def checkerboard(rng, n):
    X = rng.uniform(0, 4, size=(n, 2))
    return X, (X.astype(int).sum(axis=1) % 2) + 2 * (X[:, 0] > 2)


@pytest.mark.slow
def test_boosted_trees_are_tried_where_rows_are_many_and_dense(rng):
    assert isinstance(fitted(*checkerboard(rng, 3_000)).estimator_, HistGradientBoostClassifier)
    few = fitted(*checkerboard(rng, 600))
    assert not any(name.startswith("Hist") for name in few.learner_nll_)


def test_the_simpler_is_kept_where_others_gain_little(units):
    clf = fitted(*units)
    chosen = " ".join(repr(clf.estimator_).split())
    assert clf.learner_nll_[chosen] <= min(clf.learner_nll_.values()) / 0.97


def test_it_says_what_was_chosen_and_why(units, capsys):
    clf = fitted(*units, verbose=1)
    chosen = " ".join(repr(clf.estimator_).split())
    said = f"chosen of {len(clf.learner_nll_)} by NLL out of fold on 600 rows: {chosen} "
    assert said in clf.learner_
    assert said in capsys.readouterr().err
    assert said in clf._repr_html_()


def test_the_model_is_that_of_the_estimator_when_named(units):
    X, y = units
    clf = fitted(X, y)
    np.testing.assert_array_equal(
        clf.predict_proba(X), fitted(X, y, estimator=clf.estimator_).predict_proba(X)
    )
    assert fitted(X, y, estimator="auto").learner_ == clf.learner_


@pytest.mark.parametrize("params", [{"estimator": LogisticRegression()}, {"learner": "logistic"}])
def test_nothing_is_tried_where_the_estimator_or_the_learner_is_named(units, params):
    clf = fitted(*units, **params)
    assert not hasattr(clf, "estimator_")
    assert not hasattr(clf, "learner_nll_")
    assert (
        clf.learner_
        == "logistic: Newton's method for all nodes together, to the optimum of LogisticRegression"
    )


def test_a_later_fit_forgets_the_choice(units):
    clf = fitted(*units)
    clf.set_params(estimator=LogisticRegression()).fit(*units)
    assert not hasattr(clf, "estimator_")


def test_the_choice_does_not_depend_on_names_of_classes_or_seeds(units):
    X, y = units
    other = fitted(X, np.array(list("caebd"))[y], random_state=7)
    assert other.learner_nll_ == pytest.approx(fitted(X, y).learner_nll_)


def test_a_row_of_weight_two_is_a_row_twice(units):
    X, y = units
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = fitted(X, y).fit(X, y, sample_weight=weight).learner_nll_
    assert weighted == pytest.approx(fitted(X[twice], y[twice]).learner_nll_, rel=1e-3)


def test_ensembles_choose_as_well_and_files_remember(units, tmp_path):
    X, y = units
    pool = NestedDichotomyEnsemble(n_estimators=2, random_state=0).fit(X, y)
    pool.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.learner_nll_ == pool.learner_nll_
    assert repr(again.estimator_) == repr(pool.estimator_)
    np.testing.assert_array_equal(again.predict_proba(X), pool.predict_proba(X))


@pytest.mark.slow
def test_missing_values_leave_boosted_trees(units):
    X, y = units
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    clf = fitted(X[:60], y[:60])
    assert isinstance(clf.estimator_, HistGradientBoostClassifier)
    assert clf.learner_.endswith("is the only candidate that takes missing values")
    assert np.isfinite(clf.predict_log_proba(X)).all()
    with pytest.raises(ValueError, match=r"sparse and has missing values .NaN.: impute them"):
        fitted(csr_array(X[:60]), y[:60])
    with pytest.raises(ValueError, match="infinity"):
        fitted(np.where(np.isnan(X), np.inf, X), y)
    with pytest.raises(ValueError, match="NaN"):
        fitted(*units).predict(X)


def test_a_grid_over_parameters_of_no_estimator_says_what_to_do(units):
    with pytest.raises(ValueError, match=r"estimator__C cannot be set while estimator=None.*name one"):
        GridSearchCV(NestedDichotomyClassifier(), {"estimator__C": [0.1, 1]}).fit(*units)
    named = NestedDichotomyClassifier(LogisticRegression(), "random", random_state=0)
    assert GridSearchCV(named, {"estimator__C": [0.1, 1]}, cv=2).fit(*units).best_score_ > 0.5
    both = NestedDichotomyClassifier().set_params(estimator=LogisticRegression(), estimator__C=3)
    assert both.estimator.C == 3


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_few_rows_are_enough(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    assert np.isfinite(fitted(X, np.arange(n)).predict_log_proba(X)).all()


def test_rows_of_weight_zero_have_no_part_in_the_choice(iris):
    X, y = iris
    weight = np.ones(150)
    weight[:2] = 0.0
    odd = X.copy()
    odd[0, 0], odd[1, 0] = np.nan, -1.0
    with_them = NestedDichotomyClassifier(random_state=0).fit(odd, y, weight)
    assert (
        with_them.learner_nll_
        == NestedDichotomyClassifier(random_state=0).fit(X[2:], y[2:], weight[2:]).learner_nll_
    )
