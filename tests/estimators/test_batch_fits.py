"""Fits to batches of rows: what fits into memory is trained as by `fit`, the rest on samples."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

import dichotomies
from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.rows import Rows
from dichotomies.rows.row_counts import RowCounts
from dichotomies.rows.spilled import SpilledRows
from tests.slow import slow

PLAIN = {"internal_calibration": None, "external_calibration": None, "random_state": 0}


@pytest.fixture(scope="module")
def rows(digits):
    return np.round(4 * digits[0][:700, 10:50]), digits[1][:700]


def _batches(X, y, *weight, form=np.asarray):
    parts = np.array_split(np.arange(len(y)), 5)
    return lambda: ((form(X[part]), y[part], *(each[part] for each in weight)) for part in parts)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(tol=1e-8),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        *slow(HistGradientBoostClassifier(5, random_state=0)),
    ],
)
def test_with_enough_memory_nodes_are_those_of_a_fit_on_rows_sorted_by_class(estimator, form, rows):
    X, y = rows
    order = np.argsort(y, kind="stable")
    clf = NestedDichotomyClassifier(estimator, **PLAIN).fit_batches(_batches(X, y, form=form))
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(form(X[order]), y[order])
    np.testing.assert_allclose(clf.predict_proba(form(X)), whole.predict_proba(form(X)), atol=1e-6)


def test_nodes_whose_rows_fit_into_memory_are_trained_on_all_of_them(rows):
    X, y = rows
    most = 1_000  # at the least
    X, y = np.concatenate([X] * 4), np.concatenate([y] * 4)
    clf = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), max_memory=1, **PLAIN)
    clf.fit_batches(_batches(X, y))
    whole = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), clf.tree_, **PLAIN).fit(X, y)
    tree = clf.tree_
    offset = np.concatenate([[0], np.cumsum(np.bincount(y)[tree.leaf_order])])
    size = offset[tree.stop] - offset[tree.start]
    one, two = clf.model_.scorer.log_odds(X), whole.model_.scorer.log_odds(X)
    assert (size > most).any()
    assert (size <= most).any()
    np.testing.assert_allclose(one[:, size <= most], two[:, size <= most], atol=1e-3)
    assert (np.abs(one - two).max(axis=0) > 1e-2)[size > most].all()
    assert np.corrcoef(one[:, 0], two[:, 0])[0, 1] > 0.95


@pytest.mark.parametrize("estimator", [GaussianNB(), MultinomialNB()])
def test_naive_bayes_is_exact_in_one_pass(estimator, rows):
    X, y = rows
    passes = []

    def make_batches():
        passes.append(None)
        return _batches(X, y, np.ones(len(y)))()

    clf = NestedDichotomyClassifier(estimator, **PLAIN).fit_batches(make_batches)
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(X, y)
    np.testing.assert_allclose(clf.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-9, atol=1e-7)
    assert len(passes) == 2  # one of them for the first batch alone


@pytest.mark.parametrize(
    ("kind", "params"),
    [(NestedDichotomyClassifier, {}), (NestedDichotomyEnsemble, {"n_estimators": 3})],
)
@pytest.mark.parametrize("estimator", [LogisticRegression(), MultinomialNB()])
def test_calibrated_models_are_nearly_as_good_as_in_memory(kind, params, estimator, digits, tmp_path):
    X, y = np.concatenate([digits[0][:1_200]] * 3), np.concatenate([digits[1][:1_200]] * 3)
    X_test, y_test = digits[0][1_200:], digits[1][1_200:]
    clf = kind(estimator, random_state=0, **params).fit_batches(_batches(X, y))
    whole = kind(estimator, random_state=0, **params).fit(X, y)
    losses = [-m.predict_log_proba(X_test)[np.arange(len(y_test)), y_test].mean() for m in (clf, whole)]
    assert losses[0] < 1.3 * losses[1]
    assert clf.calibration_.external != "none"
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(dichotomies.load(tmp_path / "model").predict(X_test), clf.predict(X_test))


def test_weights_count_as_rows(rows):
    X, y = rows
    twice = np.random.default_rng(0).integers(1, 3, len(y))
    given = {"structure": "class-balanced", **PLAIN}
    weighted = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), **given)
    weighted.fit_batches(_batches(X, y, twice.astype(float)))
    repeated = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), weighted.tree_, **PLAIN)
    repeated.fit_batches(_batches(np.repeat(X, twice, axis=0), np.repeat(y, twice)))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


def test_finished_passes_are_not_repeated_after_an_interruption_and_files_are_removed(rows, tmp_path):
    X, y = rows
    folder, started = tmp_path / "spill", []

    def make_batches(fails=False):
        started.append(None)
        for i, batch in enumerate(_batches(X, y)()):
            if fails and len(started) == 3 and i == 2:  # the first batch, counting, then spilling
                raise KeyboardInterrupt
            yield batch

    clf = NestedDichotomyClassifier(LogisticRegression(), **PLAIN)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_batches(lambda: make_batches(fails=True), spill=folder)
    assert (folder / "counts.npz").exists()
    started.clear()
    clf.fit_batches(make_batches, spill=folder)
    assert len(started) == 2  # the first batch, spilling
    assert not folder.exists()
    assert clf.score(X, y) > 0.9


def test_spilled_rows_are_those_of_the_batches_by_class(rows, tmp_path):
    X, y = rows
    for form in (np.asarray, csr_array):
        batches = [
            Rows(form(a), np.unique(b, return_inverse=True)[1], np.unique(b)) for a, b in _batches(X, y)()
        ]
        counts = RowCounts.of(batches)
        np.testing.assert_array_equal(counts.size, np.bincount(y))
        totals = counts.totals if form is np.asarray else counts.totals.toarray()
        np.testing.assert_allclose(totals, [X[y == c].sum(axis=0) for c in range(10)])
        spilled = SpilledRows.write(tmp_path, counts, batches)
        taken = spilled.rows(np.array([7, 2]), [np.array([0, 3]), np.array([5])])
        expected = np.concatenate([X[y == 7][[0, 3]], X[y == 2][[5]]])
        np.testing.assert_array_equal(taken.X if form is np.asarray else taken.X.toarray(), expected)
        assert taken.codes.tolist() == [7, 7, 2]


def test_errors_say_what_to_do(rows):
    X, y = rows
    clf = NestedDichotomyClassifier(LogisticRegression(), **PLAIN)
    with pytest.raises(ValueError, match="no batch"):
        clf.fit_batches(lambda: iter([]))
    with pytest.raises(ValueError, match="name one"):
        NestedDichotomyClassifier().fit_batches(_batches(X, y))
    with pytest.raises(ValueError, match="keep_rows"):
        NestedDichotomyClassifier(LogisticRegression(), keep_rows=5).fit_batches(_batches(X, y))
    with pytest.raises(ValueError, match="at least two classes"):
        clf.fit_batches(_batches(X, np.zeros(len(y), dtype=int)))
    calls = []

    def changing():
        calls.append(None)
        return _batches(X[len(calls) :], y[len(calls) :])()

    with pytest.raises(ValueError, match="same rows again"):
        clf.fit_batches(changing)
    assert not hasattr(clf, "model_")
