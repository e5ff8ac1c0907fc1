"""Updates of fitted models: nodes concerned are those of a fresh training, all others are untouched."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

import dichotomies
from dichotomies import (
    HistAdaBoostClassifier,
    HistGradientBoostClassifier,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
)
from tests.slow import slow

NEW = 7
PLAIN = {"internal_calibration": None, "external_calibration": None, "random_state": 0}
LEARNERS = [
    pytest.param(LogisticRegression(tol=1e-8), id="logistic"),
    pytest.param(GaussianNB(var_smoothing=0.01), id="gaussian"),
    pytest.param(MultinomialNB(), id="multinomial"),
    pytest.param(DecisionTreeClassifier(max_depth=3, random_state=0), id="clones"),
    *slow(HistGradientBoostClassifier(5), HistAdaBoostClassifier(5)),
]
ESTIMATORS = [
    pytest.param(NestedDichotomyClassifier, {}, id="tree"),
    pytest.param(NestedDichotomyEnsemble, {"n_estimators": 3}, id="ensemble"),
]


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    few = np.round(4 * X[:600, 10:50])  # few values: bins of any rows tell them apart
    return few, y[:600]


def _classes(tree, node):
    return tree.leaf_labels[tree.start[node] : tree.stop[node]].tolist()


def _split(y):
    return np.flatnonzero(y != NEW), np.flatnonzero(y == NEW)


@pytest.mark.parametrize(("kind", "params"), ESTIMATORS)
@pytest.mark.parametrize("estimator", LEARNERS)
def test_nodes_above_a_new_class_are_trained_as_afresh_and_all_others_are_untouched(
    kind, params, estimator, rows
):
    X, y = rows
    old, new = _split(y)
    clf = kind(estimator, keep_rows="all", **PLAIN, **params).fit(X[old], y[old])
    before = clf.model_
    clf.update(X[new], y[new])
    assert clf.classes_.tolist() == list(range(10))
    n_untouched = 0
    for t, tree in enumerate(clf.model_.forest.trees):
        afresh = NestedDichotomyClassifier(estimator, tree, **PLAIN).fit(X, y).model_.scorer.log_odds(X)
        log_odds = clf.model_.forest.log_odds_of_tree(t, clf.model_.scorer.log_odds(X))
        np.testing.assert_allclose(log_odds, afresh, rtol=1e-4, atol=1e-4)
        old_tree = before.forest.trees[t]
        old_log_odds = before.forest.log_odds_of_tree(t, before.scorer.log_odds(X))
        for k in range(tree.n_nodes):
            classes = _classes(tree, k)
            if NEW not in classes:
                j = [_classes(old_tree, j) for j in range(old_tree.n_nodes)].index(classes)
                np.testing.assert_array_equal(log_odds[:, k], old_log_odds[:, j])
                n_untouched += 1
    assert n_untouched > 0
    assert 0 < clf.drift_.is_retrained.sum() < len(clf.drift_.is_retrained)


@pytest.mark.parametrize(("kind", "params"), ESTIMATORS)
def test_an_updated_model_is_calibrated_and_nearly_as_good_as_a_refit(kind, params, digits):
    X, y = digits
    X, y, X_test, y_test = X[:900], y[:900], X[900:], y[900:]
    old, new = _split(y)
    clf = kind(LogisticRegression(), keep_rows="all", random_state=0, **params).fit(X[old], y[old])
    clf.update(X[new], y[new])
    refit = kind(LogisticRegression(), random_state=0, **params).fit(X, y)
    losses = [-m.predict_log_proba(X_test)[np.arange(len(y_test)), y_test].mean() for m in (clf, refit)]
    assert losses[0] < 1.25 * losses[1]
    np.testing.assert_allclose(clf.predict_proba(X_test).sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    "params",
    [{}, {"internal_calibration": "platt"}, {"internal_calibration": "platt", "average_folds": True}],
)
def test_an_updated_model_is_saved_and_goes_on_after_loading(params, rows, tmp_path):
    X, y = rows
    old, new = _split(y)
    clf = NestedDichotomyClassifier(GaussianNB(var_smoothing=0.01), keep_rows=300, random_state=0, **params)
    clf.fit(X[old], y[old]).update(X[new[:20]], y[new[:20]])
    clf.save(tmp_path / "model")
    loaded = dichotomies.load(tmp_path / "model")
    for each in (clf, loaded):
        each.update(X[new[20:]], y[new[20:]])
    np.testing.assert_array_equal(clf.predict_proba(X), loaded.predict_proba(X))
    assert str(loaded.drift_) == str(clf.drift_)
    assert loaded.drift_.n_rows_added == len(new)


def test_updates_of_sparse_rows_equal_those_of_dense_ones(rows):
    X, y = rows
    old, new = _split(y)
    proba = [
        NestedDichotomyClassifier(MultinomialNB(), keep_rows="all", **PLAIN)
        .fit(form(X[old]), y[old])
        .update(form(X[new]), y[new])
        .predict_proba(form(X))
        for form in (np.asarray, csr_array)
    ]
    np.testing.assert_allclose(*proba, atol=1e-9)


def test_rows_of_known_classes_change_the_nodes_above_them_only(rows):
    X, y = rows
    clf = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN).fit(X[:400], y[:400])
    before, more = clf.model_.scorer.log_odds(X), 400 + np.flatnonzero(y[400:] == 3)
    clf.update(X[more], y[more])
    path, _ = clf.tree_.path(3)
    np.testing.assert_array_equal(np.flatnonzero((clf.model_.scorer.log_odds(X) != before).any(axis=0)), path)
    assert clf.drift_.nll_before is not None


def test_a_sample_of_the_rows_weighs_as_much_as_all_of_them(rows):
    X, y = rows
    clf = NestedDichotomyClassifier(GaussianNB(), keep_rows=200, **PLAIN).fit(X, y)
    kept = clf.kept_rows_
    assert len(kept) <= 200
    np.testing.assert_allclose(np.bincount(kept.codes, kept.weight), np.bincount(y))


def test_several_new_classes_at_once_are_all_placed(rows):
    X, y = rows
    old = y < 4
    clf = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN).fit(X[old], y[old])
    clf.update(X[~old], y[~old])
    assert sorted(clf.tree_.leaf_labels.tolist()) == list(range(10))
    assert clf.score(X, y) > 0.9


# ---------------------------------------------------------------------- forgetting


@pytest.mark.parametrize(("kind", "params"), ESTIMATORS)
def test_forgetting_without_rows_is_conditioning(kind, params, digits, tmp_path):
    X, y = digits[0][:500], digits[1][:500]
    clf = kind(LogisticRegression(), random_state=0, **params).fit(X, y)
    expected = np.delete(clf.predict_proba(X), [3, 5], axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    clf.forget_class(3).forget_class([5])
    assert clf.classes_.tolist() == [0, 1, 2, 4, 6, 7, 8, 9]
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-12)
    _, proba = clf.predict_top_k(X, 2)
    np.testing.assert_allclose(proba, np.sort(expected, axis=1)[:, :-3:-1], atol=1e-9)
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(dichotomies.load(tmp_path / "model").predict_proba(X), clf.predict_proba(X))


def test_forgetting_with_rows_is_a_fresh_training_without_the_class(rows):
    X, y = rows
    rest = y != 3
    clf = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), keep_rows="all", **PLAIN).fit(X, y)
    tree = clf.tree_
    clf.forget_class(3)
    assert clf.tree_ == tree.restrict(set(range(10)) - {3})
    afresh = NestedDichotomyClassifier(LogisticRegression(tol=1e-8), clf.tree_, **PLAIN).fit(X[rest], y[rest])
    np.testing.assert_allclose(clf.predict_proba(X), afresh.predict_proba(X), atol=1e-5)


# ---------------------------------------------------------------------- naive Bayes, batch by batch


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(
    "estimator", [GaussianNB(), MultinomialNB(), ComplementNB(norm=True), BernoulliNB(binarize=1.0)]
)
def test_partial_fit_equals_a_fit_on_all_rows_with_the_same_tree(estimator, form, rows, tmp_path):
    if form is csr_array and isinstance(estimator, GaussianNB):
        pytest.skip("takes dense rows only")
    X, y = rows
    order = np.argsort(y >= 8, kind="stable")  # the last batch has new classes
    weight = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    clf = NestedDichotomyClassifier(estimator, **PLAIN)
    for part in np.array_split(order, 3):
        clf.partial_fit(form(X[part]), y[part], sample_weight=weight[part])
        clf.save(tmp_path / "model")
        clf = dichotomies.load(tmp_path / "model")
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(form(X), y, weight)
    np.testing.assert_allclose(
        clf.predict_log_proba(form(X)), whole.predict_log_proba(form(X)), rtol=1e-9, atol=1e-8
    )
    clf.forget_class(2)
    rest = y != 2
    whole = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(form(X[rest]), y[rest], weight[rest])
    np.testing.assert_allclose(
        clf.predict_log_proba(form(X)), whole.predict_log_proba(form(X)), rtol=1e-9, atol=1e-8
    )


def test_partial_fit_calibrates_on_a_sample_of_all_batches(digits):
    X, y = digits
    clf = NestedDichotomyEnsemble(MultinomialNB(), n_estimators=2, keep_rows=300, random_state=0)
    plain = NestedDichotomyEnsemble(MultinomialNB(), n_estimators=2, **PLAIN)
    for part in np.array_split(np.arange(1_200), 4):
        for each in (clf, plain):
            each.partial_fit(X[part], y[part])
    assert len(clf.kept_rows_) <= 300
    assert clf.calibration_.external != "none"
    rest = np.arange(1_200, len(X))
    losses = [-each.predict_log_proba(X[rest])[rest - 1_200, y[rest]].mean() for each in (clf, plain)]
    assert losses[0] < losses[1]


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("estimator", [GaussianNB(var_smoothing=0.01), MultinomialNB()])
@pytest.mark.parametrize("sizes", [(597, 2, 1), (3, 1, 596)])
def test_batches_of_a_row_or_two_are_added_though_they_have_fewer_rows_than_folds(estimator, sizes, rows):
    X, y = rows
    y = y.copy()
    y[-1] = 77  # a class with one row
    clf = NestedDichotomyClassifier(estimator, **(PLAIN | {"external_calibration": "vector"}))
    for part in np.split(np.arange(600), np.cumsum(sizes)[:-1]):
        clf.partial_fit(X[part], y[part])
    assert clf.class_count_.tolist() == np.unique(y, return_counts=True)[1].tolist()
    afresh = NestedDichotomyClassifier(estimator, clf.tree_, **PLAIN).fit(X, y).model_.scorer.log_odds(X)
    scorer = clf.model_.scorer
    np.testing.assert_allclose(scorer.log_odds(X), afresh, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kinds", [(str, object), (object, str), (object, object)])
def test_new_labels_may_be_strings_of_numpy_or_of_pandas(kinds, rows):
    X, y = rows
    old, new = _split(y)
    names = np.array([f"class {c}" for c in y])
    clf = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN)
    clf.fit(X[old], names[old].astype(kinds[0])).update(X[new], names[new].astype(kinds[1]))
    assert clf.classes_.tolist() == np.unique(names).tolist()
    assert clf.classes_.dtype.hasobject == (kinds[0] is object)
    assert clf.score(X, names) > 0.9


def test_updates_take_dask_frames_by_the_names_of_their_columns(rows):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y = rows
    old, new = _split(y)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    clf = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN)
    expected = clf.fit(frame.loc[old], y[old]).update(frame.loc[new], y[new]).predict_proba(frame)
    clf.fit(dd.from_pandas(frame.loc[old], npartitions=2), y[old])
    clf.update(dd.from_pandas(frame.loc[new], npartitions=2), y[new])
    np.testing.assert_array_equal(clf.predict_proba(frame), expected)


def test_errors_say_what_to_do(rows):
    X, y = rows
    clf = NestedDichotomyClassifier(LogisticRegression(), **PLAIN).fit(X, y)
    with pytest.raises(ValueError, match='keep_rows="all"'):
        clf.update(X, y)
    with pytest.raises(AttributeError) as raised:
        clf.partial_fit(X, y)
    assert "only naive Bayes" in str(raised.value.__cause__)
    with pytest.raises(TypeError, match="naive Bayes only, not for clones"):
        NestedDichotomyClassifier(MultinomialNB(), learner="clones", **PLAIN).partial_fit(X, y)
    with pytest.warns(UserWarning, match="without keeping statistics"):
        NestedDichotomyClassifier(GaussianNB(), **PLAIN).fit(X, y).partial_fit(X, y)
    with pytest.raises(ValueError, match="is not a class"):
        clf.forget_class("owl")
    with pytest.raises(ValueError, match="two classes must be left"):
        clf.forget_class(list(range(9)))
    clf = NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", **PLAIN).fit(X, y)
    with pytest.raises(TypeError, match="are like 0, but y has labels like 'owl'"):
        clf.update(X[:1], ["owl"])
    with pytest.raises(ValueError, match="cross-fit"):
        NestedDichotomyClassifier(keep_rows=10, calibration_size=0.2).fit(X, y)
    with pytest.raises(ValueError, match="keep_rows must be"):
        NestedDichotomyClassifier(keep_rows="some").fit(X, y)


def test_a_failed_update_leaves_the_model_as_it_was(rows):
    X, y = rows
    clf = NestedDichotomyClassifier(MultinomialNB(), keep_rows="all", **PLAIN).fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match="Negative"):
        clf.update(-X[:5] - 1, ["10"] * 5 if y.dtype.kind == "U" else [10] * 5)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_batches_of_single_rows_are_dealt_to_all_folds(digits):
    X, y = digits
    clf = NestedDichotomyClassifier(GaussianNB(), random_state=0).partial_fit(X[:100], y[:100])
    for i in range(100, 150):
        clf.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.ptp(np.bincount(clf.kept_rows_.fold)) == 0
    singles = NestedDichotomyClassifier(GaussianNB(), keep_rows=5)
    singles.fit_batches(lambda: ((X[i : i + 1], y[i : i + 1]) for i in range(60)))
    assert singles.predict_proba(X[:5]).shape == (5, 10)


def test_kept_rows_of_a_stream_are_old_and_new(digits):
    X, y = digits
    numbered = np.column_stack([np.arange(len(X)), X])
    clf = NestedDichotomyClassifier(GaussianNB(), keep_rows=60, random_state=0)
    clf.partial_fit(numbered[:60], y[:60])
    for i in range(60, 300):
        clf.partial_fit(numbered[i : i + 1], y[i : i + 1])
    parts = np.histogram(clf.kept_rows_.values[:, 0], [0, 100, 200, 300])[0]
    assert (parts >= 8).all()


def test_new_rows_of_weight_zero_change_nothing(digits):
    X, y = digits
    clf, other = (
        NestedDichotomyClassifier(LogisticRegression(), keep_rows="all", random_state=0).fit(X[:300], y[:300])
        for _ in range(2)
    )
    wrong = (y[400:500] + 1) % 10
    weight = np.repeat([1.0, 0.0], 100)
    clf.update(np.concatenate([X[300:400], X[400:500]]), np.concatenate([y[300:400], wrong]), weight)
    other.update(X[300:400], y[300:400], np.ones(100))
    assert clf.drift_.nll_after == other.drift_.nll_after
    np.testing.assert_array_equal(clf.predict_proba(X[500:]), other.predict_proba(X[500:]))


def test_batches_can_be_added_where_naive_bayes_was_chosen(rng):
    p = rng.dirichlet(np.full(40, 0.3), 4)
    y = rng.integers(4, size=400)
    X = np.array([rng.multinomial(30, p[k]) for k in y]).astype(float)
    clf = NestedDichotomyClassifier(random_state=0).fit(X, y)
    assert isinstance(clf.estimator_, MultinomialNB)
    with pytest.warns(UserWarning, match="begins anew"):
        clf.partial_fit(X, y)
    assert clf.partial_fit(X, y).forget_class(3).classes_.tolist() == [0, 1, 2]
