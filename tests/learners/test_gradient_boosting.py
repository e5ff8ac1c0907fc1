"""Gradient boosting: equal to scikit-learn's and to brute force; missing values, categories and draws."""

import itertools

import numpy as np
import pandas
import polars
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble, load
from dichotomies._common.parallel import Context
from dichotomies.learners import Wanted, choose
from dichotomies.learners.base import out_of_fold_scores
from dichotomies.learners.boosting import HistGradientBoostClassifier
from dichotomies.tree import ClassTree
from tests.learners.plain_trees import feature_and_threshold, value
from tests.tasks import in_folds, node_task
from tests.uncalibrated import Uncalibrated

#: As scikit-learn: nothing is drawn.
PLAIN = {"subsample": 1.0, "max_tree_features": 1.0, "min_child_weight": 1e-3}


@pytest.fixture
def table(rng):
    """Numbers and a column of categories, some missing; the target depends on all of that."""
    n = 3_000
    X = rng.integers(0, 60, size=(n, 5)).astype(float)
    category = rng.integers(0, 12, size=n)
    target = X[:, 0] + X[:, 1] * X[:, 2] / 20 + 8 * rng.normal(size=12)[category] + rng.normal(0, 8, size=n)
    X[:, 3] = category
    X[rng.random(X.shape) < 0.1] = np.nan
    X[(target > 60) & (rng.random(n) < 0.3), 0] = np.nan  # being missing tells something
    return X, target > 60, rng.uniform(0.5, 2, size=n)


SHAPES = {
    "best leaf first": {"max_leaf_nodes": 31},
    "few leaves": {"max_leaf_nodes": 6, "l2_regularization": 1.5},
    "by depth": {"max_leaf_nodes": None, "max_depth": 4, "min_samples_leaf": 7},
    "both": {"max_leaf_nodes": 12, "max_depth": 4},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["numbers", "missing", "categories", "missing categories"])
def test_it_is_scikit_learns(table, shape, kind):
    X, target, weight = table
    X = X if "missing" in kind else np.nan_to_num(X)
    train, given = (
        np.arange(len(X)) % 2 == 0,
        {"min_samples_leaf": 20, "l2_regularization": 0.5} | SHAPES[shape],
    )
    categorical = [3] if "categories" in kind else None
    ours = HistGradientBoostClassifier(
        30, learning_rate=0.1, categorical_features=categorical, **PLAIN, **given
    )
    theirs = HistGradientBoostingClassifier(
        max_iter=30, early_stopping=False, categorical_features=categorical, **given
    )
    for model in (ours, theirs):
        model.fit(X[train], target[train], weight[train])
    assert_allclose(ours.decision_function(X[~train]), theirs.decision_function(X[~train]), atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_split_is_the_best_of_all_splits_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(14, 3)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    y, weight = rng.permutation([True] * 5 + [False] * 9), rng.uniform(0.1, 3, size=14)
    model = HistGradientBoostClassifier(
        1, max_leaf_nodes=2, learning_rate=1.0, l2_regularization=0.7, **(PLAIN | {"min_child_weight": 0.4})
    ).fit(X, y, weight)
    p = weight[y].sum() / weight.sum()
    gradient, hessian = weight * (p - y), weight * p * (1 - p)
    best = (0.0, None)
    for f, threshold, missing_left in itertools.product(range(3), np.arange(-0.5, 5), (False, True)):
        left = np.where(np.isnan(X[:, f]), missing_left, X[:, f] <= threshold)
        sides = [(gradient[side].sum(), hessian[side].sum()) for side in (left, ~left)]
        if min(h for _, h in sides) >= 0.4:
            best = max(best, (sum(g * g / (h + 0.7) for g, h in sides), sides), key=lambda each: each[0])
    if best[1] is None:
        assert model.n_trees_ == 0
        return
    expected = sorted(-g / (h + 0.7) for g, h in best[1])
    assert_allclose(sorted(model._trees.value), expected, rtol=1e-5)
    assert_allclose(np.unique(value(model._trees, 0, X)), expected, rtol=1e-5)


def test_missing_values_that_training_has_not_seen_go_with_the_majority():
    X = np.r_[np.zeros(30), np.ones(10)][:, None]
    model = HistGradientBoostClassifier(1, max_leaf_nodes=2, **PLAIN).fit(X, X[:, 0] > 0)
    assert feature_and_threshold(model._trees, 0, 0) == (0, 0.5)
    nan, zero, one = model.decision_function([[np.nan], [0.0], [1.0]])
    assert nan == zero < one


def test_pairs_are_scored_as_whole_rows_are(table):
    X, target, _ = table
    y = 2 * target + (X[:, 1] > 30)
    clf = Uncalibrated(HistGradientBoostClassifier(8, categorical_features=[3]), random_state=0).fit(X, y)
    scorer, rows = clf.model_.scorer, np.arange(300)
    assert 2 in scorer.kind
    scores = scorer.log_odds(X[:300])[rows, rows % 3]
    assert_allclose(scorer.pair_log_odds(X, rows, rows % 3), scores, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------ categories


def frames(X, categorical):
    """The same rows as frames of pandas and polars, with names for the categories."""
    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    names = [None if np.isnan(x) else f"name {x:02.0f}" for x in X[:, categorical]]
    given = pandas.DataFrame(columns | {f"x{categorical}": pandas.Categorical(names)})
    series = polars.Series(f"x{categorical}", names, dtype=polars.Categorical)
    return given, polars.DataFrame(columns).with_columns(series)


@pytest.mark.parametrize("library", [0, 1], ids=["pandas", "polars"])
def test_categorical_columns_of_frames_are_found_by_their_type(table, library, tmp_path):
    X, target, _ = table
    X, y = X[:900], (2 * target + (table[0][:, 1] > 30))[:900]
    frame, node = frames(X, 3)[library], HistGradientBoostClassifier(8)
    indexed = HistGradientBoostClassifier(8, categorical_features=[3])
    named = HistGradientBoostClassifier(8, categorical_features=["x3"])
    expected = indexed.fit(X, target[:900]).decision_function(X)
    for estimator in (node, named):
        assert_allclose(estimator.fit(frame, target[:900]).decision_function(frame), expected)
    for make in (NestedDichotomyClassifier, NestedDichotomyEnsemble):
        few = {"n_estimators": 2} if make is NestedDichotomyEnsemble else {}
        clf = make(node, random_state=0, **few).fit(frame, y)
        assert_allclose(
            clf.predict_proba(frame), make(indexed, random_state=0, **few).fit(X, y).predict_proba(X)
        )
        clf.save(tmp_path / "x.model")
        assert np.array_equal(load(tmp_path / "x.model").predict_proba(frame), clf.predict_proba(frame))


def test_categories_that_training_has_not_seen_count_as_missing(table):
    X, target, _ = table
    model = HistGradientBoostClassifier(8, categorical_features=[3]).fit(X, target)
    unseen, missing = X.copy(), X.copy()
    unseen[:, 3], missing[:, 3] = 99, np.nan
    assert np.array_equal(model.decision_function(unseen), model.decision_function(missing))


def test_of_very_many_categories_the_frequent_ones_are_told_apart(rng):
    category = np.minimum(rng.geometric(0.02, size=8_000), 400).astype(float)
    target = rng.random(8_000) < np.where(category % 2 == 0, 0.9, 0.1)
    X = np.c_[category, rng.normal(size=8_000)]
    model = HistGradientBoostClassifier(categorical_features=[0], max_bins=60).fit(X[:6000], target[:6000])
    assert len(model._trees.edges) <= 2 * 60
    assert model.score(X[6000:], target[6000:]) > 0.75


@pytest.mark.parametrize(
    ("wanted", "message"),
    [([7], "must be from 0 to 4"), (["x3"], "X is no data frame"), ([True], "a mask has one each")],
)
def test_categorical_features_that_there_are_not_are_refused(table, wanted, message):
    with pytest.raises(ValueError, match=message):
        HistGradientBoostClassifier(categorical_features=wanted).fit(*table)


# ------------------------------------------------------------------ draws and stopping


def test_draws_of_rows_and_features_depend_on_the_seed_alone(digits):
    X, y = digits
    first, again, other = (
        HistGradientBoostClassifier(5, max_features=0.5, random_state=seed).fit(X, y > 4).decision_function(X)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_tree_uses_no_more_features_than_it_may(digits):
    X, y = digits
    trees = HistGradientBoostClassifier(6, max_tree_features=0.05, max_leaf_nodes=31).fit(X, y > 4)._trees
    used = [set(trees.column[a:b].tolist()) for a, b in itertools.pairwise(trees.split_offsets)]
    assert 1 <= max(map(len, used)) <= 4
    assert len(set.union(*used)) > 4


def test_out_of_fold_scores_are_those_of_the_members(table):
    X, target, _ = table
    y = 2 * target + (X[:, 1] > 30)
    task = in_folds(node_task(ClassTree.from_nested([[0, 1], [2, 3]]), X, y), np.arange(len(y)) % 3)
    for stops_early in (False, True):
        learner = choose(
            HistGradientBoostClassifier(20, early_stopping=stops_early, categorical_features=[3])
        )
        made = learner.cross_fit(task, Wanted.SCORES | Wanted.MEMBERS | Wanted.FULL, Context())
        assert_allclose(made.scores, out_of_fold_scores(task, made.members), atol=1e-7)
        sizes = [np.diff(each.tree_offsets) for each in (*made.members, made.full)]
        if stops_early:
            assert all(np.array_equal(sizes[0], each) for each in sizes)


def test_stopping_early_keeps_the_trees_that_lower_the_loss_of_rows_held_out(rng):
    X = rng.normal(size=(900, 8))
    y = rng.random(900) < 1 / (1 + np.exp(-3 * X[:, 0]))
    given = {"n_estimators": 150, "learning_rate": 0.3, "max_leaf_nodes": 31}
    stopped, full = (
        HistGradientBoostClassifier(**given, early_stopping=early).fit(X[:300], y[:300])
        for early in (True, False)
    )
    assert 1 <= stopped.n_trees_ < 60 < full.n_trees_
    losses = [log_loss(y[300:], model.predict_proba(X[300:])) for model in (stopped, full)]
    assert losses[0] < losses[1]
    trees = Uncalibrated(HistGradientBoostClassifier(**given, early_stopping=True)).fit(X, y).model_.scorer
    assert 1 <= np.diff(trees.tree_offsets)[0] < 100


def test_trees_without_a_limit_are_refused():
    with pytest.raises(ValueError, match="at most 256 leaves"):
        HistGradientBoostClassifier(max_leaf_nodes=None).fit(np.eye(4), [0, 1, 0, 1])


# ------------------------------------------------------------------ ensembles


@pytest.mark.parametrize(("n_members", "share"), [(1, 1.0), (10, 1.0), (20, 0.5), (1000, 0.25)])
def test_members_of_large_ensembles_share_the_rounds_of_ten(n_members, share):
    sizes = np.array([9.0, 500.0, 1e5]), np.zeros(4, dtype=bool)
    alone = HistGradientBoostClassifier().boosting_parameters(*sizes)
    member = HistGradientBoostClassifier(n_members=n_members).boosting_parameters(*sizes)
    assert_array_equal(member.n_estimators, np.rint(share * alone.n_estimators))
    assert member.learning_rate == alone.learning_rate / share**0.75


def test_an_ensemble_tells_its_size_unless_rounds_or_steps_are_given(digits):
    X, y = digits[0][:200], digits[1][:200]
    plain = {"internal_calibration": None, "external_calibration": None, "random_state": 0}

    def ensemble(**given):
        node = HistGradientBoostClassifier(**given)
        return NestedDichotomyEnsemble(node, n_estimators=12, **plain).fit(X, y).predict_proba(X)

    told = ensemble()
    assert_array_equal(told, ensemble(n_members=12))
    assert np.abs(told - ensemble(n_members=1)).max() > 1e-3
    for given in ({"learning_rate": 0.35}, {"n_estimators": 5}):
        assert_array_equal(ensemble(**given), ensemble(**given, n_members=1))


def test_the_number_of_threads_changes_no_answer(table):
    X, target, weight = table
    alone, three = (
        HistGradientBoostClassifier(10, categorical_features=[3], n_jobs=n_jobs).fit(X, target, weight)
        for n_jobs in (1, 3)
    )
    assert_array_equal(alone.decision_function(X), three.decision_function(X))
